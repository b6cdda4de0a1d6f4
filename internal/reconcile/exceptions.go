package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// found are the exceptions that matching finds in one set of lines and payments.
type found struct {
	lines    []string    // lines of the exceptions that were decided
	list     []Exception // without ids
	payments []string    // payments that are matched, or that need not be in any statement
	source   string      // of the lines
	givenUp  []string    // payments that need not be in the statements of this source, which has an attempt that was given up
}

// sync updates the open exceptions of lines and payments to those that were found. An exception that a person has
// ended stays ended while the difference is the same.
func (s *store) sync(tx *db.Tx, f found) error {
	stored, err := queryExceptions(tx, exceptionsOfLines, f.lines)
	if err != nil {
		return err
	}
	missed, err := queryExceptions(tx, exceptionsOfPayments, slices.Concat(f.payments, f.givenUp))
	if err != nil {
		return err
	}
	for _, e := range missed { // those of lines are stored, or are of lines that are not decided about
		if e.Line == "" && e.Kind == OursOnly && (slices.Contains(f.payments, e.Payment) || e.Source == f.source) {
			stored = append(stored, e)
		}
	}
	now := s.clock.Now()
	var fresh []Exception
	kept := map[string]bool{}
	for _, want := range unbooked(f.list, stored) {
		same := slices.IndexFunc(stored, func(e Exception) bool { return e.same(want) })
		if same < 0 {
			want.ID, want.OpenedAt = newID(), now
			fresh = append(fresh, want)
			continue
		}
		e := stored[same]
		kept[e.ID] = true
		if e.EndedAt.IsZero() && (e.Amount != want.Amount || e.Delta != want.Delta || e.Reason != want.Reason) {
			if _, err := tx.Exec(changeException, e.ID, int64(want.Amount), int64(want.Delta), want.Reason); err != nil {
				return err
			}
		}
	}
	for _, e := range stored {
		if kept[e.ID] || !e.stands() {
			continue
		}
		if err := s.agree(tx, e); err != nil {
			return err
		}
	}
	db.Insert(tx, "statement_exceptions", insertExceptions, fresh)
	return nil
}

// unbooked returns the found exceptions less the money that is booked for good for earlier ones of the same kind, line
// and payment. If the provider has changed a line since, the rest of that money is an exception. The money of a line
// without a payment is not among it, because the match of that line keeps it.
func unbooked(found, stored []Exception) (list []Exception) {
	type key struct {
		kind          Kind
		line, payment string
	}
	booked := map[key]money.Pesewas{}
	for _, e := range stored {
		if e.Ending == EndedReleased && e.Kind != TheirsOnly {
			booked[key{e.Kind, e.Line, e.Payment}] += e.Delta
		}
	}
	for _, e := range found {
		of := key{e.Kind, e.Line, e.Payment}
		if b := booked[of]; b != 0 {
			if e.Delta -= b; e.Delta == 0 {
				delete(booked, of)
				continue
			}
			e.Amount, e.Reason = magnitude(e.Delta), fmt.Sprintf("%s %s are booked for it.", e.Reason, cedis(magnitude(b)))
			delete(booked, of)
		}
		list = append(list, e)
	}
	for _, e := range stored {
		of := key{e.Kind, e.Line, e.Payment}
		if b := booked[of]; b != 0 {
			list = append(list, Exception{Source: e.Source, Kind: e.Kind, Line: e.Line, Payment: e.Payment, Amount: magnitude(b), Delta: -b, At: e.At,
				Reason: fmt.Sprintf("%s are booked for a difference that the statement does not have any more.", cedis(magnitude(b)))})
			delete(booked, of)
		}
	}
	return list
}

// Filter narrows the list of exceptions. Zero members have no effect.
type Filter struct {
	Source string
	Kind   Kind
	Owner  string        // id of a person; "none": nobody
	Older  time.Duration // only exceptions that were opened before this long ago
	Least  money.Pesewas
	Most   money.Pesewas
	Ended  bool
	Ending Ending // ending of ended exceptions
	Credit bool   // the statement has more money than our books
	Before string // id of the last exception of the previous page
	Limit  int
}

// NoOwner selects exceptions without an owner.
const NoOwner = "none"

// where returns the SQL conditions of a filter.
func (f Filter) where(now time.Time) (sql string, args []any) {
	conditions := []string{"ended_at = 0"}
	if f.Ended {
		conditions[0] = "ended_at <> 0"
	}
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if f.Ending != "" {
		conditions[0] = "ended_at <> 0"
		add("ending = $%d", string(f.Ending))
	}
	if f.Source != "" {
		add("source = $%d", f.Source)
	}
	if f.Kind != "" {
		add("kind = $%d", string(f.Kind))
	}
	switch f.Owner {
	case "":
	case NoOwner:
		add("owner = $%d", "")
	default:
		add("owner = $%d", f.Owner)
	}
	if f.Older > 0 {
		add("opened_at < $%d", now.Add(-f.Older))
	}
	if f.Least > 0 {
		add("amount >= $%d", int64(f.Least))
	}
	if f.Most > 0 {
		add("amount <= $%d", int64(f.Most))
	}
	if f.Credit {
		conditions = append(conditions, "delta > 0")
	}
	if f.Before != "" {
		add("id < $%d", f.Before)
	}
	return strings.Join(conditions, " AND "), args
}

// Exceptions returns exceptions, newest first.
func (s *store) Exceptions(ctx context.Context, f Filter) (list []Exception, err error) {
	where, args := f.where(s.clock.Now())
	sql := fmt.Sprintf(`SELECT %s FROM statement_exceptions WHERE %s ORDER BY id DESC LIMIT $%d`, exceptionColumns, where, len(args)+1)
	return db.Get(db.Bulk(ctx, ""), s.db, func(tx *db.Tx) ([]Exception, error) { return queryExceptions(tx, sql, append(args, int64(f.Limit))...) })
}

// Exception returns an exception by its id.
func (s *store) Exception(ctx context.Context, id string) (Exception, error) {
	return db.Get(ctx, s.db, func(tx *db.Tx) (Exception, error) { return exceptionIn(tx, selectException, id) })
}

func exceptionIn(tx *db.Tx, sql, id string) (Exception, error) {
	list, err := queryExceptions(tx, sql, id)
	if err != nil {
		return Exception{}, err
	}
	if len(list) == 0 {
		return Exception{}, problem.New(problem.NotFound, "exception_not_found", "Exception not found")
	}
	return list[0], nil
}

// Open counts the open exceptions, up to a limit.
func (s *store) Open(ctx context.Context, most int) (n int, err error) {
	_, err = s.db.ReadOne(ctx, countExceptions, []any{int64(most)}, &n)
	return n, err
}

const agesOfExceptions = `SELECT source, owner, count(*), CAST(sum(amount) AS INTEGER), min(opened_at) FROM statement_exceptions WHERE ended_at = 0 AND opened_at < $1
GROUP BY source, owner ORDER BY source, owner LIMIT $2`

// Aging is the open exceptions of a source and an owner that are older than a time.
type Aging struct {
	Source string
	Owner  string // id of the person; empty: nobody
	Count  int
	Sum    money.Pesewas
	Oldest time.Time
}

// Add adds the exceptions of another owner of the source.
func (a *Aging) Add(o Aging) {
	if a.Source = o.Source; a.Oldest.IsZero() || o.Oldest.Before(a.Oldest) {
		a.Oldest = o.Oldest
	}
	a.Count, a.Sum = a.Count+o.Count, a.Sum+o.Sum
}

// Old returns the exceptions that have been open for longer than age, by source and owner.
func (s *store) Old(ctx context.Context, age time.Duration, most int) ([]Aging, error) {
	return db.ReadAll(db.Bulk(ctx, ""), s.db, agesOfExceptions, []any{s.clock.Now().Add(-age), int64(most)}, func(a *Aging, r *db.Row) error {
		return r.Scan(&a.Source, &a.Owner, &a.Count, &a.Sum, &a.Oldest)
	})
}

// Own sets the owner of an exception. An empty id removes the owner.
func (s *store) Own(ctx context.Context, id, person, name string) error {
	return s.changeOpen(ctx, ownException, id, person, name)
}

// maxNote is how many characters a note has.
const maxNote = 500

// Note stores a note about an exception and replaces the previous one.
func (s *store) Note(ctx context.Context, id, text string) error {
	text = strings.TrimSpace(text)
	if len([]rune(text)) > maxNote || !usertext.Storable(strings.NewReplacer("\r", "", "\n", "").Replace(text)) {
		return problem.Field("note", fmt.Sprintf("must be plain text of at most %d characters", maxNote))
	}
	return s.changeOpen(ctx, noteException, id, text)
}

func (s *store) changeOpen(ctx context.Context, sql string, args ...any) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(sql, args...)
		if err == nil && n == 0 {
			err = problem.New(problem.NotFound, "exception_not_found", "The exception is no longer open")
		}
		return err
	})
}
