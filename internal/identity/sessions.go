package identity

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// How long sessions last.
const (
	// IdleOperator and IdleMember are how long a session lasts without a request: that of a person with a role at the
	// installation, and everybody else's.
	IdleOperator = 15 * time.Minute
	IdleMember   = 8 * time.Hour
	// Longest is how long a session lasts at most.
	Longest = 12 * time.Hour
)

// Session is one browser in which a person is signed in.
type Session struct {
	ID        string
	Agent     string // the browser, in its own words
	CreatedAt time.Time
	UsedAt    time.Time // to the minute
	FactorAt  time.Time // when the second factor was last given; zero: never
	Source    string    // the network that it began from; empty: not known
	First     bool      // of an invitation or of the bootstrap
}

// Visitor is the person behind a request, with the session and the roles.
type Visitor struct {
	Person      Person
	Session     Session
	Memberships []Membership
	HasPassword bool
	HasFactor   bool
	TokensFrom  time.Time // when a first factor lets personal tokens be made and used; zero: they do not wait
	hash        string    // of the session's token; empty: it is a command's, by a personal token
	token       string    // the hash of that one
}

// Role is the visitor's role at a tenant or at the Installation; empty: none.
func (v Visitor) Role(tenant string) Role {
	for _, m := range v.Memberships {
		if m.Tenant == tenant {
			return m.Role
		}
	}
	return ""
}

// Operator says whether the visitor has a role at the installation.
func (v Visitor) Operator() bool { return v.Role(Installation) != "" }

// sessionRow is what a query for a hash found, which may be nothing: that is remembered too.
type sessionRow struct {
	visitor Visitor
	ended   bool
	found   bool
}

const selectSession = `SELECT s.id, s.agent, s.created_at, s.used_at, s.factor_at, s.source, s.ended_at, p.id, p.email, p.name, p.created_at, p.disabled_at,
	p.password <> '', coalesce(f.sealed, '') <> '', s.first, coalesce(f.first_at, 0)
	FROM sessions s JOIN people p ON p.id = s.person LEFT JOIN factors f ON f.person = p.id WHERE s.hash = $1`

const selectMemberships = `SELECT m.tenant, m.role FROM sessions s JOIN memberships m ON m.person = s.person
	WHERE s.hash = $1 ORDER BY m.tenant`

func (i *Identity) loadSession(ctx context.Context, hash string) (row sessionRow, err error) {
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		row, err = readSession(tx, hash)
		return err
	})
	return row, err
}

func readSession(tx *db.Tx, hash string) (row sessionRow, err error) {
	session := func(r *db.Row) error {
		var ended, firstAt time.Time
		s, p := &row.visitor.Session, &row.visitor.Person
		err := r.Scan(&s.ID, &s.Agent, &s.CreatedAt, &s.UsedAt, &s.FactorAt, &s.Source, &ended, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt,
			&row.visitor.HasPassword, &row.visitor.HasFactor, &s.First, &firstAt)
		row.visitor.hash, row.visitor.TokensFrom = hash, tokensFrom(firstAt)
		row.found, row.ended = true, !ended.IsZero() || !p.DisabledAt.IsZero()
		return err
	}
	membership := func(r *db.Row) error {
		var m Membership
		err := r.Scan(&m.Tenant, &m.Role)
		row.visitor.Memberships = append(row.visitor.Memberships, m)
		return err
	}
	err = tx.Gather(db.Query{SQL: selectSession, Args: []any{hash}, Each: session},
		db.Query{SQL: selectMemberships, Args: []any{hash}, Each: membership})
	return row, err
}

// errSession is the refusal of a session that is unknown, over or ended.
func errSession() error {
	return problem.New(problem.Unauthenticated, "not_signed_in", "Sign in to see this page")
}

// within reports whether a proof that was made at a time and ends at another still lasts. A proof from the time to come does
// not: the clock was set back since, and the proof would last longer by that.
func (i *Identity) within(made, ends time.Time) bool {
	now := i.clock.Now()
	return now.Before(ends) && made.Sub(now) <= clock.Skew
}

// live says whether the session still lasts at a time.
func (r sessionRow) live(at time.Time) bool {
	idle := IdleMember
	if r.visitor.Operator() {
		idle = IdleOperator
	}
	s := r.visitor.Session
	if s.UsedAt.Sub(at) > clock.Skew { // the clock was set back since: the session would last longer by that
		return false
	}
	return r.found && !r.ended && at.Before(s.CreatedAt.Add(Longest)) && at.Before(s.UsedAt.Add(idle))
}

const useSession = `UPDATE sessions SET used_at = $2 WHERE hash = $1 AND ended_at = 0 AND used_at < $2`

// Visit finds the visitor behind a session's token. A request that a person made counts as use, which keeps the session
// alive; one that a page makes by itself does not.
func (i *Identity) Visit(ctx context.Context, token string, used bool) (Visitor, error) {
	if len(token) != tokenLength {
		return Visitor{}, errSession()
	}
	hash := hashToken(token)
	row, err := i.sessions.Get(ctx, hash)
	if err != nil {
		return Visitor{}, err
	}
	now := i.clock.Now()
	if !row.live(now) {
		return Visitor{}, errSession()
	}
	if used && now.Sub(row.visitor.Session.UsedAt) >= usedEvery {
		err = i.db.Write(ctx, func(tx *db.Tx) error {
			tx.Defer(useSession, -1, hash, now)
			return nil
		})
		i.sessions.Forget(hash)
	}
	return row.visitor, err
}

const endSession = `UPDATE sessions SET ended_at = $2 WHERE hash = $1 AND ended_at = 0`

// EndOthers ends every session of the visitor's but this one, and every personal token, in force everywhere within Freshness.
func (i *Identity) EndOthers(ctx context.Context, v Visitor, from netip.Addr) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		tx.Defer(endOthers, -1, v.Person.ID, v.hash, now)
		n, err := tx.Exec(endTokens, v.Person.ID, now)
		if err != nil || n == 0 {
			return err
		}
		return i.note(tx, v.Person, from, audit.Entry{Action: "person.token_end", Details: changesOf("all personal tokens", "work", "ended")})
	})
}

// SignOut ends the session of a token. Ending it again changes nothing.
func (i *Identity) SignOut(ctx context.Context, token string) error {
	hash := hashToken(token)
	return i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(endSession, -1, hash, i.clock.Now())
		tx.AfterCommit(func() { i.sessions.Forget(hash) })
		return nil
	})
}

const selectSessions = `SELECT id, agent, created_at, used_at, factor_at, source FROM sessions
	WHERE person = $1 AND ended_at = 0 AND created_at > $2 AND used_at > $3 ORDER BY id DESC LIMIT 100`

// Sessions lists where a visitor is signed in, the latest first.
func (i *Identity) Sessions(ctx context.Context, v Visitor) (list []Session, err error) {
	now, idle := i.clock.Now(), IdleMember
	if v.Operator() {
		idle = IdleOperator
	}
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(selectSessions, []any{v.Person.ID, now.Add(-Longest), now.Add(-idle)}, func(r *db.Row) error {
			var s Session
			err := r.Scan(&s.ID, &s.Agent, &s.CreatedAt, &s.UsedAt, &s.FactorAt, &s.Source)
			list = append(list, s)
			return err
		})
	})
	return list, err
}

const endOwnSession = `UPDATE sessions SET ended_at = $3 WHERE person = $1 AND id = $2 AND ended_at = 0`

// End ends a session of the visitor's own, in force everywhere within Freshness. Another person's is left alone.
func (i *Identity) End(ctx context.Context, v Visitor, id string) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(endOwnSession, -1, v.Person.ID, id, i.clock.Now())
		return nil
	})
}

// shorten makes of a header something that can be stored and shown.
func shorten(agent string) string {
	agent = strings.ToValidUTF8(agent, "")
	agent = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, agent)
	if runes := []rune(agent); len(runes) > maxAgent {
		agent = string(runes[:maxAgent])
	}
	return agent
}
