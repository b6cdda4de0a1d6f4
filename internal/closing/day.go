package closing

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/treasury"
)

// Move is the sum of the movements of one kind of an account. Day is the day of their dates: an earlier one for late movements.
type Move struct {
	Day     Day
	Kind    string
	In, Out money.Pesewas
	Count   int64
}

// Account is a float, a bank account or the money in transit on one day. Money that we have is above zero.
type Account struct {
	ID         ledger.AccountID
	Opening    money.Pesewas
	In, Out    money.Pesewas // movements with a date in this day
	Late       money.Pesewas // movements with a date in a day that was already closed
	Closing    money.Pesewas // by our books
	Theirs     *money.Pesewas
	Explained  money.Pesewas
	Moves      []Move
	Exceptions []Exception
}

// Difference returns the statement's closing balance less ours. It is zero without a statement.
func (a Account) Difference() money.Pesewas {
	if a.Theirs == nil {
		return 0
	}
	return *a.Theirs - a.Closing
}

// Unexplained returns the part of the difference that no exception explains.
func (a Account) Unexplained() money.Pesewas {
	if a.Theirs == nil {
		return 0
	}
	return a.Difference() - a.Explained
}

// Closed describes the closing of a day. It is zero for an open day.
type Closed struct {
	Day      Day
	Revision int64 // how often the day was closed
	Request  string
	At       time.Time
}

// Reopened is a day that was opened again.
type Reopened struct {
	Revision int64
	Request  string
	Reason   string
	Actor    string
	At       time.Time
}

// Figures are those of one day.
type Figures struct {
	Asset    ledger.Asset
	Day      Day
	Closed   Closed // zero: the day is open
	Previous Closed // zero: the previous day is open
	Last     Closed // the last day that is closed
	Times    int64  // how often the day was opened again
	Accounts []Account
	Reopened []Reopened
	Funds    Funds
	// LateLines are lines of statements with dates in closed days that were imported or changed after the previous
	// day was closed.
	LateLines []reconcile.LateLine
}

const (
	selectClosed   = `SELECT day, revision, act, closed_at FROM closed_days WHERE asset = $1 AND day = $2`
	selectLast     = `SELECT day, revision, act, closed_at FROM closed_days WHERE asset = $1 AND day >= $2 ORDER BY day DESC LIMIT 1`
	selectReopened = `SELECT revision, act, reason, actor, at FROM reopened_days WHERE asset = $1 AND day = $2 ORDER BY revision`
	selectAccounts = `SELECT account, opening, moved_in, moved_out, late, closing, theirs, explained FROM closed_accounts WHERE asset = $1 AND day = $2 AND revision = $3 ORDER BY account`
	selectMoves    = `SELECT account, of_day, kind, moved_in, moved_out, n FROM closed_moves WHERE asset = $1 AND day = $2 AND revision = $3 ORDER BY account, of_day, kind`
	// The movements of a day that are in the figures of closed days.
	selectKnown = `SELECT m.account, m.kind, CAST(sum(m.moved_in) AS INTEGER), CAST(sum(m.moved_out) AS INTEGER), CAST(sum(m.n) AS INTEGER) FROM closed_moves m
	JOIN closed_days d ON d.asset = m.asset AND d.day = m.day AND d.revision = m.revision WHERE m.asset = $1 AND m.of_day = $2 GROUP BY m.account, m.kind`
)

func closedOf(tx *db.Tx, sql string, asset ledger.Asset, day Day) (c Closed, err error) {
	err = tx.Query(sql, []any{asset, int64(day)}, func(r *db.Row) error { return r.Scan(&c.Day, &c.Revision, &c.Request, &c.At) })
	return c, err
}

// Figures reads a day on one snapshot. A closed day has the signed figures, an open one the present figures of the
// books.
func (b *Books) Figures(ctx context.Context, asset ledger.Asset, day Day) (f Figures, err error) {
	if err := (Period{asset, day, day}).Check(); err != nil {
		return f, err
	}
	err = b.db.ReadWhole(ctx, func(tx *db.Tx) error {
		f = Figures{Asset: asset, Day: day}
		var err error
		if f.Closed, err = closedOf(tx, selectClosed, asset, day); err != nil {
			return err
		}
		if f.Previous, err = closedOf(tx, selectClosed, asset, day-1); err != nil {
			return err
		}
		if f.Last, err = closedOf(tx, selectLast, asset, firstDay); err != nil {
			return err
		}
		if f.Reopened, err = reopenedOf(tx, asset, day); err != nil {
			return err
		}
		f.Times = int64(len(f.Reopened))
		if f.LateLines, err = lateLines(tx, f); err != nil {
			return err
		}
		if f.Closed.Revision > 0 {
			typed, err := typedOf(tx, asset, day)
			if err != nil {
				return err
			}
			f.Accounts, err = signed(tx, asset, f.Closed)
			for i, a := range f.Accounts {
				f.Accounts[i].Exceptions = asSigned(a, typed.exceptions[a.ID])
			}
			return err
		}
		g, err := givenOf(tx, asset, day)
		if err != nil {
			return err
		}
		f.Accounts, f.Funds, err = b.counted(tx, f, g)
		return err
	})
	if err == nil && f.Closed.Revision > 0 {
		f.Funds, err = b.Funds(ctx, asset, day)
	}
	f.Funds.Asset, f.Funds.Day = asset, day
	return f, err
}

// lateLines reads the lines of closed days that belong to the list of a day.
func lateLines(tx *db.Tx, f Figures) ([]reconcile.LateLine, error) {
	if f.Previous.Revision == 0 {
		return nil, nil
	}
	until := lastDay.End()
	if f.Closed.Revision > 0 {
		until = f.Closed.At
	}
	return reconcile.LateLines(tx, modeOf(f.Asset), f.Day.Begin(), f.Previous.At, until)
}

func reopenedOf(tx *db.Tx, asset ledger.Asset, day Day) ([]Reopened, error) {
	return db.All(tx, selectReopened, []any{asset, int64(day)}, func(one *Reopened, r *db.Row) error {
		return r.Scan(&one.Revision, &one.Request, &one.Reason, &one.Actor, &one.At)
	})
}

// signed reads the accounts of a closed day as they were signed.
func signed(tx *db.Tx, asset ledger.Asset, c Closed) (list []Account, err error) {
	at := map[ledger.AccountID]int{}
	err = tx.Query(selectAccounts, []any{asset, int64(c.Day), c.Revision}, func(r *db.Row) error {
		var a Account
		var theirs *int64
		err := r.Scan(&a.ID, &a.Opening, &a.In, &a.Out, &a.Late, &a.Closing, &theirs, &a.Explained)
		if theirs != nil {
			n := money.Pesewas(*theirs)
			a.Theirs = &n
		}
		at[a.ID] = len(list)
		list = append(list, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = tx.Query(selectMoves, []any{asset, int64(c.Day), c.Revision}, func(r *db.Row) error {
		var id ledger.AccountID
		var m Move
		err := r.Scan(&id, &m.Day, &m.Kind, &m.In, &m.Out, &m.Count)
		if n, known := at[id]; known {
			list[n].Moves = append(list[n].Moves, m)
		}
		return err
	})
	return list, err
}

// counted computes the accounts of an open day. An account begins with the balance that was signed for the previous
// day, or with the balance in the books. If the movements do not explain the closing balance, the rest has dates in
// days that were closed before.
func (b *Books) counted(tx *db.Tx, f Figures, g given) (list []Account, funds Funds, err error) {
	closing, err := ledger.BalancesBefore(tx, f.Asset, f.Day.End())
	if err != nil {
		return nil, funds, err
	}
	motions, err := ledger.Motions(tx, f.Asset, f.Day.Begin(), f.Day.End())
	if err != nil {
		return nil, funds, err
	}
	accounts := map[ledger.AccountID]*Account{}
	at := func(id ledger.AccountID) *Account {
		if accounts[id] == nil {
			accounts[id] = &Account{ID: id}
		}
		return accounts[id]
	}
	for id, n := range closing {
		if id.IsHeld() {
			at(id).Closing = money.Pesewas(-n)
		}
	}
	for _, m := range motions {
		if m.Account.IsHeld() { // the balance of money that we hold is negative, so a credit reduces the money
			a := at(m.Account)
			a.Moves = append(a.Moves, Move{f.Day, m.Kind, money.Pesewas(m.Out), money.Pesewas(m.In), m.Count})
			a.In += money.Pesewas(m.Out)
			a.Out += money.Pesewas(m.In)
		}
	}
	if err := b.openings(tx, f, at); err != nil {
		return nil, funds, err
	}
	for id, n := range g.theirs {
		at(id).Theirs = &n
	}
	if accounts[ledger.Transit] != nil {
		n, err := treasury.OnTheWayBefore(tx, f.Asset, f.Day.End())
		if err != nil {
			return nil, funds, err
		}
		at(ledger.Transit).Theirs = &n
	}
	late := false
	for _, a := range accounts {
		for _, x := range g.exceptions[a.ID] {
			a.Explained += x.Amount
		}
		a.Exceptions = g.exceptions[a.ID]
		a.Late = a.Closing - a.Opening - a.In + a.Out
		late = late || a.Late != 0
	}
	if late && f.Previous.Revision > 0 {
		if err := lateMoves(tx, f, accounts); err != nil {
			return nil, funds, err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(accounts), func(a, b ledger.AccountID) int { return strings.Compare(string(a), string(b)) }) {
		if a := *accounts[id]; a.Opening != 0 || a.Closing != 0 || len(a.Moves) > 0 || a.Theirs != nil && id != ledger.Transit {
			list = append(list, a)
		}
	}
	return list, fundsOf(closing), nil
}

// openings sets the opening balances: those that were signed for the previous day, or those of the books.
func (b *Books) openings(tx *db.Tx, f Figures, at func(ledger.AccountID) *Account) error {
	if f.Previous.Revision > 0 {
		before, err := signed(tx, f.Asset, f.Previous)
		for _, a := range before {
			at(a.ID).Opening = a.Closing
		}
		return err
	}
	opening, err := ledger.BalancesBefore(tx, f.Asset, f.Day.Begin())
	for id, n := range opening {
		if id.IsHeld() {
			at(id).Opening = money.Pesewas(-n)
		}
	}
	return err
}

// mostLate bounds the closed days that are searched for late movements. Older ones are in the sum only.
const mostLate = 62

// lateMoves adds the movements with dates in closed days that were booked after the days were signed, by day and
// kind.
func lateMoves(tx *db.Tx, f Figures, accounts map[ledger.AccountID]*Account) error {
	left := map[ledger.AccountID]money.Pesewas{}
	for id, a := range accounts {
		if a.Late != 0 {
			left[id] = a.Late
		}
	}
	for day := f.Day - 1; day >= f.Day-mostLate && len(left) > 0; day-- {
		closed, err := closedOf(tx, selectClosed, f.Asset, day)
		if err != nil || closed.Revision == 0 {
			return err
		}
		moves, err := sinceSigned(tx, f.Asset, day)
		if err != nil {
			return err
		}
		for id, list := range moves {
			if _, missing := left[id]; !missing {
				continue
			}
			for _, m := range list {
				accounts[id].Moves = append(accounts[id].Moves, m)
				left[id] -= m.In - m.Out
			}
			if left[id] == 0 {
				delete(left, id)
			}
		}
	}
	return nil
}

// sinceSigned compares the movements with dates in a closed day with those that closed days list for it.
func sinceSigned(tx *db.Tx, asset ledger.Asset, day Day) (map[ledger.AccountID][]Move, error) {
	type key struct {
		id   ledger.AccountID
		kind string
	}
	found := map[key]Move{}
	motions, err := ledger.Motions(tx, asset, day.Begin(), day.End())
	if err != nil {
		return nil, err
	}
	for _, m := range motions {
		if m.Account.IsHeld() {
			found[key{m.Account, m.Kind}] = Move{day, m.Kind, money.Pesewas(m.Out), money.Pesewas(m.In), m.Count}
		}
	}
	err = tx.Query(selectKnown, []any{asset, int64(day)}, func(r *db.Row) error {
		var k key
		var in, out money.Pesewas
		var n int64
		err := r.Scan(&k.id, &k.kind, &in, &out, &n)
		m := found[k]
		found[k] = Move{day, k.kind, m.In - in, m.Out - out, m.Count - n}
		return err
	})
	late := map[ledger.AccountID][]Move{}
	for k, m := range found {
		if m.Count != 0 || m.In != 0 || m.Out != 0 {
			late[k.id] = append(late[k.id], m)
		}
	}
	for _, list := range late {
		slices.SortFunc(list, func(a, b Move) int { return strings.Compare(a.Kind, b.Kind) })
	}
	return late, err
}
