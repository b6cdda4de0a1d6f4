package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkHold is the ledger's part of accepting a payout: two transfers out of a wallet, in a group commit, with
// 256 concurrent callers. Compare its result with pgbench's TPC-B on the same server in the same run. For durable
// commits, start the server with scripts/postgres.sh --durable start.
func BenchmarkHold(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		for _, wallets := range []int{1, 1000} {
			for _, lanes := range []int{1, 2} {
				if lanes > 1 && engine == db.SQLite {
					continue // SQLite has only one writer
				}
				b.Run(fmt.Sprintf("%s/wallets=%d/lanes=%d", engine, wallets, lanes), func(b *testing.B) {
					o := dbtest.Options(b, engine)
					if engine == db.SQLite { // the tests' folder may be in memory
						o.Path = filepath.Join(b.TempDir(), "bench.db")
					}
					d := dbtest.OpenWith(b, o)
					if err := d.Migrate(b.Context()); err != nil {
						b.Fatal(err)
					}
					benchmarkHold(b, d, wallets, lanes)
				})
			}
		}
	}
}

func benchmarkHold(b *testing.B, d *db.DB, wallets, lanes int) {
	l := ledger.New(d, clock.Real(), "bench")
	names := make([]string, wallets)
	err := d.Write(b.Context(), func(tx *db.Tx) error {
		keys := []ledger.Key{}
		for i := range names {
			names[i] = uuid.NewString()
			l.Create(tx, wallet(names[i]), -1<<60)
			keys = append(keys, wallet(names[i]))
		}
		if err := tx.Flush(); err != nil {
			return err
		}
		_, err := l.Open(tx, keys...)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	type hold struct{ wallet, subject string }
	run := func(ctx context.Context, batch []hold) ([]groupcommit.Verdict[bool], error) {
		verdicts := make([]groupcommit.Verdict[bool], len(batch))
		err := d.Write(ctx, func(tx *db.Tx) error {
			keys := make([]ledger.Key, len(batch))
			for i, h := range batch {
				keys[i] = wallet(h.wallet)
			}
			page, err := l.Open(tx, keys...)
			if err != nil {
				return err
			}
			for i, h := range batch {
				verdicts[i].Err = page.Add(
					move1(h.subject, "hold", ledger.Wallet(h.wallet), ledger.Clearing, 100),
					move1(h.subject, "fee", ledger.Wallet(h.wallet), ledger.Clearing, 1))
			}
			page.Post()
			return nil
		})
		return verdicts, err
	}
	var all []*groupcommit.Committer[hold, bool]
	for range lanes {
		all = append(all, groupcommit.New(groupcommit.Options{}, run))
	}
	var next atomic.Int64
	b.SetParallelism(128)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			i := int(next.Add(1)) % wallets
			id, _ := uuid.NewV7()
			if _, err := all[i%lanes].Do(context.Background(), names[i], 2, hold{names[i], id.String()}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "holds/s")
}
