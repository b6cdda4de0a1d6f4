package identity

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// sessionRow is the cached session of a hash. A missing session is cached, too.
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

func (i *Identity) loadSession(ctx context.Context, hash string) (sessionRow, error) {
	return db.Get(ctx, i.db, func(tx *db.Tx) (sessionRow, error) { return readSession(tx, hash) })
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

// errSession is returned for a session that is unknown, expired or ended.
func errSession() error {
	return problem.New(problem.Unauthenticated, "not_signed_in", "Sign in to see this page")
}

// within reports whether a proof is valid now: its end has not passed, and it was not made more than clock.Skew in
// the future. If the clock was set back, a proof from the future would otherwise be valid for too long.
func (i *Identity) within(made, ends time.Time) bool {
	now := i.clock.Now()
	return now.Before(ends) && made.Sub(now) <= clock.Skew
}

// live reports whether the session is valid at a time.
func (r sessionRow) live(at time.Time) bool {
	idle := IdleMember
	if r.visitor.Operator() {
		idle = IdleOperator
	}
	s := r.visitor.Session
	if s.UsedAt.Sub(at) > clock.Skew { // the clock was set back, and the session would otherwise last too long
		return false
	}
	return r.found && !r.ended && at.Before(s.CreatedAt.Add(Longest)) && at.Before(s.UsedAt.Add(idle))
}

// shorten returns a User-Agent header in a form that can be stored and shown.
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

// How long sessions last.
const (
	// IdleOperator and IdleMember are how long a session lasts without a request. IdleOperator is for people with a
	// role at the installation, IdleMember for all others.
	IdleOperator = 15 * time.Minute
	IdleMember   = 8 * time.Hour
	// Longest is the maximum duration of a session.
	Longest = 12 * time.Hour
)
