package book

import (
	"context"
	"slices"
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

// setOfPayments is the number of payments that one step of a check reads.
const setOfPayments = 1000

// Check compares every payment with the ledger and the history counters:
//
//   - clearing equals the amounts and fees of the open payments, row by row;
//   - each Reference was debited once, by its amount and fee;
//   - final payments, and only these, have the one final leg of their status;
//   - the refunded amount of a collection equals the sum of its refunds;
//   - test and live money are separate;
//   - the counters equal the numbers of rows.
//
// It reads all rows in sets, each in one snapshot. ledger.Check verifies the sums of the accounts.
func (rd *Reader) Check(ctx context.Context) (Report, error) {
	ctx = db.Bulk(ctx, "")
	return rd.check(func(set func(tx *db.Tx) error) error { return rd.db.ReadSnapshot(ctx, set) })
}

// CheckIn is Check in the caller's transaction.
func (rd *Reader) CheckIn(tx *db.Tx) (Report, error) {
	return rd.check(func(set func(tx *db.Tx) error) error { return set(tx) })
}

func (rd *Reader) check(in func(set func(tx *db.Tx) error) error) (Report, error) {
	report := Report{At: rd.clock.Now()}
	for last, n := "", setOfPayments; n == setOfPayments; report.Payments += int64(n) {
		err := in(func(tx *db.Tx) (err error) { last, n, err = CheckAfter(tx, last, &report.Findings); return err })
		if err != nil {
			return Report{}, err
		}
	}
	for last, n := "", setOfPayments; n == setOfPayments; {
		err := in(func(tx *db.Tx) (err error) { last, n, err = checkSubjectsAfter(tx, last, &report.Findings); return err })
		if err != nil {
			return Report{}, err
		}
	}
	for l, found := (history.List{}), true; found; {
		err := in(func(tx *db.Tx) (err error) { l, found, err = history.NextList(tx, l); return err })
		for block, whole := int64(0), !found; !whole && err == nil; block++ {
			err = in(func(tx *db.Tx) (err error) { whole, err = history.CheckBlock(tx, l, block, report.Add); return err })
		}
		if err != nil {
			return Report{}, err
		}
	}
	return report, nil
}

const (
	idsAfter      = `SELECT id FROM payments WHERE id > $1 ORDER BY id LIMIT $2`
	subjectsAfter = `SELECT subject FROM transfers WHERE subject > $1 ORDER BY subject, leg LIMIT $2`
)

// CheckAfter checks the setOfPayments payments whose ids follow after. It returns the last id and the number of
// checked payments. A smaller number than setOfPayments means that there are no more.
func CheckAfter(tx *db.Tx, after string, found *ledger.Findings) (last string, n int, err error) {
	ids, err := tx.Texts(idsAfter, after, setOfPayments)
	if err != nil || len(ids) == 0 {
		return after, 0, err
	}
	return ids[len(ids)-1], len(ids), CheckPayments(tx, ids, found)
}

const listsAfter = `SELECT tenant, kind, min(seq) FROM payments WHERE id > $1 GROUP BY tenant, kind`

// CheckLists checks the tenants' lists of payments. In each list it checks the part from the first payment whose id
// follows after.
func CheckLists(tx *db.Tx, after string, found *ledger.Findings) error {
	lists := map[history.List]int64{}
	err := tx.Query(listsAfter, []any{after}, func(r *db.Row) error {
		var l history.List
		var first int64
		err := r.Scan(&l.Tenant, &l.Kind, &first)
		lists[l] = first
		return err
	})
	for l, first := range lists {
		if err == nil {
			err = history.CheckSince(tx, l, first, found.Add)
		}
	}
	return err
}

// SetIsFull reports whether payments may follow a set of n payments.
func SetIsFull(n int) bool { return n == setOfPayments }

// checkSubjectsAfter compares clearing with the payments, for the next set of subjects after a given subject.
func checkSubjectsAfter(tx *db.Tx, after string, found *ledger.Findings) (last string, n int, err error) {
	subjects, err := tx.Texts(subjectsAfter, after, setOfPayments)
	if err != nil || len(subjects) == 0 {
		return after, 0, err
	}
	last, n = subjects[len(subjects)-1], len(subjects) // read before Compact, which clears the end of the slice
	return last, n, CheckClearing(tx, slices.Compact(subjects), found)
}

// CheckPayments checks the payments with these ids: their transfers, refunds and places in lists. For an id without a
// payment it checks only that clearing has no balance for it.
func CheckPayments(tx *db.Tx, ids []string, found *ledger.Findings) error {
	for _, check := range []func(*db.Tx, []string, *ledger.Findings) error{CheckClearing, checkLegs, checkRefunds, checkPlaces} {
		if err := check(tx, ids, found); err != nil {
			return err
		}
	}
	return nil
}

const wrongClearing = `SELECT id, CAST(sum(held) AS INTEGER), CAST(sum(due) AS INTEGER) FROM (
	SELECT subject AS id, CASE WHEN to_account = 'clearing' THEN amount ELSE -amount END AS held, 0 AS due FROM transfers
	WHERE subject IN (SELECT value FROM texts($1)) AND asset IN ('GHS', 'TEST_GHS') AND (to_account = 'clearing' OR from_account = 'clearing')
	UNION ALL SELECT id, 0, amount + charges FROM payments WHERE id IN (SELECT value FROM texts($1)) AND status = 'pending' AND kind <> 'collection'
) AS x GROUP BY id HAVING sum(held) <> sum(due) ORDER BY id LIMIT 100`

// CheckClearing compares the balance in clearing for each subject with the amount and charges of its open payment.
func CheckClearing(tx *db.Tx, subjects []string, found *ledger.Findings) error {
	return tx.Query(wrongClearing, []any{subjects}, func(r *db.Row) error {
		var id string
		var held, due int64
		err := r.Scan(&id, &held, &due)
		found.Add("clearing holds %s for %s, of which %s is open", money.Pesewas(held), id, money.Pesewas(due))
		return err
	})
}

// Each query lists payments whose ledger transfers do not match their status.
const (
	// A payment debits the wallet, or the reserve of its batch, exactly once. Three kinds of payments debit
	// nothing: a waiting top-up, a top-up whose payer never paid, and the receiver's side of a transfer between
	// wallets.
	wrongHolds = `SELECT p.id, p.kind, p.status, COALESCE(h.amount, 0), COALESCE(f.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'fee'
WHERE p.id IN (SELECT value FROM texts($1)) AND (p.kind = 'collection' AND (h.amount IS NOT NULL OR f.amount IS NOT NULL)
OR p.kind <> 'collection' AND (COALESCE(f.amount, 0) <> CASE WHEN h.amount IS NULL THEN 0 ELSE p.charges END
	OR h.amount IS NULL AND NOT (p.parent <> '' AND (p.channel = 'WALLET' OR p.status IN ('waiting', 'failed')))
	OR h.amount IS NOT NULL AND (h.amount <> p.amount OR p.status = 'waiting' OR h.from_account <> CASE WHEN p.batch = '' THEN 'wallet:' ELSE 'reserve/' END || p.tenant)))
ORDER BY p.id LIMIT 100`

	// The comparison ignores the account part of a float's name, because earlier releases posted without an account.
	fromFinal = `COALESCE(CASE WHEN substr(f.from_account, 1, length(p.rail) + 7) = 'float/' || p.rail || '/' THEN 'float/' || p.rail ELSE f.from_account END, '')`
	toFinal   = `COALESCE(CASE WHEN substr(f.to_account, 1, length(p.rail) + 7) = 'float/' || p.rail || '/' THEN 'float/' || p.rail ELSE f.to_account END, '')`

	wrongFinals = `SELECT p.id, p.kind, p.status, COALESCE(f.amount, 0), COALESCE(c.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'final'
LEFT JOIN transfers AS c ON c.subject = p.id AND c.leg = 'final_fee'
WHERE p.id IN (SELECT value FROM texts($1)) AND ` + fromFinal + ` || ' ' || ` + toFinal + ` || ' ' || COALESCE(f.amount, 0) || ' ' || COALESCE(c.amount, 0) <> CASE
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
WHERE p.id IN (SELECT value FROM texts($1)) AND t.asset <> CASE WHEN p.mode = 'live' THEN 'GHS' ELSE 'TEST_GHS' END ORDER BY p.id LIMIT 100`
)

func checkLegs(tx *db.Tx, ids []string, found *ledger.Findings) error {
	amounts := func(what string) func(*db.Row) error {
		return func(r *db.Row) error {
			var id, kind, status string
			var amount, fee int64
			err := r.Scan(&id, &kind, &status, &amount, &fee)
			found.Add("%s %s is %s and has a %s of %s with a fee of %s", kind, id, status, what, money.Pesewas(amount), money.Pesewas(fee))
			return err
		}
	}
	if err := tx.Query(wrongHolds, []any{ids}, amounts("hold")); err != nil {
		return err
	}
	if err := tx.Query(wrongFinals, []any{ids}, amounts("final leg")); err != nil {
		return err
	}
	return tx.Query(wrongAssets, []any{ids}, func(r *db.Row) error {
		var id, kind, leg, mode, moved string
		err := r.Scan(&id, &kind, &leg, &mode, &moved)
		found.Add("%s %s is %s and moved %s by its leg %s", kind, id, mode, moved, leg)
		return err
	})
}

const (
	refundedBy = `SELECT DISTINCT refund_of FROM payments WHERE id IN (SELECT value FROM texts($1)) AND refund_of <> ''`

	// The refunded amount of a collection is the sum of its refunds that did not fail.
	wrongRefunded = `SELECT c.id, c.refunded, COALESCE(r.amount, 0) FROM payments AS c
LEFT JOIN (SELECT refund_of, CAST(sum(amount) AS INTEGER) AS amount FROM payments
	WHERE refund_of IN (SELECT value FROM texts($1)) AND refund_of <> '' AND status <> 'failed' GROUP BY refund_of) AS r
ON r.refund_of = c.id WHERE c.id IN (SELECT value FROM texts($1)) AND c.refunded <> COALESCE(r.amount, 0) ORDER BY c.id LIMIT 100`

	lostRefunds = `SELECT r.id, r.refund_of FROM payments AS r LEFT JOIN payments AS c ON c.id = r.refund_of
AND c.tenant = r.tenant AND c.mode = r.mode AND c.kind = 'collection' WHERE r.id IN (SELECT value FROM texts($1)) AND r.refund_of <> '' AND c.id IS NULL
ORDER BY r.id LIMIT 100`
)

// checkRefunds compares the refunded amounts of collections with their refunds. ids may be ids of collections or of
// refunds.
func checkRefunds(tx *db.Tx, ids []string, found *ledger.Findings) error {
	collections, err := tx.Texts(refundedBy, ids)
	if err != nil {
		return err
	}
	err = tx.Query(wrongRefunded, []any{append(collections, ids...)}, func(r *db.Row) error {
		var id string
		var refunded, sum int64
		err := r.Scan(&id, &refunded, &sum)
		found.Add("collection %s counts %s as refunded, its refunds are %s", id, money.Pesewas(refunded), money.Pesewas(sum))
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(lostRefunds, []any{ids}, func(r *db.Row) error {
		var id, of string
		err := r.Scan(&id, &of)
		found.Add("refund %s is of the collection %s, which its account does not have", id, of)
		return err
	})
}

const wrongPlaces = `SELECT p.id, p.kind, p.tenant, p.seq, COALESCE(e.total, 0) FROM payments AS p
LEFT JOIN payment_ends AS e ON e.tenant = p.tenant AND e.kind = p.kind
WHERE p.id IN (SELECT value FROM texts($1)) AND (e.total IS NULL OR p.seq > e.total OR p.created_at > e.last_at) ORDER BY p.id LIMIT 100`

// checkPlaces checks that the end of each list is not before the number and time of any payment in it.
func checkPlaces(tx *db.Tx, ids []string, found *ledger.Findings) error {
	return tx.Query(wrongPlaces, []any{ids}, func(r *db.Row) error {
		var id, kind, tenant string
		var seq, total int64
		err := r.Scan(&id, &kind, &tenant, &seq, &total)
		found.Add("%s %s of %s is number %d, its list ends before it, at %d", kind, id, tenant, seq, total)
		return err
	})
}
