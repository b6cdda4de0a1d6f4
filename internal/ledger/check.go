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
	Wallets int64 // number of wallets in the line; zero for other accounts
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

// Imbalance returns the sum of all accounts of each asset, in pesewas or credits. Each sum is zero unless something
// is broken. An alert fires on any other value.
func (l *Ledger) Imbalance(ctx context.Context) (map[Asset]int64, error) {
	list, err := l.TrialBalance(ctx)
	sums := map[Asset]int64{}
	for _, a := range list {
		sums[a.Asset] += a.Balance
	}
	return sums, err
}

// Findings are the problems that a check of books found.
type Findings struct {
	Problems []string
}

// OK reports whether the check found no problem.
func (f Findings) OK() bool { return len(f.Problems) == 0 }

// problemsShown is the maximum number of problems in Findings.
const problemsShown = 100

// Add adds a problem.
func (f *Findings) Add(format string, args ...any) {
	if len(f.Problems) < problemsShown {
		f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
	}
}

// Report is the result of Check.
type Report struct {
	At        time.Time
	Wallets   int64 // number of checked wallets
	Transfers int64 // number of checked transfers
	Findings
}

// Join adds the problems of other findings, up to problemsShown in total.
func (f *Findings) Join(other Findings) {
	f.Problems = append(f.Problems, other.Problems[:min(len(other.Problems), problemsShown-len(f.Problems))]...)
}

const (
	// Overlap is the longest time between the time in a transfer and its commit. A stored proof ends at least
	// Overlap before now, so that no transfer is missing from it.
	Overlap = 10 * time.Minute

	sqlWalletCount   = `SELECT count(*) FROM wallets`
	sqlTransferCount = `SELECT count(*) FROM transfers WHERE at >= $1`
)

// Check checks the whole ledger and reports every problem that Proof finds. It reads in sets, each in one snapshot,
// so that it delays no other work even in a large ledger.
func (l *Ledger) Check(ctx context.Context) (report Report, err error) {
	report = Report{At: l.clock.Now()}
	all, last := NewProof(), db.Micros(l.clock.Now().Add(-Overlap))
	ctx = db.Bulk(ctx, "")
	for whole := false; !whole; {
		err := l.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			whole, err = all.Extend(tx, last, &report.Findings, nil)
			return err
		})
		if err != nil {
			return report, err
		}
	}
	for position, whole := "", false; !whole; {
		err := l.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			position, whole, err = CheckHour(tx, position, &report.Findings)
			return err
		})
		if err != nil {
			return report, err
		}
	}
	var differ []Key
	err = l.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		differ, err = closeIn(tx, all, &report)
		return err
	})
	if err != nil || len(differ) == 0 {
		return report, err
	}
	err = l.db.ReadWhole(ctx, func(tx *db.Tx) error { return all.Confirm(tx, differ, &report.Findings) })
	return report, err
}

// CheckIn is Check inside a transaction, for a check that covers several packages.
func (l *Ledger) CheckIn(tx *db.Tx) (Report, error) {
	report := Report{At: l.clock.Now()}
	all := NewProof()
	differ, err := closeIn(tx, all, &report)
	if err == nil {
		err = all.Confirm(tx, differ, &report.Findings)
	}
	return report, err
}

func closeIn(tx *db.Tx, all *Proof, report *Report) ([]Key, error) {
	if _, err := tx.One(sqlWalletCount, nil, &report.Wallets); err != nil {
		return nil, err
	}
	if _, err := tx.One(sqlTransferCount, []any{all.Next}, &report.Transfers); err != nil {
		return nil, err
	}
	report.Transfers += all.Transfers
	return all.Close(tx, &report.Findings, nil)
}
