package payments

import (
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/prometheus/client_golang/prometheus"
)

// The counter of contradictions exists from the start with the value 0, because an alert on growth would otherwise
// miss the first one.
func TestMetrics_contradictionsStartAtZero(t *testing.T) {
	m := newMetrics()
	series := func() int {
		c := make(chan prometheus.Metric, 100)
		m.contradictions.Collect(c)
		return len(c)
	}
	before := series()
	for _, a := range book.Transitions {
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

// A transfer between wallets is final at once and counts once, with the sender.
func TestMetrics_transferBetweenWallets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		if _, err := n.Transfer(t.Context(), h.tenant.ID, n.newTenant(0).ID, 25*money.Cedi, "a gift", "ama"); err != nil {
			t.Fatal(err)
		}
		registry := prometheus.NewRegistry()
		for _, c := range n.book.Collectors() {
			registry.MustRegister(c)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()] += m.GetCounter().GetValue()
			}
		}
		if got["makola_payments_total"] != 1 || got["makola_payment_amount_ghs_total"] != 25 {
			t.Errorf("%v", got)
		}
	})
}
