package payments

import (
	"testing"

	"github.com/makola/makola/internal/payments/book"
	"github.com/prometheus/client_golang/prometheus"
)

// An alert on growth sees the first contradiction only if its series was there before, at 0.
func TestContradictionsBeginAtZero(t *testing.T) {
	m := newMetrics()
	series := func() int {
		c := make(chan prometheus.Metric, 100)
		m.contradictions.Collect(c)
		return len(c)
	}
	before := series()
	for _, a := range book.Arrows {
		for _, k := range a.Kinds {
			switch a.Event {
			case book.EventPaidLate, book.EventFoundPaid, book.EventReversed:
				m.contradicted(book.Payment{Kind: k}, a.Event)
			}
		}
	}
	if after := series(); before != after || before == 0 {
		t.Errorf("%d series at the start, %d when everything was contradicted", before, after)
	}
}
