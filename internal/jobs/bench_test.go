package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkLife measures jobs from Add, in commits of 256, until their rows are deleted.
func BenchmarkLife(b *testing.B) {
	const all = 50_000
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			for b.Loop() {
				d := dbtest.Open(b, e)
				q := New(d, clock.Real(), slog.New(slog.DiscardHandler), Options{Node: "a"})
				q.Register(Handler{Kind: "k", Workers: 256, Run: func(context.Context, Job) Outcome { return Done() }})
				if err := q.Start(b.Context()); err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				for n := 0; n < all; n += 256 {
					jobs := make([]Job, 256)
					for i := range jobs {
						id := newID()
						jobs[i] = Job{ID: id, Kind: "k", Subject: id}
					}
					if err := d.Write(b.Context(), func(tx *db.Tx) error { q.Add(tx, jobs...); return nil }); err != nil {
						b.Fatal(err)
					}
				}
				if err := q.Quiet(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(q.Counts().Finished)/time.Since(begun).Seconds(), "jobs/s")
				if err := q.Stop(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
