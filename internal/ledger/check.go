package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
)

// Account is one line of the trial balance.
type Account struct {
	Key
	Balance int64
	Wallets int64 // how many wallets the line adds up, zero for other accounts
}

const (
	sqlTrialWallets = `SELECT asset, substr(id, 1, 7), count(*), CAST(sum(balance) AS INTEGER) FROM wallets GROUP BY asset, substr(id, 1, 7) ORDER BY 1, 2`
	sqlTrialShards  = `SELECT asset, id, CAST(sum(balance) AS INTEGER) FROM shards GROUP BY asset, id ORDER BY asset, id`
)

// TrialBalance lists every account, with all wallets of an asset as one line
// ("wallet:*") and all credits as one ("credits:*"). The balances of one asset
// add up to zero.
func (l *Ledger) TrialBalance(ctx context.Context) (list []Account, err error) {
	err = l.db.ReadWhole(ctx, func(tx *db.Tx) error {
		list, err = TrialBalanceIn(tx)
		return err
	})
	return list, err
}

// TrialBalanceIn is TrialBalance inside a transaction.
func TrialBalanceIn(tx *db.Tx) (list []Account, err error) {
	err = tx.Gather(
		db.Query{SQL: sqlTrialWallets, Each: func(r *db.Row) error {
			var a Account
			var prefix string
			if err := r.Scan(&a.Asset, &prefix, &a.Wallets, &a.Balance); err != nil {
				return err
			}
			if a.ID = walletPrefix + "*"; prefix != walletPrefix {
				a.ID = creditsPrefix + "*"
			}
			list = append(list, a)
			return nil
		}},
		db.Query{SQL: sqlTrialShards, Each: func(r *db.Row) error {
			var a Account
			if err := r.Scan(&a.Asset, &a.ID, &a.Balance); err != nil {
				return err
			}
			list = append(list, a)
			return nil
		}},
	)
	return list, err
}

// Imbalance adds up all accounts of each asset, in pesewas or credits. Each sum
// is zero unless something is broken; the metric alarms on anything else.
func (l *Ledger) Imbalance(ctx context.Context) (map[Asset]int64, error) {
	list, err := l.TrialBalance(ctx)
	sums := map[Asset]int64{}
	for _, a := range list {
		sums[a.Asset] += a.Balance
	}
	return sums, err
}

// Findings are the contradictions that a check of books found.
type Findings struct {
	Problems []string
}

// OK reports whether the check found no problem.
func (f Findings) OK() bool { return len(f.Problems) == 0 }

// problemsShown bounds findings. Beyond it, more lines do not help anybody.
const problemsShown = 100

// Add adds a problem.
func (f *Findings) Add(format string, args ...any) {
	if len(f.Problems) < problemsShown {
		f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
	}
}

// Report is what Check found.
type Report struct {
	At        time.Time
	Wallets   int64 // looked at
	Transfers int64 // looked at
	Findings
}

const (
	sqlCheckCounts = `SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM transfers)`
	// Each wallet: the sum of its transfers, their number, the last number.
	sqlCheckWallets = `SELECT w.id, w.asset, w.floor, w.balance, w.sequence,
	CAST(COALESCE(s.total, 0) AS INTEGER), COALESCE(s.n, 0), COALESCE(s.last, 0), COALESCE(s.assets, 0)
FROM wallets w LEFT JOIN (
	SELECT wallet, sum(CASE WHEN to_account = wallet THEN amount ELSE -amount END) AS total, count(*) AS n, max(sequence) AS last,
		count(DISTINCT asset) AS assets
	FROM transfers WHERE wallet IS NOT NULL GROUP BY wallet
) AS s ON s.wallet = w.id
WHERE w.balance < w.floor OR w.balance <> COALESCE(s.total, 0) OR w.sequence <> COALESCE(s.n, 0) OR w.sequence <> COALESCE(s.last, 0) OR COALESCE(s.assets, 0) > 1
ORDER BY w.id`
	// Each transfer of a wallet: its balance is the one before it and its amount.
	sqlCheckRunning = `SELECT wallet, sequence, balance, before + change FROM (
	SELECT wallet, sequence, balance, CASE WHEN to_account = wallet THEN amount ELSE -amount END AS change,
		COALESCE(lag(balance) OVER (PARTITION BY wallet ORDER BY sequence), 0) AS before
	FROM transfers WHERE wallet IS NOT NULL
) AS r WHERE balance <> before + change ORDER BY wallet, sequence LIMIT 100`
	sqlCheckOrphans = `SELECT t.wallet, count(*) FROM transfers t LEFT JOIN wallets w ON w.id = t.wallet AND w.asset = t.asset
WHERE t.wallet IS NOT NULL AND w.id IS NULL GROUP BY t.wallet ORDER BY t.wallet LIMIT 100`
	// Every other account: the sum of its shards equals the sum of its transfers.
	sqlCheckShards = `SELECT id, asset, CAST(sum(held) AS INTEGER), CAST(sum(moved) AS INTEGER) FROM (
	SELECT id, asset, balance AS held, 0 AS moved FROM shards
	UNION ALL SELECT to_account, asset, 0, amount FROM transfers WHERE wallet IS NULL OR wallet <> to_account
	UNION ALL SELECT from_account, asset, 0, -amount FROM transfers WHERE wallet IS NULL OR wallet <> from_account
) AS x GROUP BY id, asset HAVING sum(held) <> sum(moved) ORDER BY id, asset LIMIT 100`
)

// Check reads the whole ledger in one snapshot and reports every contradiction. It compares each wallet with the sum
// and the number of its transfers, and each balance after a transfer with the balance before it. It compares every
// other account with its transfers, and the sum of all accounts of an asset with zero.
func (l *Ledger) Check(ctx context.Context) (report Report, err error) {
	err = l.db.ReadWhole(ctx, func(tx *db.Tx) error {
		report, err = l.CheckIn(tx)
		return err
	})
	return report, err
}

// CheckIn is Check inside a transaction, for a check that spans packages.
func (l *Ledger) CheckIn(tx *db.Tx) (Report, error) {
	report := Report{At: l.clock.Now()}
	if _, err := tx.One(sqlCheckCounts, nil, &report.Wallets, &report.Transfers); err != nil {
		return report, err
	}
	if err := checkWallets(tx, &report); err != nil {
		return report, err
	}
	err := tx.Query(sqlCheckShards, nil, func(r *db.Row) error {
		var id, asset string
		var held, moved int64
		if err := r.Scan(&id, &asset, &held, &moved); err != nil {
			return err
		}
		report.Add("%s %s holds %d, its transfers say %d", asset, id, held, moved)
		return nil
	})
	if err != nil {
		return report, err
	}
	accounts, err := TrialBalanceIn(tx)
	sums := map[Asset]int64{}
	for _, a := range accounts {
		sums[a.Asset] += a.Balance
	}
	for asset, sum := range sums {
		if sum != 0 {
			report.Add("the accounts of %s add up to %d, not to zero", asset, sum)
		}
	}
	return report, err
}

func checkWallets(tx *db.Tx, report *Report) error {
	err := tx.Query(sqlCheckWallets, nil, func(r *db.Row) error {
		var id, asset string
		var floor, balance, sequence, total, n, last, assets int64
		if err := r.Scan(&id, &asset, &floor, &balance, &sequence, &total, &n, &last, &assets); err != nil {
			return err
		}
		report.Add("%s %s holds %d (floor %d) after %d transfers; its transfers say %d after %d, the last is number %d, in %d assets",
			asset, id, balance, floor, sequence, total, n, last, assets)
		return nil
	})
	if err != nil {
		return err
	}
	err = tx.Query(sqlCheckRunning, nil, func(r *db.Row) error {
		var wallet string
		var sequence, balance, computed int64
		if err := r.Scan(&wallet, &sequence, &balance, &computed); err != nil {
			return err
		}
		report.Add("%s number %d carries the balance %d, it should be %d", wallet, sequence, balance, computed)
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Query(sqlCheckOrphans, nil, func(r *db.Row) error {
		var wallet string
		var n int64
		if err := r.Scan(&wallet, &n); err != nil {
			return err
		}
		report.Add("%s has %d transfers and no row", wallet, n)
		return nil
	})
}

const sqlHeld = `SELECT subject, CAST(sum(CASE WHEN to_account = $1 THEN amount ELSE -amount END) AS INTEGER) FROM transfers
WHERE asset = $2 AND (to_account = $1 OR from_account = $1) GROUP BY subject
HAVING sum(CASE WHEN to_account = $1 THEN amount ELSE -amount END) <> 0 ORDER BY subject`

// HeldBySubject calls each for every subject whose transfers leave an amount in the account. In clearing, these are
// the payments that are accepted and not settled. It reads all transfers: call it within ReadWhole.
func (l *Ledger) HeldBySubject(tx *db.Tx, key Key, each func(subject string, amount int64) error) error {
	return tx.Query(sqlHeld, []any{key.ID, key.Asset}, func(r *db.Row) error {
		var subject string
		var amount int64
		if err := r.Scan(&subject, &amount); err != nil {
			return err
		}
		return each(subject, amount)
	})
}
