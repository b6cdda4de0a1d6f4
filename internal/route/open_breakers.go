package route

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Collectors returns the metrics of this table for a registry.
func (t *Table) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.metrics.requests, t.metrics.seconds, t.metrics.dropped, openBreakers{t}}
}

// openBreakers collects the states of the circuit breakers of all rails and operations.
type openBreakers struct{ table *Table }

var breakersOpen = prometheus.NewDesc("makola_provider_breakers_open",
	"1 while the circuit breaker is not closed, as this node knows.", []string{"provider", "mode", "operation"}, nil)

// Describe implements prometheus.Collector.
func (openBreakers) Describe(to chan<- *prometheus.Desc) { to <- breakersOpen }

// Collect implements prometheus.Collector.
func (o openBreakers) Collect(to chan<- prometheus.Metric) {
	b := &o.table.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range o.table.rails {
		for _, op := range Operations() {
			if !Can(r, op) {
				continue
			}
			value := 0.0
			if _, open, _ := b.state(breakerKey{r.Mode, r.Name, op}, b.read); open {
				value = 1
			}
			to <- prometheus.MustNewConstMetric(breakersOpen, prometheus.GaugeValue, value, r.Name, r.Mode, string(op))
		}
	}
}
