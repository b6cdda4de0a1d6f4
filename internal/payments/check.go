package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
)

// Report is what Check found.
type Report struct {
	At       time.Time
	Payments int64 // looked at
	Problems []string
}

// OK says that nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// problemsShown bounds a report: where this much is wrong, more lines say no
// more.
const problemsShown = 100

func (r *Report) add(format string, args ...any) {
	if len(r.Problems) < problemsShown {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Check holds every payment against the ledger and the histories' numbers, on
// one snapshot: clearing is what the open payments hold, row by row, amount plus
// fee; each Reference was debited once, by its amount and its fee; each payment
// that is final, and no other, has the one final leg that its status asks for;
// test and live money never meet; and the counters say what the rows say. It
// reads everything. The accounts' own sums are the ledger's Check.
func (p *Payments) Check(ctx context.Context) (report Report, err error) {
	err = p.db.ReadWhole(ctx, func(tx *db.Tx) error {
		report = Report{At: p.clock.Now()}
		if _, err := tx.One(`SELECT count(*) FROM payments`, nil, &report.Payments); err != nil {
			return err
		}
		for _, check := range []func(*db.Tx, *Report) error{p.checkClearing, checkLegs, checkLists, checkCounters} {
			if err := check(tx, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}

const openPayments = `SELECT id, mode, amount + charges FROM payments WHERE status = 'pending' AND kind <> 'collection'`

// checkClearing compares clearing with the open payments, row by row.
func (p *Payments) checkClearing(tx *db.Tx, report *Report) error {
	held := map[string]int64{}
	for _, a := range []ledger.Asset{ledger.GHS, ledger.TestGHS} {
		err := p.ledger.HeldBySubject(tx, ledger.Key{Asset: a, ID: ledger.Clearing}, func(subject string, amount int64) error {
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
			report.add("open payment %s: clearing holds %s of %s", id, money.Pesewas(held[key]), money.Pesewas(amount))
		}
		delete(held, key)
		return nil
	})
	for key, amount := range held {
		report.add("clearing holds %s for %s, which is not open", money.Pesewas(amount), key)
	}
	return err
}

// Each of these lists payments whose legs in the ledger are not what their state
// asks for.
const (
	// A payment that takes from the wallet has taken exactly once. A top-up that
	// waits for its payer has not, and one that was never paid for never did; nor
	// does the taker's side of a transfer between wallets.
	wrongHolds = `SELECT p.id, p.kind, p.status, COALESCE(h.amount, 0), COALESCE(f.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'fee'
WHERE p.kind = 'collection' AND (h.amount IS NOT NULL OR f.amount IS NOT NULL)
OR p.kind <> 'collection' AND (COALESCE(f.amount, 0) <> CASE WHEN h.amount IS NULL THEN 0 ELSE p.charges END
	OR h.amount IS NULL AND NOT (p.parent <> '' AND (p.channel = 'WALLET' OR p.status IN ('waiting', 'failed')))
	OR h.amount IS NOT NULL AND (h.amount <> p.amount OR p.status = 'waiting' OR h.from_account <> 'wallet:' || p.tenant))
ORDER BY p.id LIMIT 100`

	wrongFinals = `SELECT p.id, p.kind, p.status, COALESCE(f.amount, 0), COALESCE(c.amount, 0) FROM payments AS p
LEFT JOIN transfers AS h ON h.subject = p.id AND h.leg = 'hold'
LEFT JOIN transfers AS f ON f.subject = p.id AND f.leg = 'final'
LEFT JOIN transfers AS c ON c.subject = p.id AND c.leg = 'final_fee'
WHERE COALESCE(f.from_account, '') || ' ' || COALESCE(f.to_account, '') || ' ' || COALESCE(f.amount, 0) || ' ' || COALESCE(c.amount, 0) <> CASE
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
			report.add("%s %s is %s and has a %s of %s with a fee of %s", kind, id, status, what, money.Pesewas(amount), money.Pesewas(fee))
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
		report.add("%s %s is %s and moved %s by its leg %s", kind, id, mode, moved, leg)
		return err
	})
}

const (
	wrongEnds = `SELECT tenant, kind, CAST(sum(total) AS INTEGER), CAST(sum(n) AS INTEGER), CAST(sum(last) AS INTEGER) FROM (
	SELECT tenant, kind, total, 0 AS n, 0 AS last, last_at, 0 AS at FROM payment_ends
	UNION ALL SELECT tenant, kind, 0, count(*), max(seq), 0, max(created_at) FROM payments GROUP BY tenant, kind
) AS x GROUP BY tenant, kind HAVING sum(total) <> sum(n) OR sum(n) <> sum(last) OR sum(last_at) <> sum(at) ORDER BY tenant, kind LIMIT 100`

	// The first payment of each day, and a payment that is older than the one
	// before it.
	wrongDays = `SELECT tenant, kind, day, CAST(sum(first) AS INTEGER), CAST(sum(seq) AS INTEGER) FROM (
	SELECT tenant, kind, day, first, 0 AS seq FROM payment_days
	UNION ALL SELECT tenant, kind, created_at / 86400000000, 0, min(seq) FROM payments GROUP BY tenant, kind, created_at / 86400000000
) AS x GROUP BY tenant, kind, day HAVING sum(first) <> sum(seq) ORDER BY tenant, kind, day LIMIT 100`
)

// checkLists compares the lists' ends and days with their payments.
func checkLists(tx *db.Tx, report *Report) error {
	err := tx.Query(wrongEnds, nil, func(r *db.Row) error {
		var tenant, kind string
		var total, n, last int64
		err := r.Scan(&tenant, &kind, &total, &n, &last)
		report.add("the list of %s of %s ends at %d, its %d payments at %d", kind, tenant, total, n, last)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(wrongDays, nil, func(r *db.Row) error {
		var tenant, kind string
		var day, first, seq int64
		err := r.Scan(&tenant, &kind, &day, &first, &seq)
		report.add("day %d of the list of %s of %s begins at %d, its payments at %d", day, kind, tenant, first, seq)
		return err
	})
}

// The numbers in the text are blockRows: a test holds them to each other.
const wrongCounters = `SELECT tenant, kind, status, level, block, CAST(sum(n) AS INTEGER) FROM (
	SELECT tenant, kind, status, level, block, n FROM payment_counters
	UNION ALL SELECT tenant, kind, status, 0, (seq - 1) / 60, -(CAST(1 AS BIGINT) << CAST((seq - 1) % 60 AS INT)) FROM payments WHERE settled_at <> 0
	UNION ALL SELECT tenant, kind, status, 1, (seq - 1) / 1440, -1 FROM payments WHERE settled_at <> 0
	UNION ALL SELECT tenant, kind, status, 2, (seq - 1) / 34560, -1 FROM payments WHERE settled_at <> 0
) AS x GROUP BY tenant, kind, status, level, block HAVING sum(n) <> 0 ORDER BY tenant, kind, level, block, status LIMIT 100`

// checkCounters compares the histories' counters with the payments.
func checkCounters(tx *db.Tx, report *Report) error {
	return tx.Query(wrongCounters, nil, func(r *db.Row) error {
		var tenant, kind, status string
		var level, block, gap int64
		err := r.Scan(&tenant, &kind, &status, &level, &block, &gap)
		report.add("the counter of %s %s of %s in block %d of level %d is off by %d", status, kind, tenant, block, level, gap)
		return err
	})
}

// CheckFloat compares what a provider's own book says that we have there with
// ours, and answers the difference: zero, or by how much the provider has more.
func (p *Payments) CheckFloat(ctx context.Context, rail, mode string, book money.Pesewas) (money.Pesewas, error) {
	balance, err := p.ledger.Balance(ctx, ledger.Key{Asset: asset(mode), ID: ledger.Float(rail)})
	// Money at the provider is a negative balance, see AddFloat.
	return book + money.Pesewas(balance), err
}
