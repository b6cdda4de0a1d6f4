package app

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/books"
	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of a node. No label holds a tenant, a number or a reference.
type meters struct {
	registry *prometheus.Registry
	inFlight prometheus.Gauge
	unread   prometheus.Counter
	forwards *prometheus.CounterVec
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	books    map[string]*checkedBook
}

// The books that are checked.
const (
	bookLedger   = books.Ledger
	bookPayments = books.Payments
	bookMessages = books.Messages
	bookBatches  = books.Batches
	bookAudit    = "audit"
)

// checkedBook is the result of the last check of one of the books.
type checkedBook struct {
	checked    atomic.Int64 // Unix seconds
	full       atomic.Int64 // Unix seconds of the last check of every row
	faults     atomic.Int64
	restsUntil time.Duration // state of the worker that checks, by Elapsed
}

func (m *meters) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (m *meters) counter(name, help string, value func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
}

// seen counts a request to the interface.
func (m *meters) seen(s api.Seen) {
	m.requests.WithLabelValues(s.Route, s.Method, strconv.Itoa(s.Status)).Inc()
	m.seconds.WithLabelValues(s.Route).Observe(s.Took.Seconds())
}

// forwarded counts a request that came through a proxy.
func (m *meters) forwarded(r *http.Request, trusted []netip.Prefix) {
	named := r.Header.Get("X-Forwarded-For") != ""
	switch known := access.FromProxy(r.RemoteAddr, trusted); {
	case named && known:
		m.forwards.WithLabelValues("trusted").Inc()
	case named:
		m.forwards.WithLabelValues("unknown").Inc()
	case known:
		m.forwards.WithLabelValues("silent").Inc()
	}
}
