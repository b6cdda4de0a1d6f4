package route

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/provider"
)

// metrics counts what providers answer. The labels are few and fixed: never a
// tenant, never a reference.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	dropped  prometheus.Counter
}

func newMetrics() metrics {
	labels := []string{"provider", "mode", "operation"}
	return metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_provider_requests_total",
			Help: "Requests to providers by what became of them."}, append(labels, "class")),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_provider_request_seconds",
			Help: "How long providers took to answer.", Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}}, labels),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "makola_provider_exchanges_dropped_total",
			Help: "Exchanges that the log of exchanges could not take."}),
	}
}

func (m metrics) observe(r provider.Rail, op Operation, o provider.Outcome, took time.Duration) {
	m.requests.WithLabelValues(r.Name, r.Mode, string(op), o.Class.String()).Inc()
	m.seconds.WithLabelValues(r.Name, r.Mode, string(op)).Observe(took.Seconds())
}

// Collectors gives the metrics of this table for a registry.
func (t *Table) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.metrics.requests, t.metrics.seconds, t.metrics.dropped, openBreakers{t}}
}

// openBreakers collects the circuit breakers of every operation that a rail has.
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
