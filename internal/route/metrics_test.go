package route_test

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// breakers returns the values of makola_provider_breakers_open by provider, mode and operation.
func breakers(t *testing.T, table *route.Table) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(table.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "makola_provider_breakers_open" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			values[labels["provider"]+" "+labels["mode"]+" "+labels["operation"]] = m.GetGauge().GetValue()
		}
	}
	return values
}

// The metric of circuit breakers names provider, mode and operation. It is 0 for a closed breaker, and it has no series for
// an operation that the rail lacks.
func TestBreakersOpen_labels(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		table := node(t, d, c)
		want := map[string]float64{}
		for _, r := range rails(c) {
			for _, op := range route.Operations() {
				if route.Can(r, op) {
					want[r.Name+" "+r.Mode+" "+string(op)] = 0
				}
			}
		}
		if got := breakers(t, table); !maps.Equal(got, want) {
			t.Errorf("at the start: %v, want %v", got, want)
		}
		report(table, 10, unreachable)
		want["mtn test collect"] = 1
		if got := breakers(t, table); !maps.Equal(got, want) {
			t.Errorf("with an open breaker: %v, want %v", got, want)
		}
	})
}
