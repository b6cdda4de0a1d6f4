package route_test

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// The histogram counts every exchange of the log once. Its percentiles are the upper bounds of buckets. Exchanges
// without an answer count as failed.
func TestLatencies_haveEveryExchange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table := node(t, d, clock.NewManual(start))
		for i := range 100 {
			e := provider.Exchange{At: start.Add(time.Duration(i) * time.Minute), Took: 40 * time.Millisecond, Provider: "mtn", Mode: "test", Operation: "transfer", Status: 202}
			switch {
			case i >= 97:
				e.Took, e.Status = 2*time.Minute, 0
			case i >= 60:
				e.Took = 900 * time.Millisecond
			}
			table.Record(e)
			table.Record(provider.Exchange{At: e.At, Took: time.Millisecond, Provider: "mtn", Mode: "live", Operation: "transfer", Status: 503})
		}
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := table.Latencies(t.Context(), "test", start)
		if err != nil || len(list) != 1 || list[0].N != 100 || list[0].Failed != 3 {
			t.Fatalf("latencies are %+v (%v), want one of 100 with 3 failed", list, err)
		}
		for percent, want := range map[int64]time.Duration{50: 50 * time.Millisecond, 60: 50 * time.Millisecond, 61: time.Second, 97: time.Second} {
			if within, over := list[0].Percentile(percent); within != want || over {
				t.Errorf("percentile %d is %s (over: %v), want %s", percent, within, over, want)
			}
		}
		if within, over := list[0].Percentile(98); within != time.Minute || !over {
			t.Errorf("percentile 98 is %s (over: %v), want more than a minute", within, over)
		}
		list, err = table.Latencies(t.Context(), "test", start.Add(time.Hour))
		if err != nil || len(list) != 1 || list[0].N != 40 {
			t.Errorf("of the last hour there are %+v (%v), want 40", list, err)
		}
		list, err = table.Latencies(t.Context(), "live", start)
		if err != nil || len(list) != 1 || list[0].Failed != 100 {
			t.Errorf("in live mode there are %+v (%v), want 100 failed", list, err)
		}
	})
}
