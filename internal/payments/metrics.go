package payments

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/payments/book"
)

// metrics counts the answers of providers to this node. Labels are few and fixed: never a tenant, never a reference.
type metrics struct {
	contradictions *prometheus.CounterVec
	queries        *prometheus.CounterVec
}

func newMetrics() metrics {
	m := metrics{
		contradictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payment_contradictions_total",
			Help: "Final statuses that the provider contradicted later."}, []string{"product", "event"}),
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_provider_questions_total",
			Help: "Status queries to providers, by whether they were answered."}, []string{"provider", "mode", "product", "answered"}),
	}
	// Prometheus ignores the first value of a new series, so each series starts at 0.
	for _, a := range book.Transitions {
		switch a.Event {
		case book.EventPaidLate, book.EventFoundPaid, book.EventReversed, book.EventOpposite:
			for _, k := range a.Kinds {
				m.contradictions.WithLabelValues(string(k), string(a.Event))
			}
		}
	}
	return m
}

func (m metrics) contradicted(pay book.Payment, e book.Event) {
	if m.contradictions != nil {
		m.contradictions.WithLabelValues(string(pay.Kind), string(e)).Inc()
	}
}

func (m metrics) queried(pay book.Payment, answered bool) {
	if m.queries != nil {
		m.queries.WithLabelValues(pay.Rail, pay.Mode, string(pay.Kind), strconv.FormatBool(answered)).Inc()
	}
}
