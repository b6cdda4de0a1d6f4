package payments

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/payments/book"
)

// metrics counts what providers say on this node. The labels are few and
// fixed: never a tenant, never a reference.
type metrics struct {
	contradictions *prometheus.CounterVec
	asks           *prometheus.CounterVec
}

func newMetrics() metrics {
	m := metrics{
		contradictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payment_contradictions_total",
			Help: "Final words of providers that they contradicted later."}, []string{"product", "event"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_provider_questions_total",
			Help: "Status questions to providers, by whether they were answered."}, []string{"provider", "mode", "product", "answered"}),
	}
	// Prometheus takes a series that begins with 1 for one that did not grow: the first contradiction must find a 0.
	for _, a := range book.Arrows {
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

func (m metrics) asked(pay book.Payment, answered bool) {
	if m.asks != nil {
		m.asks.WithLabelValues(pay.Rail, pay.Mode, string(pay.Kind), strconv.FormatBool(answered)).Inc()
	}
}
