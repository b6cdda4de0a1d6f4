package payments

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

// metrics counts what becomes of payments on this node. The labels are few and
// fixed: never a tenant, never a reference.
type metrics struct {
	payments *prometheus.CounterVec
	cedis    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	turned   *prometheus.CounterVec
	asks     *prometheus.CounterVec
}

func newMetrics() metrics {
	labels := []string{"product", "network"}
	m := metrics{
		payments: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payments_total",
			Help: "Payments by the status that they came to; pending when they were accepted."}, append(labels, "status")),
		cedis: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payment_amount_ghs_total",
			Help: "Amounts of the payments that succeeded, in cedis."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_payment_settle_seconds",
			Help: "From acceptance to the final status.", Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}}, labels),
		turned: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payment_contradictions_total",
			Help: "Final words of providers that they contradicted later."}, []string{"product", "event"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_provider_questions_total",
			Help: "Status questions to providers, by whether they were answered."}, []string{"provider", "mode", "product", "answered"}),
	}
	// Prometheus takes a series that begins with 1 for one that did not grow: the first contradiction must find a 0.
	for _, a := range Arrows {
		switch a.Event {
		case EventPaidLate, EventFoundPaid, EventReversed, EventOpposite:
			for _, k := range a.Kinds {
				m.turned.WithLabelValues(string(k), string(a.Event))
			}
		}
	}
	return m
}

// committed counts what a transaction has done, once it is committed.
func (m metrics) committed(inserts []*Payment, moves []move) {
	if m.payments == nil {
		return
	}
	for _, pay := range inserts {
		if pay.Received() {
			continue // counted once, with the one who gave it
		}
		m.payments.WithLabelValues(string(pay.Kind), pay.Channel, string(pay.Status)).Inc()
	}
	for _, moved := range moves {
		pay := moved.row
		m.payments.WithLabelValues(string(pay.Kind), pay.Channel, string(pay.Status)).Inc()
		if pay.Status == StatusSuccess {
			m.cedis.WithLabelValues(string(pay.Kind), pay.Channel).Add(pay.Amount.Float())
		}
		if moved.was.Open() && !pay.Status.Open() {
			m.seconds.WithLabelValues(string(pay.Kind), pay.Channel).Observe(pay.SettledAt.Sub(pay.CreatedAt).Seconds())
		}
	}
}

func (m metrics) contradicted(pay Payment, e Event) {
	if m.turned != nil {
		m.turned.WithLabelValues(string(pay.Kind), string(e)).Inc()
	}
}

func (m metrics) asked(pay Payment, answered bool) {
	if m.asks != nil {
		m.asks.WithLabelValues(pay.Rail, pay.Mode, string(pay.Kind), strconv.FormatBool(answered)).Inc()
	}
}

// Collectors gives the metrics of payments for a registry. Some of them ask the
// database at each scrape.
func (p *Payments) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.metrics.payments, p.metrics.cedis, p.metrics.seconds, p.metrics.turned, p.metrics.asks, &scraped{p: p}}
}

// scrapeTime bounds what a scrape asks of the database.
const scrapeTime = 5 * time.Second

// scraped are the figures that only the database knows.
type scraped struct {
	p    *Payments
	told clock.Seldom
}

var (
	unknownCount = prometheus.NewDesc("makola_unknown_outcome",
		"Open payments that need an operator, on all nodes.", []string{"provider", "mode"}, nil)
	unknownOldest = prometheus.NewDesc("makola_unknown_outcome_oldest_seconds",
		"Age of the oldest of them.", []string{"provider", "mode"}, nil)
	unknownCedis = prometheus.NewDesc("makola_unknown_outcome_ghs",
		"Their amounts together, in cedis.", []string{"provider", "mode"}, nil)
	unansweredCount = prometheus.NewDesc("makola_payments_unanswered",
		"Open payments of this node whose last question got no answer.", []string{"provider", "mode"}, nil)
	floatCedis = prometheus.NewDesc("makola_provider_float_ghs",
		"What we have at a provider by our own books, in cedis.", []string{"provider", "mode"}, nil)
)

// Describe implements prometheus.Collector.
func (s *scraped) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{unknownCount, unknownOldest, unknownCedis, unansweredCount, floatCedis} {
		to <- d
	}
}

// Collect implements prometheus.Collector. A question that fails leaves its
// figures out and is logged.
func (s *scraped) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	unanswered := s.p.questions.unanswered()
	for _, rail := range s.p.routes.Rails() {
		gauge(unansweredCount, float64(unanswered[RailName{rail.Name, rail.Mode}]), rail.Name, rail.Mode)
	}
	unknown, err := s.p.Unknown(ctx)
	for rail, u := range unknown {
		gauge(unknownCount, float64(u.Count), rail.Provider, rail.Mode)
		age := 0.0
		if u.Count > 0 {
			age = max(0, s.p.clock.Since(u.Oldest).Seconds())
		}
		gauge(unknownOldest, age, rail.Provider, rail.Mode)
		gauge(unknownCedis, u.Cedis, rail.Provider, rail.Mode)
	}
	if err == nil {
		for _, rail := range s.p.routes.Rails() {
			balance, failed := s.p.ledger.Balance(ctx, ledger.Key{Asset: asset(rail.Mode), ID: ledger.Float(rail.Name)})
			if err = failed; err != nil {
				break
			}
			gauge(floatCedis, float64(-balance)/100, rail.Name, rail.Mode)
		}
	}
	if err != nil {
		level := slog.LevelDebug // a database that is away says so elsewhere
		if _, ok := s.told.May(s.p.clock.Now()); ok && !systemic(err) {
			level = slog.LevelWarn
		}
		s.p.log.Log(ctx, level, "the metrics of payments could not be read", "error", err)
	}
}

// RailName names a rail: a provider in one mode.
type RailName struct{ Provider, Mode string }

// Unknown sums up the open payments of a rail that need an operator.
type Unknown struct {
	Count  int64
	Cedis  float64   // amounts and charges together
	Oldest time.Time // when the oldest was accepted; zero when there is none
}

const unknownByRail = `SELECT rail, mode, count(*), CAST(sum(amount + charges) AS INTEGER), min(created_at) FROM payments
WHERE escalated_at IS NOT NULL GROUP BY rail, mode`

// Unknown sums up, by rail, the open payments that need an operator. Every rail
// of this node is in it.
func (p *Payments) Unknown(ctx context.Context) (map[RailName]Unknown, error) {
	var all map[RailName]Unknown
	err := p.db.Read(ctx, func(tx *db.Tx) error {
		all = map[RailName]Unknown{}
		return tx.Query(unknownByRail, nil, func(r *db.Row) error {
			var rail RailName
			var pesewas int64
			var u Unknown
			err := r.Scan(&rail.Provider, &rail.Mode, &u.Count, &pesewas, &u.Oldest)
			u.Cedis = float64(pesewas) / 100
			all[rail] = u
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for _, rail := range p.routes.Rails() {
		if name := (RailName{rail.Name, rail.Mode}); all[name].Count == 0 {
			all[name] = Unknown{}
		}
	}
	return all, nil
}
