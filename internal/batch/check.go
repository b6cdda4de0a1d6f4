package batch

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// Report is the result of Check.
type Report struct {
	Batches int64 // looked at
	ledger.Findings
}

const (
	checkRests = `SELECT tenant, mode, CAST(sum(rest) AS INTEGER) FROM batches WHERE status IN ('running', 'paused') GROUP BY tenant, mode`

	// The rest of a batch is the money that it reserved, less the money of its payouts and the money that was
	// returned.
	checkBatches = `SELECT b.id, b.status, b.rest, b.accepted, COALESCE(i.amount, 0), COALESCE(o.amount, 0), CAST(COALESCE(d.total, 0) AS INTEGER), COALESCE(d.n, 0) FROM batches b
LEFT JOIN transfers i ON i.subject = b.id AND i.leg = 'reserve'
LEFT JOIN transfers o ON o.subject = b.id AND o.leg = 'rest'
LEFT JOIN (SELECT batch, sum(amount + charges) AS total, count(*) AS n FROM payments WHERE batch <> '' AND batch IN (SELECT value FROM texts($1)) GROUP BY batch) AS d ON d.batch = b.id
WHERE b.id IN (SELECT value FROM texts($1)) AND (COALESCE(i.amount, 0) <> CASE WHEN b.started_at = 0 THEN 0 ELSE b.amount + b.charges END
OR b.rest <> COALESCE(i.amount, 0) - COALESCE(o.amount, 0) - COALESCE(d.total, 0) OR b.accepted <> COALESCE(d.n, 0)) ORDER BY b.id LIMIT 100`

	checkLinks = `SELECT b.id, b.accepted, COALESCE(r.n, 0) FROM batches b LEFT JOIN (
	SELECT r.batch, count(*) AS n FROM batch_rows r JOIN payments p ON p.id = r.payment AND p.batch = r.batch AND p.amount = r.amount AND p.charges = r.charges
	WHERE r.state = 'accepted' AND r.batch IN (SELECT value FROM texts($1)) GROUP BY r.batch) AS r ON r.batch = b.id
WHERE b.id IN (SELECT value FROM texts($1)) AND b.accepted <> COALESCE(r.n, 0) ORDER BY b.id LIMIT 100`

	checkStray = `SELECT p.id, p.batch FROM payments p LEFT JOIN batches b ON b.id = p.batch AND b.tenant = p.tenant WHERE p.batch <> '' AND p.batch > $1 AND ($2 = '' OR p.batch <= $2)
AND b.id IS NULL ORDER BY p.id LIMIT 100`

	countBatches = `SELECT count(*) FROM batches`
	batchesAfter = `SELECT id FROM batches WHERE id > $1 ORDER BY id LIMIT $2`
	batchesSince = `SELECT id FROM batches WHERE status IN ('running', 'paused') UNION SELECT id FROM batches WHERE ended_at >= $1 ORDER BY 1`

	// setOfBatches is how many batches one set of a check has.
	setOfBatches = 20
)

// Check compares the batches with the ledger and their payouts. The reserve of a tenant equals the rest of its
// batches. Each batch was debited once, by the cost of its rows. Each accepted row is one payout with its amount and
// fee. Check reads in sets, each in one snapshot.
func Check(ctx context.Context, d *db.DB) (report Report, err error) {
	ctx = db.Bulk(ctx, "")
	for last, whole := "", false; !whole && err == nil; {
		err = d.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			last, whole, err = CheckAfter(tx, last, &report.Findings)
			return err
		})
	}
	if err != nil {
		return Report{}, err
	}
	err = d.ReadSnapshot(ctx, func(tx *db.Tx) error {
		if _, err := tx.One(countBatches, nil, &report.Batches); err != nil {
			return err
		}
		return CheckReserves(tx, &report.Findings)
	})
	return report, err
}

// CheckAfter checks the set of batches that follows an id, and the payouts of batches that do not exist. It returns the last id of the
// set, and reports whether the set was the last one.
func CheckAfter(tx *db.Tx, after string, found *ledger.Findings) (last string, whole bool, err error) {
	ids, err := tx.Texts(batchesAfter, after, setOfBatches)
	if err != nil {
		return after, false, err
	}
	if whole = len(ids) < setOfBatches; !whole {
		last = ids[len(ids)-1]
	}
	if err := checkBatchesOf(tx, ids, found); err != nil {
		return after, false, err
	}
	return last, whole, tx.Query(checkStray, []any{after, last}, func(r *db.Row) error {
		var id, of string
		err := r.Scan(&id, &of)
		found.Add("payout %s is of batch %s, which does not exist", id, of)
		return err
	})
}

// CheckSince checks the running batches and those that ended since a time.
func CheckSince(tx *db.Tx, since int64, found *ledger.Findings) error {
	ids, err := tx.Texts(batchesSince, since)
	if err != nil {
		return err
	}
	for set := range slices.Chunk(ids, setOfBatches) {
		if err := checkBatchesOf(tx, set, found); err != nil {
			return err
		}
	}
	return nil
}

// CheckReserves compares the reserve of each tenant with the rest of its batches.
func CheckReserves(tx *db.Tx, found *ledger.Findings) error {
	rests := map[ledger.Key]int64{}
	err := tx.Query(checkRests, nil, func(r *db.Row) error {
		var of, mode string
		var rest int64
		err := r.Scan(&of, &mode, &rest)
		rests[ledger.Key{Asset: tenant.Tenant{Mode: tenant.Mode(mode)}.Money(), ID: ledger.Reserve(of)}] = rest
		return err
	})
	if err != nil {
		return err
	}
	accounts, err := ledger.TrialBalanceIn(tx)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if !strings.HasPrefix(string(a.ID), string(ledger.Reserve(""))) {
			continue
		}
		if rests[a.Key] != a.Balance {
			found.Add("%s %s holds %s, the batches have %s left", a.Asset, a.ID, money.Pesewas(a.Balance), money.Pesewas(rests[a.Key]))
		}
		delete(rests, a.Key)
	}
	for key, rest := range rests {
		if rest != 0 {
			found.Add("%s %s holds nothing, the batches have %s left", key.Asset, key.ID, money.Pesewas(rest))
		}
	}
	return nil
}

func checkBatchesOf(tx *db.Tx, ids []string, found *ledger.Findings) error {
	err := tx.Query(checkBatches, []any{ids}, func(r *db.Row) error {
		var id, status string
		var rest, accepted, in, out, drawn, n int64
		err := r.Scan(&id, &status, &rest, &accepted, &in, &out, &drawn, &n)
		found.Add("batch %s is %s and has %s left: it reserved %s, %d payouts of %d accepted rows used %s, and %s was returned", id, status, money.Pesewas(rest), money.Pesewas(in),
			n, accepted, money.Pesewas(drawn), money.Pesewas(out))
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(checkLinks, []any{ids}, func(r *db.Row) error {
		var id string
		var accepted, n int64
		err := r.Scan(&id, &accepted, &n)
		found.Add("batch %s accepted %d rows, of which %d are payouts of it", id, accepted, n)
		return err
	})
}
