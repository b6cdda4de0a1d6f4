package payments

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// Collectors gives the metrics of payments for a registry. Some of them ask the
// database at each scrape.
func (p *Payments) Collectors() []prometheus.Collector {
	return append(p.book.Collectors(), p.rails.questions.metrics.contradictions, p.rails.questions.metrics.asks, &scraped{p: p})
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
		"What we have in an account at a provider by our own books, in cedis; unassigned: in none of them.", []string{"provider", "account", "mode"}, nil)
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
	unanswered := s.p.rails.questions.unanswered()
	for _, rail := range s.p.rails.routes.Rails() {
		gauge(unansweredCount, float64(unanswered[book.RailName{Provider: rail.Name, Mode: rail.Mode}]), rail.Name, rail.Mode)
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
		for _, rail := range s.p.rails.routes.Rails() {
			floats, failed := s.p.Floats(ctx, rail.Name, rail.Mode)
			if err = failed; err != nil {
				break
			}
			gauge(floatCedis, floats[""].Float(), rail.Name, "unassigned", rail.Mode)
			for _, account := range provider.AccountNames() {
				if held, used := floats[account]; used || slices.Contains(rail.Accounts.Names(), account) {
					gauge(floatCedis, held.Float(), rail.Name, account, rail.Mode)
				}
			}
		}
	}
	if err != nil {
		level := slog.LevelDebug // a database that is away says so elsewhere
		if _, ok := s.told.May(s.p.clock.Now()); ok && !book.Systemic(err) {
			level = slog.LevelWarn
		}
		s.p.log.Log(ctx, level, "failed to read payment metrics", "error", err)
	}
}

// Unknown sums up, by rail, the open payments that need an operator. Every rail
// of this node is in it.
func (p *Payments) Unknown(ctx context.Context) (map[book.RailName]book.Unknown, error) {
	all, err := p.Reader.Unknown(ctx)
	if err != nil {
		return nil, err
	}
	for _, rail := range p.rails.routes.Rails() {
		if name := (book.RailName{Provider: rail.Name, Mode: rail.Mode}); all[name].Count == 0 {
			all[name] = book.Unknown{}
		}
	}
	return all, nil
}
