package figures

import (
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkMillion counts a million payments of 20 accounts over 30 days for the first time, and then measures a pass over 1,000 new
// ones and the reads of a page.
//
//	go test ./internal/figures -run '^$' -bench Million -benchtime 1x
func BenchmarkMillion(b *testing.B) {
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			for range b.N {
				million(b, dbtest.Open(b, e))
			}
		})
	}
}

func million(b *testing.B, d *db.DB) {
	const all, accounts, atOnce = 1_000_000, 20, 10_000
	f := open(b, d)
	f.clock.Advance(-30 * 24 * time.Hour)
	some := func(n int) []payment {
		list := make([]payment, n)
		for i := range list {
			p := f.payout()
			p.tenant = fmt.Sprintf("account-%02d", i%accounts)
			if i%3 == 0 {
				p.kind = book.KindCollection
			}
			p.status, p.rail = settled[p.kind][i%len(settled[p.kind])], []string{"mtn", "hubtel"}[i%2]
			if p.open() && i%500 != 0 {
				p.status = book.StatusSuccess
			}
			list[i] = p
		}
		return list
	}
	for range all / atOnce {
		f.add(some(atOnce)...)
		f.clock.Advance(30 * 24 * time.Hour / (all / atOnce))
	}
	took := func(name string, fn func() error) {
		begun := time.Now()
		if err := fn(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), name)
	}
	took("first-ms", func() error { return f.Sum(b.Context()) })
	took("idle-ms", func() error { return f.Sum(b.Context()) })
	f.add(some(1000)...)
	took("thousand-ms", func() error { return f.Sum(b.Context()) })
	took("rebuild-ms", func() error { return f.Rebuild(b.Context()) })
	now := f.clock.Now()
	took("month-ms", func() error {
		_, err := f.Days(b.Context(), Span{Mode: "test", From: now.Add(-30 * 24 * time.Hour), To: now})
		return err
	})
	took("week-ms", func() error {
		_, err := f.Hours(b.Context(), Span{Tenant: "account-01", Mode: "test", From: now.Add(-8 * 24 * time.Hour), To: now})
		return err
	})
}
