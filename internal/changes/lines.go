package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

const (
	selectPolicy = `SELECT kind, tenant, pesewas, checkers, 0 FROM act_policy
		UNION ALL SELECT kind, tenant, pesewas, checkers, 1 FROM act_policy_own ORDER BY kind, tenant, pesewas`
	selectLine = `SELECT checkers FROM act_policy WHERE kind = $1 AND tenant IN ('', $2) AND pesewas <= $3 ORDER BY tenant DESC, pesewas DESC LIMIT 1`
	lockLine   = `SELECT checkers FROM act_policy WHERE kind = $1 AND tenant = $2 AND pesewas = $3 FOR UPDATE`
	setLine    = `INSERT INTO act_policy (kind, tenant, pesewas, checkers) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kind, tenant, pesewas) DO UPDATE SET checkers = excluded.checkers`
	dropLine = `DELETE FROM act_policy WHERE kind = $1 AND tenant = $2 AND pesewas = $3`

	selectOwnLine = `SELECT checkers FROM act_policy_own WHERE kind = $1 AND tenant = $2 AND pesewas <= $3 ORDER BY pesewas DESC LIMIT 1`
	lockOwnLine   = `SELECT checkers FROM act_policy_own WHERE kind = $1 AND tenant = $2 AND pesewas = $3 FOR UPDATE`
	setOwnLine    = `INSERT INTO act_policy_own (kind, tenant, pesewas, checkers) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kind, tenant, pesewas) DO UPDATE SET checkers = excluded.checkers`
	dropOwnLine = `DELETE FROM act_policy_own WHERE kind = $1 AND tenant = $2 AND pesewas = $3`
)

// Policy returns the lines that people have set.
func (s *Store) Policy(ctx context.Context) ([]Line, error) {
	return db.ReadAll(ctx, s.db, selectPolicy, nil, func(l *Line, r *db.Row) error {
		return r.Scan(&l.Kind, &l.Tenant, &l.From, &l.Approvers, &l.Own)
	})
}

// SetLine sets or removes a line of the policy in tx. rule is the rule of the line's kind. It refuses a line that the people of the
// place cannot satisfy. Everybody who may make such requests must have enough others who may approve them.
func (s *Store) SetLine(tx *db.Tx, rule Rule, l Line) (before int, err error) {
	if l.From < 0 || l.Approvers < Default || l.Approvers > MostApprovers {
		return Default, problem.Field("approvers", "must be 0, 1 or 2, and the amount must not be below zero")
	}
	lock, set, drop := lockLine, setLine, dropLine
	if l.Own {
		lock, set, drop = lockOwnLine, setOwnLine, dropOwnLine
	}
	found, err := tx.One(lock, []any{l.Kind, l.Tenant, int64(l.From)}, &before)
	if err != nil {
		return Default, err
	}
	if !found {
		before = Default
	}
	if l.Own {
		tx.AfterCommit(func() { s.ownLines.Forget(ownKind{l.Kind, l.Tenant}) })
	}
	if l.Approvers == Default {
		tx.Defer(drop, -1, l.Kind, l.Tenant, int64(l.From))
		return before, nil
	}
	place := l.place()
	holders, err := s.people.Holders(tx, place)
	if err != nil {
		return before, err
	}
	for _, h := range holders {
		if !roles.Can(roles.SiteOf(place), h.Role, rule.Make) {
			continue
		}
		if there := s.others(holders, Request{Place: place, Requester: h.ID}, rule); there < l.Approvers {
			return before, problem.New(problem.Forbidden, "policy_locks_out", fmt.Sprintf("A request of %s would need %s, and only %d other people may approve it", h.Email, Approvers(l.Approvers), there))
		}
	}
	tx.Defer(set, 1, l.Kind, l.Tenant, int64(l.From), l.Approvers)
	return before, nil
}

// Asked reports whether a tenant's own line requires approval of a request of a kind that an API key makes. It reads
// lines that are at most a second old. Without such a line decide requires no approval, so a key's request reads
// nothing else.
func (s *Store) Asked(ctx context.Context, kind, tenant string, amount money.Pesewas) (bool, error) {
	lines, err := s.ownLines.Get(ctx, ownKind{kind, tenant})
	for _, l := range lines {
		if amount >= l.From {
			return l.Approvers > 0, err
		}
	}
	return false, err
}

// needs returns how many approvers a request needs, as decide does.
func (s *Store) needs(tx *db.Tx, rule Rule, a Request) (int, error) {
	holders, err := s.people.Holders(tx, a.Place)
	if err != nil {
		return 0, err
	}
	n, _, err := s.decide(tx, holders, rule, a)
	return n, err
}

// decide returns how many approvers a request needs at a place with these holders, and how many others may approve it.
// The policy decides. Without a line, a request in production needs one approver if another person may approve. A
// request of an API key then needs none.
func (s *Store) decide(tx *db.Tx, holders []identity.Holder, rule Rule, a Request) (n, there int, err error) {
	there, line := s.others(holders, a, rule), selectLine
	if a.Place != roles.Installation {
		line = selectOwnLine
	}
	found, err := tx.One(line, []any{a.Kind, a.Tenant, int64(a.Amount)}, &n)
	if largest := a.largestPayout(); err == nil && largest > 0 { // the stricter of its own line and the line of its largest payout
		each, also := 0, false
		also, err = tx.One(line, []any{KindSendPayout, a.Tenant, int64(largest)}, &each)
		found, n = found || also, max(n, each)
	}
	switch {
	case err != nil:
		return 0, there, err
	case found && n > there:
		return 0, there, problem.New(problem.Forbidden, "too_few_people", fmt.Sprintf("This change needs %s, and only %d other people may approve it", Approvers(n), there))
	case found:
		return n, there, nil
	case !s.production || rule.Light || a.Key != "":
		return 0, there, nil
	}
	return min(there, 1), there, nil
}

// inForce returns how many approvers a person's request needs, and whether nobody else may approve.
func (s *Store) inForce(tx *db.Tx, holders []identity.Holder, rule Rule, r Request) (text string, alone bool, err error) {
	n, there, err := s.decide(tx, holders, rule, r)
	if problem.Is(err, problem.Forbidden) {
		return "refused: " + problem.From(err).Message, false, nil
	}
	return Approvers(n), s.production && n == 0 && there == 0 && !rule.Light && r.Key == "", err
}
