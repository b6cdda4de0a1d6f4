package db_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkCommit measures one transaction that reads a row, updates it and inserts batch others. It takes two
// exchanges with PostgreSQL. With batch 1 it shows the cost for a single caller; rows/s with larger batches shows the
// gain of group commit.
func BenchmarkCommit(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		for _, batch := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/batch=%d", engine, batch), func(b *testing.B) {
				d := dbtest.Open(b, engine)
				makeItems(b, d)
				next := 0
				rows := make([]item, batch)
				b.ResetTimer()
				for b.Loop() {
					for i := range rows {
						next++
						rows[i] = item{id: fmt.Sprintf("%012d", next), amount: 5}
					}
					err := d.Write(context.Background(), func(tx *db.Tx) error {
						var n int64
						if _, err := tx.One(`SELECT amount FROM items WHERE id = $1 FOR UPDATE`, []any{"000000000001"}, &n); err != nil {
							return err
						}
						tx.Defer(`UPDATE items SET amount = amount + 1 WHERE id = $1`, -1, "000000000001")
						db.Insert(tx, "items", itemColumns(), rows)
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkRead measures one read by key, with several concurrent callers.
func BenchmarkRead(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		b.Run(engine.String(), func(b *testing.B) {
			d := dbtest.Open(b, engine)
			makeItems(b, d)
			rows := make([]item, 1000)
			for i := range rows {
				rows[i] = item{id: fmt.Sprint(i), amount: 5}
			}
			err := d.Write(b.Context(), func(tx *db.Tx) error {
				db.Insert(tx, "items", itemColumns(), rows)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					id := fmt.Sprint(next.Add(1) % 1000)
					err := d.Read(context.Background(), func(tx *db.Tx) error {
						var n int64
						_, err := tx.One(`SELECT amount FROM items WHERE id = $1`, []any{id}, &n)
						return err
					})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
