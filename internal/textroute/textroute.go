// Package textroute decides which provider carries a message: the binds of SMPP, which take segments, or a provider
// over HTTP, which takes the whole text.
//
// A route names providers in order, for a network, a sender ID, both or neither. A message goes to the first provider
// of its route that is in order. It goes to another provider only if the first provider certainly did not accept it:
// the request was never written, or the provider refused it with a documented code. The caller then offers the message
// again, and records each offer before it is sent. A lost response is Unknown and never leads to another provider.
//
// A provider that cannot be reached, refuses the account or leaves several requests in a row without a response rests
// for a while. A 429 pauses a provider and keeps its messages.
//
// Files: textroute.go (the table), choice.go (the route of a message), carrier.go (one provider over HTTP).
package textroute

import (
	"context"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/prometheus/client_golang/prometheus"
)

// SMPP is the name of the binds in a route.
const SMPP = "smpp"

// Options configure a Table.
type Options struct {
	Binds  provider.SMSSender // nil: there are none
	Rails  []provider.TextRail
	Routes []Route // providers of a message without a route: the binds, then the rails in order
	// Callback returns the address of a rail's reports. It is empty if there is none.
	Callback func(provider.TextRail) string
	Clock    *clock.Clock
	Metrics  *Metrics // nil: nothing is counted
}

// Table is the routes of texts in one mode. It is a provider.SMSSender, safe for concurrent use.
type Table struct {
	binds    provider.SMSSender
	carriers []*carrier
	routes   []Route
	callback func(provider.TextRail) string
}

// New makes a table.
func New(o Options) *Table {
	t := &Table{binds: o.Binds, routes: o.Routes, callback: o.Callback}
	for _, r := range o.Rails {
		t.carriers = append(t.carriers, newCarrier(r, o.Clock, o.Metrics))
	}
	return t
}

// noRoute is the pause before a message without a usable provider is offered again.
const noRoute = time.Second

// Submit implements provider.SMSSender. A segment goes to the binds, a whole text to the first usable provider over
// HTTP. Submit waits while that provider's window is full or its rate is exceeded.
func (t *Table) Submit(ctx context.Context, s provider.Segment, done func(provider.Outcome)) {
	if s.Text == "" && t.binds != nil {
		t.binds.Submit(ctx, s, done)
		return
	}
	c := t.carrier(s.From, s.To)
	if c == nil {
		done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "no provider of the route is usable", RetryAfter: noRoute})
		return
	}
	c.submit(ctx, provider.Text{From: s.From, To: s.To, Body: s.Text, Callback: t.callback(c.rail)}, done)
}

// Ready implements provider.SMSSender. It reports whether at least one provider can take messages.
func (t *Table) Ready(n msisdn.Network) (err error) {
	if t.binds != nil {
		if err = t.binds.Ready(n); err == nil {
			return nil
		}
	}
	for _, c := range t.carriers {
		if err = c.ready(); err == nil {
			return nil
		}
	}
	return err
}

// State is the state of one provider over HTTP.
type State struct {
	Name  string
	Up    bool
	Since time.Duration // time since the last change
	Why   string        // it is not
}

// States returns the state of each provider over HTTP.
func (t *Table) States() []State {
	all := make([]State, len(t.carriers))
	for i, c := range t.carriers {
		all[i] = c.state()
	}
	return all
}

// Metrics count the texts that went to providers over HTTP.
type Metrics struct {
	texts   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	open    *prometheus.GaugeVec
}

// NewMetrics makes the metrics of a node.
func NewMetrics() *Metrics {
	labels := []string{"provider", "mode"}
	return &Metrics{
		texts:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_sms_http_texts_total", Help: "Whole texts offered to providers over HTTP, by outcome."}, append(labels, "outcome")),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_sms_http_seconds", Help: "Time until a provider over HTTP answered.", Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20}}, labels),
		open:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "makola_sms_http_open", Help: "Texts at providers over HTTP without an answer."}, labels),
	}
}

// Collectors returns the metrics for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.texts, m.seconds, m.open}
}
