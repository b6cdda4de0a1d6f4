package batch

import (
	"context"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// Report is what Check found.
type Report struct {
	Batches int64 // looked at
	ledger.Findings
}

const (
	checkRests = `SELECT tenant, mode, CAST(sum(rest) AS INTEGER) FROM batches GROUP BY tenant, mode`

	// The rest of a batch is its money, less what its payouts drew and what went back.
	checkBatches = `SELECT b.id, b.status, b.rest, b.accepted, COALESCE(i.amount, 0), COALESCE(o.amount, 0), CAST(COALESCE(d.total, 0) AS INTEGER), COALESCE(d.n, 0) FROM batches b
LEFT JOIN transfers i ON i.subject = b.id AND i.leg = 'reserve'
LEFT JOIN transfers o ON o.subject = b.id AND o.leg = 'rest'
LEFT JOIN (SELECT batch, sum(amount + charges) AS total, count(*) AS n FROM payments WHERE batch <> '' GROUP BY batch) AS d ON d.batch = b.id
WHERE COALESCE(i.amount, 0) <> CASE WHEN b.started_at = 0 THEN 0 ELSE b.amount + b.charges END
OR b.rest <> COALESCE(i.amount, 0) - COALESCE(o.amount, 0) - COALESCE(d.total, 0) OR b.accepted <> COALESCE(d.n, 0) ORDER BY b.id LIMIT 100`

	checkLinks = `SELECT b.id, b.accepted, COALESCE(r.n, 0) FROM batches b LEFT JOIN (
	SELECT r.batch, count(*) AS n FROM batch_rows r JOIN payments p ON p.id = r.payment AND p.batch = r.batch AND p.amount = r.amount AND p.charges = r.charges
	WHERE r.state = 'accepted' GROUP BY r.batch) AS r ON r.batch = b.id
WHERE b.accepted <> COALESCE(r.n, 0) ORDER BY b.id LIMIT 100`

	checkStray = `SELECT p.id, p.batch FROM payments p LEFT JOIN batches b ON b.id = p.batch AND b.tenant = p.tenant WHERE p.batch <> '' AND b.id IS NULL ORDER BY p.id LIMIT 100`
)

// Check compares the batches with the ledger and their payouts, on one snapshot. Each reserve is the rest of its
// tenant's batches, each batch was debited once by the cost of its rows, and each accepted row is one payout of its
// amount and fee.
func Check(ctx context.Context, d *db.DB) (report Report, err error) {
	err = d.ReadWhole(ctx, func(tx *db.Tx) error {
		report = Report{}
		if _, err := tx.One(`SELECT count(*) FROM batches`, nil, &report.Batches); err != nil {
			return err
		}
		for _, check := range []func(*db.Tx, *Report) error{checkReserves, checkEach, checkPayouts} {
			if err := check(tx, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}

func checkReserves(tx *db.Tx, report *Report) error {
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
			report.Add("%s %s holds %s, the batches have %s left", a.Asset, a.ID, money.Pesewas(a.Balance), money.Pesewas(rests[a.Key]))
		}
		delete(rests, a.Key)
	}
	for key, rest := range rests {
		if rest != 0 {
			report.Add("%s %s holds nothing, the batches have %s left", key.Asset, key.ID, money.Pesewas(rest))
		}
	}
	return nil
}

func checkEach(tx *db.Tx, report *Report) error {
	return tx.Query(checkBatches, nil, func(r *db.Row) error {
		var id, status string
		var rest, accepted, in, out, drawn, n int64
		err := r.Scan(&id, &status, &rest, &accepted, &in, &out, &drawn, &n)
		report.Add("batch %s is %s with a rest of %s: it took %s, %d payouts of %d accepted rows drew %s, %s went back", id, status, money.Pesewas(rest), money.Pesewas(in),
			n, accepted, money.Pesewas(drawn), money.Pesewas(out))
		return err
	})
}

func checkPayouts(tx *db.Tx, report *Report) error {
	err := tx.Query(checkLinks, nil, func(r *db.Row) error {
		var id string
		var accepted, n int64
		err := r.Scan(&id, &accepted, &n)
		report.Add("batch %s accepted %d rows, of which %d are payouts of it", id, accepted, n)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Query(checkStray, nil, func(r *db.Row) error {
		var id, of string
		err := r.Scan(&id, &of)
		report.Add("payout %s is of batch %s, which does not exist", id, of)
		return err
	})
}
