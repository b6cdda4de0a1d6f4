package closing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
)

// Lag is how long after its end a day can be closed. By then every transaction that was open at midnight has ended.
const Lag = time.Hour

// Signed is the part of a day's figures that two people sign. Its members and their order are hashed, so they never
// change.
type Signed struct {
	Asset    string          `json:"asset"`
	Day      Day             `json:"day"`
	Previous int64           `json:"previous"` // revision of the previous day; 0: this is the first day
	Revision int64           `json:"revision"`
	Accounts []SignedAccount `json:"accounts"`
	Owed     money.Pesewas   `json:"owed"`
	Held     money.Pesewas   `json:"held"`
}

// SignedAccount is one account of a day that is signed.
type SignedAccount struct {
	Account   string         `json:"account"`
	Opening   money.Pesewas  `json:"opening"`
	In        money.Pesewas  `json:"in"`
	Out       money.Pesewas  `json:"out"`
	Late      money.Pesewas  `json:"late"`
	Closing   money.Pesewas  `json:"closing"`
	Theirs    *money.Pesewas `json:"theirs"`
	Explained money.Pesewas  `json:"explained"`
}

// Sign returns the part of the figures that is signed.
func (f Figures) Sign() Signed {
	s := Signed{Asset: string(f.Asset), Day: f.Day, Previous: f.Previous.Revision, Revision: f.Times + 1, Owed: f.Funds.Owed, Held: f.Funds.Held}
	for _, a := range f.Accounts {
		s.Accounts = append(s.Accounts, SignedAccount{string(a.ID), a.Opening, a.In, a.Out, a.Late, a.Closing, a.Theirs, a.Explained})
	}
	return s
}

// Same reports whether the signed parts of two figures are equal.
func (s Signed) Same(o Signed) bool {
	return s.Asset == o.Asset && s.Day == o.Day && s.Previous == o.Previous && s.Revision == o.Revision && s.Owed == o.Owed && s.Held == o.Held &&
		slices.EqualFunc(s.Accounts, o.Accounts, func(a, b SignedAccount) bool {
			theirs := (a.Theirs == nil) == (b.Theirs == nil) && (a.Theirs == nil || *a.Theirs == *b.Theirs)
			a.Theirs, b.Theirs = nil, nil
			return theirs && a == b
		})
}

// Closable refuses a day that cannot be closed now.
func (b *Books) Closable(f Figures) error {
	switch {
	case f.Closed.Revision > 0:
		return errClosed(f.Day)
	case b.clock.Now().Before(f.Day.End().Add(Lag)):
		return problem.Field("day", fmt.Sprintf("can be closed from %s on", f.Day.End().Add(Lag).Format("2 Jan 2006 15:04 UTC")))
	case f.Last.Revision > 0 && f.Last.Day != f.Day-1:
		return problem.Field("day", fmt.Sprintf("must be %s: days are closed in order, and the last closed day is %s", f.Last.Day+1, f.Last.Day))
	}
	return nil
}

const (
	lockClosed    = selectClosed + ` FOR UPDATE`
	insertClosed  = `INSERT INTO closed_days (asset, day, previous, revision, act, closed_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`
	insertAccount = `INSERT INTO closed_accounts (asset, day, revision, account, opening, moved_in, moved_out, late, closing, theirs, explained) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	insertMove    = `INSERT INTO closed_moves (asset, day, revision, account, of_day, kind, moved_in, moved_out, n) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	dropClosed    = `DELETE FROM closed_days WHERE asset = $1 AND day = $2 AND revision = $3`
	insertReopen  = `INSERT INTO reopened_days (asset, day, revision, act, reason, actor, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
)

// Close closes a day in tx with its figures. Movements since the figures were read cannot change them: they are dated
// later, or belong to the next day as late ones. It refuses if the day was closed meanwhile, an earlier day was
// reopened, statements or exceptions changed, or a statement is being read.
func (b *Books) Close(tx *db.Tx, f Figures, request string) error {
	if err := b.Closable(f); err != nil {
		return err
	}
	var previous *int64
	if f.Previous.Revision > 0 {
		now, err := closedOf(tx, lockClosed, f.Asset, f.Day-1)
		if err != nil {
			return err
		}
		if now.Revision != f.Previous.Revision {
			return errChanged("The day before")
		}
		n := int64(f.Day - 1)
		previous = &n
	}
	if err := reconcile.CheckRead(tx, modeOf(f.Asset), b.clock.Now()); err != nil {
		return err
	}
	if err := sameGiven(tx, f); err != nil {
		return err
	}
	n, err := tx.Exec(insertClosed, f.Asset, int64(f.Day), previous, f.Times+1, request, b.clock.Now())
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.Wrap(db.ErrUnique, problem.Duplicate, "day_closed", f.Day.String()+" is closed, or another day was closed first")
	}
	for _, a := range f.Accounts {
		var theirs *int64
		if a.Theirs != nil {
			n := int64(*a.Theirs)
			theirs = &n
		}
		tx.Defer(insertAccount, 1, f.Asset, int64(f.Day), f.Times+1, a.ID, int64(a.Opening), int64(a.In), int64(a.Out), int64(a.Late), int64(a.Closing), theirs, int64(a.Explained))
		for _, m := range a.Moves {
			tx.Defer(insertMove, 1, f.Asset, int64(f.Day), f.Times+1, a.ID, int64(m.Day), m.Kind, int64(m.In), int64(m.Out), m.Count)
		}
	}
	return nil
}

// sameGiven refuses figures whose statements or exceptions changed since they were read.
func sameGiven(tx *db.Tx, f Figures) error {
	g, err := givenOf(tx, f.Asset, f.Day)
	if err != nil {
		return err
	}
	seen := map[ledger.AccountID]bool{}
	for _, a := range f.Accounts {
		seen[a.ID] = true
		explained := money.Pesewas(0)
		for _, x := range g.exceptions[a.ID] {
			explained += x.Amount
		}
		theirs, typed := g.theirs[a.ID]
		if explained != a.Explained || a.ID != ledger.Transit && (typed != (a.Theirs != nil) || typed && theirs != *a.Theirs) {
			return errChanged("A statement or an exception of the day")
		}
	}
	for id := range g.theirs {
		if !seen[id] {
			return errChanged("A statement of the day")
		}
	}
	return nil
}

// errChanged returns the refusal of figures that have changed since they were signed.
func errChanged(what string) error {
	return problem.New(problem.Invalid, "changed_since", what+" has changed since this was requested")
}

// LastClosed returns the last closed day of an asset. It is zero if there is none.
func (b *Books) LastClosed(ctx context.Context, asset ledger.Asset) (Closed, error) {
	return db.Get(ctx, b.db, func(tx *db.Tx) (Closed, error) { return closedOf(tx, selectLast, asset, firstDay) })
}

// Behind returns how many days behind the last closed one could be closed by now. Books without a closed day are not behind.
func (b *Books) Behind(last Closed) int {
	if last.Revision == 0 {
		return 0
	}
	return max(0, int(DayOf(b.clock.Now().Add(-Lag))-1-last.Day))
}

const selectDays = `SELECT day FROM closed_days WHERE asset = $1 AND day BETWEEN $2 AND $3`

// ClosedDays returns which of the days from first to last are closed.
func (b *Books) ClosedDays(ctx context.Context, asset ledger.Asset, first, last Day) (closed map[Day]bool, err error) {
	err = b.db.Read(ctx, func(tx *db.Tx) error {
		closed = map[Day]bool{}
		return tx.Query(selectDays, []any{asset, int64(first), int64(last)}, func(r *db.Row) error {
			var day Day
			err := r.Scan(&day)
			closed[day] = true
			return err
		})
	})
	return closed, err
}

// IsClosed reports whether the day of a time is closed.
func (b *Books) IsClosed(ctx context.Context, asset ledger.Asset, at time.Time) (bool, error) {
	day := DayOf(at)
	closed, err := b.ClosedDays(ctx, asset, day, day)
	return closed[day], err
}

// CheckReopen refuses a day that is not the last closed day.
func CheckReopen(last Closed, day Day) error {
	switch {
	case last.Revision == 0 || day > last.Day:
		return problem.Field("day", "is not closed")
	case day < last.Day:
		return problem.Field("day", fmt.Sprintf("must be %s: only the last closed day can be reopened", last.Day))
	}
	return nil
}

// Reopen reopens the last closed day in tx, if it still has a revision. The signed figures stay stored.
func (b *Books) Reopen(tx *db.Tx, asset ledger.Asset, day Day, revision int64, request, reason, actor string) error {
	now, err := closedOf(tx, lockClosed, asset, day)
	if err != nil {
		return err
	}
	last, err := closedOf(tx, selectLast, asset, firstDay)
	if err == nil {
		err = CheckReopen(last, day)
	}
	if err == nil && now.Revision != revision {
		err = errChanged("The day")
	}
	if err != nil {
		return err
	}
	tx.Defer(insertReopen, 1, asset, int64(day), revision, request, reason, actor, b.clock.Now())
	tx.Defer(dropClosed, 1, asset, int64(day), revision)
	return nil
}
