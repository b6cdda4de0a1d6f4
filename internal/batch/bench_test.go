package batch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkDraft reads and checks a file of 100,000 rows, freezes it, starts it beside an earlier batch of the same account, and
// accepts a thousand rows: the times of each are reported.
func BenchmarkDraft(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				f := newFixture(b, dbtest.Open(b, engine))
				n := f.stopped("a")
				var text strings.Builder
				text.WriteString("number,network,amount\n")
				for i := range MaxRows {
					fmt.Fprintf(&text, "024%07d,MTN,1\n", i)
				}
				lap := time.Now()
				report := func(what string) {
					b.ReportMetric(time.Since(lap).Seconds(), what)
					lap = time.Now()
				}
				made, _, err := n.ReadFile(b.Context(), Upload{Tenant: f.tenant.ID, Name: "Salaries", Requester: "ama"}, strings.NewReader(text.String()), sheet.Options{})
				if err != nil {
					b.Fatal(err)
				}
				report("s/check")
				if made, err = n.Request(b.Context(), made.Tenant, made.ID, ""); err != nil {
					b.Fatal(err)
				}
				report("s/request")
				if err := n.Start(b.Context(), Order{Tenant: made.Tenant, ID: made.ID, Digest: made.Digest, Reason: "salaries", Actor: "kofi"}, nil); err != nil {
					b.Fatal(err)
				}
				report("s/start")
				for range 10 {
					n.run(b.Context(), made.Tenant, made.ID)
				}
				report("s/1000rows")
			}
		})
	}
}
