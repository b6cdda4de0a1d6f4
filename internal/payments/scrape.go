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

// Collectors returns the metrics of payments. Some read the database at each scrape.
func (p *Payments) Collectors() []prometheus.Collector {
	return append(p.book.Collectors(), p.rails.queries.metrics.contradictions, p.rails.queries.metrics.queries, &scraped{p: p})
}

// scrapeTime limits the database reads of a scrape.
const scrapeTime = 5 * time.Second

// scraped are the metrics read from the database.
type scraped struct {
	p      *Payments
	logged clock.Seldom
}

var (
	unknownCount = prometheus.NewDesc("makola_unknown_outcome",
		"Open payments that need an operator, on all nodes.", []string{"provider", "mode"}, nil)
	unknownOldest = prometheus.NewDesc("makola_unknown_outcome_oldest_seconds",
		"Age of the oldest of these payments.", []string{"provider", "mode"}, nil)
	unknownCedis = prometheus.NewDesc("makola_unknown_outcome_ghs",
		"Sum of the amounts of these payments, in cedis.", []string{"provider", "mode"}, nil)
	unansweredCount = prometheus.NewDesc("makola_payments_unanswered",
		"Open payments of this node whose last status query was not answered.", []string{"provider", "mode"}, nil)
	floatCedis = prometheus.NewDesc("makola_provider_float_ghs",
		"Our money in an account at a provider according to our books, in cedis; unassigned is money without an account there.", []string{"provider", "account", "mode"}, nil)
)

// Describe implements prometheus.Collector.
func (s *scraped) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{unknownCount, unknownOldest, unknownCedis, unansweredCount, floatCedis} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It leaves out metrics whose query fails, and logs the error.
func (s *scraped) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	unanswered := s.p.rails.queries.unanswered()
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
		level := slog.LevelDebug // the loss of a database connection is logged elsewhere
		if _, ok := s.logged.May(s.p.clock.Now()); ok && !book.Systemic(err) {
			level = slog.LevelWarn
		}
		s.p.log.Log(ctx, level, "failed to read payment metrics", "error", err)
	}
}

// Unknown returns the totals of open payments that need an operator, for every rail of this node.
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
