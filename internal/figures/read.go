package figures

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A Figure counts the payments of one kind, status and rail that were accepted in an hour or a day.
type Figure struct {
	At      time.Time // beginning of the hour or day
	Kind    book.Kind
	Status  book.Status
	Rail    string // empty: no provider
	N       int64
	Amount  money.Pesewas
	Charges money.Pesewas
}

// A Span selects figures of one account in one mode, or of all accounts.
type Span struct {
	Tenant   string // empty: all accounts
	Mode     string
	From, To time.Time // To is excluded
}

const (
	hoursOf = `SELECT at, kind, status, rail, n, amount, charges FROM figures_hours WHERE tenant = $1 AND mode = $2 AND at >= $3 AND at < $4 AND n > 0 ORDER BY at`
	daysOf  = `SELECT at, kind, status, rail, n, amount, charges FROM figures_days WHERE tenant = $1 AND mode = $2 AND at >= $3 AND at < $4 AND n > 0 ORDER BY at`
)

// Hours returns the figures of the hours that begin in a span, in order. For hours older than KeepHours there are no
// figures.
func (f *Figures) Hours(ctx context.Context, s Span) ([]Figure, error) {
	return f.read(ctx, hoursOf, s)
}

// Days returns the figures of the days that begin in a span, in their order.
func (f *Figures) Days(ctx context.Context, s Span) ([]Figure, error) { return f.read(ctx, daysOf, s) }

func (f *Figures) read(ctx context.Context, sql string, s Span) ([]Figure, error) {
	return db.ReadAll(ctx, f.db, sql, []any{s.Tenant, s.Mode, db.Micros(s.From), db.Micros(s.To)}, func(one *Figure, r *db.Row) error {
		return r.Scan(&one.At, &one.Kind, &one.Status, &one.Rail, &one.N, &one.Amount, &one.Charges)
	})
}

// CountedTo returns the time up to which the figures are complete. It is zero while they are counted for the first time.
func (f *Figures) CountedTo(ctx context.Context) (time.Time, error) {
	var s state
	err := f.db.Read(ctx, s.read)
	return s.countedTo, err
}

// Ages are the upper ends of the ages by which Open counts. The last group has no end.
var Ages = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour}

// An Age counts the open payments of one age.
type Age struct {
	N      int64
	Amount money.Pesewas
}

const openByAge = `SELECT CASE WHEN created_at > $2 THEN 0 WHEN created_at > $3 THEN 1 WHEN created_at > $4 THEN 2 WHEN created_at > $5 THEN 3 ELSE 4 END,
count(*), CAST(sum(amount) AS BIGINT) FROM figures_open WHERE mode = $1 GROUP BY 1`

// Open counts the payments without a final status by their age. The result has one group more than Ages.
func (f *Figures) Open(ctx context.Context, mode string) (groups []Age, err error) {
	args := []any{mode}
	for _, age := range Ages {
		args = append(args, db.Micros(f.clock.Now().Add(-age)))
	}
	err = f.db.Read(ctx, func(tx *db.Tx) error {
		groups = make([]Age, len(Ages)+1)
		return tx.Query(openByAge, args, func(r *db.Row) error {
			var n int
			var one Age
			err := r.Scan(&n, &one.N, &one.Amount)
			groups[n] = one
			return err
		})
	})
	return groups, err
}

// A Total is a sum of figures.
type Total struct {
	N       int64         // payments
	Amount  money.Pesewas // of all of them
	Success int64         // that succeeded
	Paid    money.Pesewas // their amount
	Ended   int64         // payments with a final status
}

// Add adds a figure.
func (t *Total) Add(one Figure) {
	t.N += one.N
	t.Amount += one.Amount
	if one.Status == book.StatusSuccess {
		t.Success += one.N
		t.Paid += one.Amount
	}
	if !one.Status.Open() {
		t.Ended += one.N
	}
}

// Rate returns the share of successes among the payments with a final status, in tenths of a percent. known is false if there are
// no such payments.
func (t Total) Rate() (tenths int64, known bool) {
	if t.Ended == 0 {
		return 0, false
	}
	return (t.Success*1000 + t.Ended/2) / t.Ended, true
}

// A Held sums up open payments of an account.
type Held struct {
	Kind    book.Kind
	Awaits  bool // payments that await approval by the account's people
	Unknown bool // payments with an unknown outcome
	N       int64
	Amount  money.Pesewas // with charges
}

// A payment's outcome is unknown in the same cases as in lists and on pages: book.Payment.Unknown. CROSS JOIN keeps SQLite from reading all
// payments of the account first.
const heldOf = `SELECT p.kind, CASE WHEN p.held_until > 0 THEN 1 ELSE 0 END, CASE WHEN p.escalated_at IS NOT NULL OR p.refusal <> '' OR p.class = $2 THEN 1 ELSE 0 END,
count(*), CAST(sum(p.amount + p.charges) AS BIGINT)
FROM figures_open AS o CROSS JOIN payments AS p
WHERE o.tenant = $1 AND ` + ofOpen + ` AND p.status = 'pending' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

// Held returns the open payments of an account by kind, without top-ups whose payer has not paid yet.
func (f *Figures) Held(ctx context.Context, tenant string) ([]Held, error) {
	return db.ReadAll(ctx, f.db, heldOf, []any{tenant, provider.Unknown.String()}, func(one *Held, r *db.Row) error {
		return r.Scan(&one.Kind, &one.Awaits, &one.Unknown, &one.N, &one.Amount)
	})
}
