package identity

import (
	"context"
	"net/netip"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

const useSession = `UPDATE sessions SET used_at = $2 WHERE hash = $1 AND ended_at = 0 AND used_at < $2`

// Visit returns the visitor of a session's token. used is set for a request by the person, which keeps the session
// alive. It is not set for an automatic request of a page.
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

const endOthers = `UPDATE sessions SET ended_at = $3 WHERE person = $1 AND hash <> $2 AND ended_at = 0`

// EndOthers ends all other sessions of the visitor, and all personal tokens. They end on every node within Freshness.
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

// SignOut ends the session of a token. It does nothing if the session has ended.
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

// Sessions lists the visitor's sessions, latest first.
func (i *Identity) Sessions(ctx context.Context, v Visitor) (list []Session, err error) {
	now, idle := i.clock.Now(), IdleMember
	if v.Operator() {
		idle = IdleOperator
	}
	return db.ReadAll(ctx, i.db, selectSessions, []any{v.Person.ID, now.Add(-Longest), now.Add(-idle)}, func(s *Session, r *db.Row) error {
		return r.Scan(&s.ID, &s.Agent, &s.CreatedAt, &s.UsedAt, &s.FactorAt, &s.Source)
	})
}

const endOwnSession = `UPDATE sessions SET ended_at = $3 WHERE person = $1 AND id = $2 AND ended_at = 0`

// End ends a session of the visitor on every node within Freshness. It ignores sessions of other people.
func (i *Identity) End(ctx context.Context, v Visitor, id string) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(endOwnSession, -1, v.Person.ID, id, i.clock.Now())
		return nil
	})
}
