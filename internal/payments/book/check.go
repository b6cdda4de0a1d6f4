package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
)

// Report is the result of Check.
type Report struct {
	At       time.Time
	Payments int64 // number of checked payments
	ledger.Findings
}

// Check compares every payment with the ledger and the history counters, on one snapshot:
//
//   - clearing equals the amounts and fees of the open payments, row by row;
//   - each Reference was debited once, by its amount and fee;
//   - final payments, and only these, have the one final leg of their status;
//   - the refunded amount of a collection equals the sum of its refunds;
//   - test and live money are separate;
//   - the counters equal the numbers of rows.
//
// It reads all rows. ledger.Check verifies the sums of the accounts.
func (rd *Reader) Check(ctx context.Context) (report Report, err error) {
	err = rd.db.ReadWhole(ctx, func(tx *db.Tx) (err error) {
		report, err = rd.CheckIn(tx)
		return err
	})
	return report, err
}

// CheckIn is Check in the caller's transaction.
func (rd *Reader) CheckIn(tx *db.Tx) (Report, error) {
	report := Report{At: rd.clock.Now()}
	if _, err := tx.One(`SELECT count(*) FROM payments`, nil, &report.Payments); err != nil {
		return Report{}, err
	}
	for _, check := range []func(*db.Tx, *Report) error{rd.checkClearing, checkLegs, checkRefunds, checkHistory} {
		if err := check(tx, &report); err != nil {
			return Report{}, err
		}
	}
	return report, nil
}

const openPayments = `SELECT id, mode, amount + charges FROM payments WHERE status = 'pending' AND kind <> 'collection'`

// checkClearing compares clearing with the open payments, row by row.
func (rd *Reader) checkClearing(tx *db.Tx, report *Report) error {
	held := map[string]int64{}
	for _, a := range []ledger.Asset{ledger.GHS, ledger.TestGHS} {
		err := rd.ledger.HeldBySubject(tx, ledger.Key{Asset: a, ID: ledger.Clearing}, func(subject string, amount int64) error {
			held[string(a)+" "+subject] += amount
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := tx.Query(openPayments, nil, func(r *db.Row) error {
		var id, mode string
		var amount int64
		if err := r.Scan(&id, &mode, &amount); err != nil {
			return err
		}
		key := string(asset(mode)) + " " + id
		if held[key] != amount {
			report.Add("open payment %s: clearing holds %s of %s", id, money.Pesewas(held[key]), money.Pesewas(amount))
		}
		delete(held, key)
		return nil
	})
	for key, amount := range held {
		report.Add("clearing holds %s for %s, which is not open", money.Pesewas(amount), key)
	}
	return err
}

// Each query lists payments whose ledger legs do not match their status.
const (
	// A payment debits the wallet, or the reserve of its batch, exactly once. Three kinds debit nothing: a waiting
	// top-up, a top-up whose payer never paid, and the receiver's side of a transfer between wallets.
	wrongHolds = `SELECT p.id, p.kind, p.status, COALESCE(h.amount, 0), COALESCE(f.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'fee'
WHERE p.kind = 'collection' AND (h.amount IS NOT NULL OR f.amount IS NOT NULL)
OR p.kind <> 'collection' AND (COALESCE(f.amount, 0) <> CASE WHEN h.amount IS NULL THEN 0 ELSE p.charges END
	OR h.amount IS NULL AND NOT (p.parent <> '' AND (p.channel = 'WALLET' OR p.status IN ('waiting', 'failed')))
	OR h.amount IS NOT NULL AND (h.amount <> p.amount OR p.status = 'waiting' OR h.from_account <> CASE WHEN p.batch = '' THEN 'wallet:' ELSE 'reserve/' END || p.tenant))
ORDER BY p.id LIMIT 100`

	// An account at the provider counts as its float, because earlier releases posted without an account.
	fromFinal = `COALESCE(CASE WHEN substr(f.from_account, 1, length(p.rail) + 7) = 'float/' || p.rail || '/' THEN 'float/' || p.rail ELSE f.from_account END, '')`
	toFinal   = `COALESCE(CASE WHEN substr(f.to_account, 1, length(p.rail) + 7) = 'float/' || p.rail || '/' THEN 'float/' || p.rail ELSE f.to_account END, '')`

	wrongFinals = `SELECT p.id, p.kind, p.status, COALESCE(f.amount, 0), COALESCE(c.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'final'
LEFT JOIN transfers AS c ON c.subject = p.id AND c.leg = 'final_fee'
WHERE ` + fromFinal + ` || ' ' || ` + toFinal + ` || ' ' || COALESCE(f.amount, 0) || ' ' || COALESCE(c.amount, 0) <> CASE
	WHEN p.status IN ('waiting', 'pending') THEN '  0 0'
	WHEN p.kind = 'collection' AND p.status = 'success' AND p.fee_bearer <> 'customer' AND p.amount = p.charges THEN '  0 ' || p.charges
	WHEN p.kind = 'collection' AND p.status = 'success' THEN 'float/' || p.rail || ' wallet:' || p.tenant || ' '
		|| CASE WHEN p.fee_bearer = 'customer' THEN p.amount ELSE p.amount - p.charges END || ' ' || p.charges
	WHEN p.kind = 'collection' THEN '  0 0'
	WHEN p.channel = 'WALLET' AND p.parent <> '' THEN '  0 0'
	WHEN p.channel = 'WALLET' THEN 'clearing wallet:' || p.account || ' ' || p.amount || ' 0'
	WHEN p.status = 'success' THEN 'clearing float/' || p.rail || ' ' || p.amount || ' ' || p.charges
	WHEN h.amount IS NULL THEN '  0 0'
	ELSE 'clearing wallet:' || p.tenant || ' ' || (p.amount + p.charges) || ' 0' END
ORDER BY p.id LIMIT 100`

	wrongAssets = `SELECT p.id, p.kind, t.leg, p.mode, t.asset FROM payments AS p JOIN transfers AS t ON t.subject = p.id
WHERE t.asset <> CASE WHEN p.mode = 'live' THEN 'GHS' ELSE 'TEST_GHS' END ORDER BY p.id LIMIT 100`
)

func checkLegs(tx *db.Tx, report *Report) error {
	amounts := func(what string) func(*db.Row) error {
		return func(r *db.Row) error {
			var id, kind, status string
			var amount, fee int64
			err := r.Scan(&id, &kind, &status, &amount, &fee)
			report.Add("%s %s is %s and has a %s of %s with a fee of %s", kind, id, status, what, money.Pesewas(amount), money.Pesewas(fee))
			return err
		}
	}
	if err := tx.Query(wrongHolds, nil, amounts("hold")); err != nil {
		return err
	}
	if err := tx.Query(wrongFinals, nil, amounts("final leg")); err != nil {
		return err
	}
	return tx.Query(wrongAssets, nil, func(r *db.Row) error {
		var id, kind, leg, mode, moved string
		err := r.Scan(&id, &kind, &leg, &mode, &moved)
		report.Add("%s %s is %s and moved %s by its leg %s", kind, id, mode, moved, leg)
		return err
	})
}

const (
	// A collection counts exactly its refunds that did not fail.
	wrongRefunded = `SELECT c.id, c.refunded, COALESCE(r.amount, 0) FROM payments AS c
LEFT JOIN (SELECT refund_of, CAST(sum(amount) AS INTEGER) AS amount FROM payments WHERE refund_of <> '' AND status <> 'failed' GROUP BY refund_of) AS r
ON r.refund_of = c.id WHERE c.refunded <> COALESCE(r.amount, 0) ORDER BY c.id LIMIT 100`

	lostRefunds = `SELECT r.id, r.refund_of FROM payments AS r LEFT JOIN payments AS c ON c.id = r.refund_of
AND c.tenant = r.tenant AND c.mode = r.mode AND c.kind = 'collection' WHERE r.refund_of <> '' AND c.id IS NULL ORDER BY r.id LIMIT 100`
)

// checkRefunds compares collections with their refunds.
func checkRefunds(tx *db.Tx, report *Report) error {
	err := tx.Query(wrongRefunded, nil, func(r *db.Row) error {
		var id string
		var refunded, sum int64
		err := r.Scan(&id, &refunded, &sum)
		report.Add("collection %s counts %s as refunded, its refunds are %s", id, money.Pesewas(refunded), money.Pesewas(sum))
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(lostRefunds, nil, func(r *db.Row) error {
		var id, of string
		err := r.Scan(&id, &of)
		report.Add("refund %s is of the collection %s, which its account does not have", id, of)
		return err
	})
}

func checkHistory(tx *db.Tx, report *Report) error { return history.Check(tx, report.Add) }
