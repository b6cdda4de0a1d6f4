package closing

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/tenant"
)

// Exception explains a part of the difference between a statement and our books.
type Exception struct {
	ID      string
	Account ledger.AccountID
	Amount  money.Pesewas // the part of the difference (statement less our books) that it explains
	Text    string
	Actor   string
	At      time.Time
}

const (
	selectTheirs = `SELECT account, theirs FROM day_balances WHERE asset = $1 AND day = $2 ORDER BY account`
	setTheirs    = `INSERT INTO day_balances (asset, day, account, theirs, actor, at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (asset, day, account) DO UPDATE SET theirs = excluded.theirs, actor = excluded.actor, at = excluded.at`
	selectExceptions = `SELECT id, account, amount, text, actor, at FROM day_exceptions WHERE asset = $1 AND day = $2 ORDER BY account, at, id`
	insertException  = `INSERT INTO day_exceptions (id, asset, day, account, amount, text, actor, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	countExceptions  = `SELECT count(*) FROM day_exceptions WHERE asset = $1 AND day = $2`
)

// mostExceptions bounds the exceptions of a day.
const mostExceptions = 500

// given are the balances and exceptions of a day that are not computed: those of imported statements, and those that
// people entered.
type given struct {
	theirs     map[ledger.AccountID]money.Pesewas
	exceptions map[ledger.AccountID][]Exception
}

// ByStatement is the actor of exceptions that imported statements have.
const ByStatement = "statement"

// modeOf returns the mode of an asset's money.
func modeOf(asset ledger.Asset) string {
	if asset == ledger.TestGHS {
		return string(tenant.Test)
	}
	return string(tenant.Live)
}

// givenOf reads the given balances and exceptions of a day. An imported statement has precedence over an entered
// balance.
func givenOf(tx *db.Tx, asset ledger.Asset, day Day) (given, error) {
	g, err := typedOf(tx, asset, day)
	if err != nil {
		return g, err
	}
	list, err := reconcile.AtDay(tx, modeOf(asset), day.Begin(), day.End())
	for _, one := range list {
		g.theirs[one.Account] = one.Balance
		for _, r := range one.Reasons {
			g.exceptions[one.Account] = append(g.exceptions[one.Account], Exception{ID: r.ID, Account: one.Account, Amount: r.Amount, Text: r.Text, Actor: ByStatement, At: r.At})
		}
	}
	return g, err
}

// asSigned returns the exceptions of an account of a closed day: those that people entered, and the rest that was
// signed.
func asSigned(a Account, typed []Exception) []Exception {
	rest := a.Explained
	for _, x := range typed {
		rest -= x.Amount
	}
	if rest != 0 {
		typed = append(typed, Exception{Account: a.ID, Amount: rest, Text: "Exceptions of the statements, as signed", Actor: ByStatement})
	}
	return typed
}

func typedOf(tx *db.Tx, asset ledger.Asset, day Day) (g given, err error) {
	g = given{map[ledger.AccountID]money.Pesewas{}, map[ledger.AccountID][]Exception{}}
	err = tx.Query(selectTheirs, []any{asset, int64(day)}, func(r *db.Row) error {
		var id ledger.AccountID
		var n money.Pesewas
		err := r.Scan(&id, &n)
		g.theirs[id] = n
		return err
	})
	if err != nil {
		return g, err
	}
	err = tx.Query(selectExceptions, []any{asset, int64(day)}, func(r *db.Row) error {
		var x Exception
		err := r.Scan(&x.ID, &x.Account, &x.Amount, &x.Text, &x.Actor, &x.At)
		g.exceptions[x.Account] = append(g.exceptions[x.Account], x)
		return err
	})
	return g, err
}

// Balance is the closing balance of an account by its statement.
type Balance struct {
	Account ledger.AccountID `json:"account"`
	Amount  money.Pesewas    `json:"pesewas"`
}

// CheckGiven refuses an account that has no statement. Money in transit has none, because the transfers in transit
// explain it.
func CheckGiven(field string, id ledger.AccountID) error {
	if !id.IsFloat() && !id.IsBank() || len(id) > 120 {
		return problem.Field(field, "must be a float or a bank account, such as float/mtn/disbursement or bank/gcb-main, and is "+string(id))
	}
	return nil
}

// CheckOpen refuses a day that is closed, or has not begun.
func (b *Books) CheckOpen(ctx context.Context, asset ledger.Asset, day Day) error {
	return b.db.Read(ctx, func(tx *db.Tx) error { return b.open(tx, asset, day) })
}

func (b *Books) open(tx *db.Tx, asset ledger.Asset, day Day) error {
	if day > b.Today() {
		return problem.Field("day", "has not begun")
	}
	closed, err := closedOf(tx, selectClosed, asset, day)
	if err == nil && closed.Revision > 0 {
		err = errClosed(day)
	}
	return err
}

// lockOpen is open for a transaction that changes the day. Close locks the day before, too, so one of the two
// transactions sees the other's writes.
func (b *Books) lockOpen(tx *db.Tx, asset ledger.Asset, day Day) error {
	if _, err := closedOf(tx, lockClosed, asset, day-1); err != nil {
		return err
	}
	return b.open(tx, asset, day)
}

func errClosed(day Day) error {
	return problem.New(problem.Duplicate, "day_closed", day.String()+" is closed")
}

// SetTheirs stores the closing balances of statements of an open day in tx.
func (b *Books) SetTheirs(tx *db.Tx, asset ledger.Asset, day Day, list []Balance, actor string) error {
	if err := b.lockOpen(tx, asset, day); err != nil {
		return err
	}
	imported, err := reconcile.AtDay(tx, modeOf(asset), day.Begin(), day.End())
	if err != nil {
		return err
	}
	for _, one := range list {
		if err := CheckGiven("balances", one.Account); err != nil {
			return err
		}
		if slices.ContainsFunc(imported, func(g reconcile.Given) bool { return g.Account == one.Account }) {
			return problem.Field("balances", "must not name "+string(one.Account)+": its balance comes from an imported statement")
		}
		tx.Defer(setTheirs, 1, asset, int64(day), one.Account, int64(one.Amount), actor, b.clock.Now())
	}
	return nil
}

// AddException stores an exception of an open day in tx.
func (b *Books) AddException(tx *db.Tx, asset ledger.Asset, day Day, x Exception) error {
	if err := b.lockOpen(tx, asset, day); err != nil {
		return err
	}
	var n int64
	if _, err := tx.One(countExceptions, []any{asset, int64(day)}, &n); err != nil {
		return err
	}
	if n >= mostExceptions {
		return problem.Field("day", "already has the maximum number of exceptions")
	}
	tx.Defer(insertException, 1, x.ID, asset, int64(day), x.Account, int64(x.Amount), x.Text, x.Actor, b.clock.Now())
	return nil
}
