package route

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/provider"
)

// metrics counts the responses of providers. The labels are few and fixed: never a tenant, never a reference.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	dropped  prometheus.Counter
}

func newMetrics() metrics {
	labels := []string{"provider", "mode", "operation"}
	return metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_provider_requests_total",
			Help: "Requests to providers by outcome."}, append(labels, "class")),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_provider_request_seconds",
			Help: "How long providers took to answer.", Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}}, labels),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "makola_provider_exchanges_dropped_total",
			Help: "Exchanges that are missing in the log of exchanges because its queue was full."}),
	}
}

func (m metrics) observe(r provider.Rail, op Operation, o provider.Outcome, took time.Duration) {
	m.requests.WithLabelValues(r.Name, r.Mode, string(op), o.Class.String()).Inc()
	m.seconds.WithLabelValues(r.Name, r.Mode, string(op)).Observe(took.Seconds())
}
