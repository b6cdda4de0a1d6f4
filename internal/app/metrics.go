package app

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeTime is the maximum time of the queries of one scrape.
const scrapeTime = 5 * time.Second

func newMeters(a *App) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		books:    map[string]*checkedBook{bookLedger: {}, bookPayments: {}, bookMessages: {}, bookBatches: {}, bookAudit: {}},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "makola_http_in_flight", Help: "Requests that are being answered."}),
		unread:   prometheus.NewCounter(prometheus.CounterOpts{Name: "makola_http_unread_total", Help: "Answers that were ended because their clients did not read them and the limits were reached."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_http_requests_total", Help: "Requests answered."}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_http_request_seconds", Help: "Time to answer a request.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"route"}),
	}
	m.forwards = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_http_forwarded_total",
		Help: "Requests that a proxy forwarded, by proxy: trusted, silent (trusted, but without X-Forwarded-For), unknown (not trusted, so its X-Forwarded-For is ignored)."}, []string{"peer"})
	for _, peer := range []string{"trusted", "silent", "unknown"} {
		m.forwards.WithLabelValues(peer)
	}
	m.registry.MustRegister(m.forwards, m.inFlight, m.unread, m.requests, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "makola_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": a.opts.Version, "go": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(build)
	m.registry.MustRegister(a.routes.Collectors()...)
	m.registry.MustRegister(a.requests.Collectors()...)
	m.registry.MustRegister(a.payments.Collectors()...)
	m.registry.MustRegister(a.messaging.Collectors()...)
	m.registry.MustRegister(a.textMetrics.Collectors()...)
	m.registry.MustRegister(a.inbox.Collectors()...)
	for _, r := range a.sms {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_sms_connected", ConstLabels: prometheus.Labels{"mode": string(r.mode)},
			Help: "Whether this node is connected to a message centre: 1 on one node at most."}, func() float64 {
			if r.Ready("") != nil {
				return 0
			}
			return 1
		}))
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_sms_binds_down", ConstLabels: prometheus.Labels{"mode": string(r.mode)},
			Help: "Connections of this node to message centres that are not bound."}, func() float64 { return float64(r.down()) }))
	}
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "makola_clock_steps_total",
		Help: "Times that this machine's clock was set by 30 s or more since the server started."}, func() float64 { return float64(a.timekeeper.Seen()) }))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_clock_wrong",
		Help: "1 while this node refuses money because its clock is wrong."}, func() float64 {
		if a.timekeeper.Stopped() != nil {
			return 1
		}
		return 0
	}))
	for name, b := range m.books {
		labels := prometheus.Labels{"book": name}
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_ledger_faults", ConstLabels: labels,
			Help: "Faults that this node's last check found, by book: the ledger, the payments, the messages, or the chain of the audit log. Must be 0."},
			func() float64 { return float64(b.faults.Load()) }))
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_ledger_last_check_timestamp_seconds", ConstLabels: labels,
			Help: "Time of this node's last check of the book."}, func() float64 { return float64(b.checked.Load()) }))
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "makola_ledger_full_check_timestamp_seconds", ConstLabels: labels,
			Help: "Time at which the last check of every row of the book ended on any node, in seconds since 1970. 0 until this node's first check."}, func() float64 { return float64(b.full.Load()) }))
	}
	m.queue(a)
	m.webhooks(a)
	m.database(a)
	m.registry.MustRegister(&stored{app: a})
	return m
}

// Metrics returns the descriptions of all metrics. A test compares them with the operators' document.
func (a *App) Metrics() prometheus.Collector { return a.meters.registry }

// queue adds the metrics of this node's jobs.
func (m *meters) queue(a *App) {
	m.gauge("makola_jobs_in_memory", "Jobs in this node's memory.", func() float64 { return float64(a.jobs.Counts().InMemory) })
	m.gauge("makola_jobs_running", "Jobs that this node runs now.", func() float64 { return float64(a.jobs.Counts().Running) })
	m.gauge("makola_job_peers", "Other nodes alive.", func() float64 { return float64(a.jobs.Counts().Peers) })
	m.counter("makola_statement_faults_total", "Account statements that contradicted the ledger.", a.statements.Faults)
	m.counter("makola_jobs_run_total", "Runs of jobs.", func() uint64 { return a.jobs.Counts().Ran })
	m.counter("makola_jobs_retried_total", "Failed runs that will be repeated.", func() uint64 { return a.jobs.Counts().Retried })
	m.counter("makola_jobs_died_total", "Jobs that became dead letters.", func() uint64 { return a.jobs.Counts().Died })
	m.counter("makola_jobs_adopted_total", "Jobs taken over from other nodes or epochs.", func() uint64 { return a.jobs.Counts().Adopted })
	overflows := func() uint64 { return a.jobs.Counts().Overflows }
	m.counter("makola_jobs_overflowed_total", "Jobs without room in this node's memory, which are read from the table later.", overflows)
	m.counter("makola_jobs_spilled_total", "Deprecated: the earlier name of makola_jobs_overflowed_total.", overflows)
	m.gauge("makola_job_lease_holds", "1 while this node may begin jobs, 0 while its heartbeat fails.", func() float64 {
		if a.jobs.Counts().LeaseHolds {
			return 1
		}
		return 0
	})
	unmaintained := func() float64 { return a.jobs.Counts().Unmaintained.Seconds() }
	m.gauge("makola_job_maintenance_seconds", "Time since this node last finished its job maintenance: taking over jobs of dead nodes and reading waiting ones.", unmaintained)
	m.gauge("makola_job_keeper_seconds", "Deprecated: the earlier name of makola_job_maintenance_seconds.", unmaintained)
	m.counter("makola_job_leases_lost_total", "Times that this node's lease lapsed.", func() uint64 { return a.jobs.Counts().LeasesLost })
}

// webhooks adds the metrics of this node's deliveries.
func (m *meters) webhooks(a *App) {
	attempts := func(result string, value func() uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "makola_webhook_attempts_total",
			Help: "Attempts to deliver an event, by whether the receiver answered 2xx (delivered) or not (failed).", ConstLabels: prometheus.Labels{"result": result}},
			func() float64 { return float64(value()) }))
	}
	attempts("delivered", func() uint64 { return a.webhooks.Counts().Delivered })
	attempts("failed", func() uint64 { return a.webhooks.Counts().Failed })
	m.counter("makola_webhooks_given_up_total", "Events that were not delivered after all attempts, or that the receiver refused for good.", func() uint64 { return a.webhooks.Counts().GivenUp })
}

// database registers the metrics of the connections and of the disk.
func (m *meters) database(a *App) {
	m.gauge("makola_db_pool_in_use", "Transactions that have a connection to the database, including those of this metrics request.", func() float64 { return float64(a.db.Counts().Running) })
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "makola_db_pool_wait_seconds_total",
		Help: "Total time for which transactions waited for a connection."}, func() float64 { return a.db.Counts().Waited.Seconds() }))
	m.gauge("makola_disk_short", "1 while the disk is nearly full: contacts, campaigns and sender IDs are refused, payments continue.", func() float64 {
		if a.db.Short() {
			return 1
		}
		return 0
	})
	m.counter("makola_db_tx_retries_total", "Transactions that ran again after a conflict, a lost connection or an ambiguous COMMIT.", func() uint64 { return a.db.Counts().Retried })
}

// handler serves /metrics. For clients on this machine it also serves Go's profiles under /debug/pprof/, because a
// profile occupies a processor for its duration.
func (m *meters) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 2 * scrapeTime}))
	mux.HandleFunc("GET /debug/pprof/", local(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/profile", local(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", local(pprof.Trace))
	return mux
}

// metricsHandler returns the handler of the metrics' listener. It requires the operator's token if there is one.
// Otherwise it refuses requests of web pages.
func (a *App) metricsHandler() http.Handler {
	handler := a.meters.handler()
	token := a.cfg.MetricsToken.Reveal()
	if token == "" {
		return meant(handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token of MAKOLA_METRICS_TOKEN is needed", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// local refuses every client that is not on this machine.
func local(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	}
}

// stored are the figures that a scrape reads, most of them from the database.
type stored struct {
	app  *App
	told clock.Seldom
}

var (
	queueDepth      = prometheus.NewDesc("makola_queue_depth", "Jobs that are not finished, on all nodes.", []string{"queue"}, nil)
	queueDead       = prometheus.NewDesc("makola_queue_dead", "Dead letters, on all nodes.", []string{"queue"}, nil)
	queueOldest     = prometheus.NewDesc("makola_queue_oldest_seconds", "Time for which the earliest unfinished job has been due, on all nodes. For the queue payment it is the age of the oldest open payment.", []string{"queue"}, nil)
	jobsOverdue     = prometheus.NewDesc("makola_jobs_overdue_seconds", "Longest time for which a due job has waited to begin on this node.", []string{"queue"}, nil)
	periodicSeconds = prometheus.NewDesc("makola_periodic_seconds", "Time for which periodic work has been running or due on this node; 0 if it is not due.", []string{"work"}, nil)
	recoveryPhase   = prometheus.NewDesc("makola_recovery", "Whether a recovery is in progress: 0 no, 1 closed, 2 open.", nil, nil)
	recoverySeconds = prometheus.NewDesc("makola_recovery_seconds", "Time since the recovery began; 0 without a recovery.", nil, nil)
	backupLast      = prometheus.NewDesc("makola_backup_last_timestamp_seconds", "Time of the last recorded backup, in seconds since 1970; 0 if there is none.", nil, nil)
	smsStrays       = prometheus.NewDesc("makola_sms_receipts_unmatched", "Receipts of the last day that match no message, 10,000 at most.", nil, nil)
	otpTapsClosed   = prometheus.NewDesc("makola_otp_taps_closed", "Ranges of numbers that are now closed to an account's one-time passwords.", nil, nil)
	auditUnlinked   = prometheus.NewDesc("makola_audit_unlinked_seconds", "Age of the oldest audit entry that is not in the chain; 0 if all are in it.", nil, nil)
	auditHead       = prometheus.NewDesc("makola_audit_head", "Number of the last link of the audit chain, which only grows.", nil, nil)
	brokeGlass      = prometheus.NewDesc("makola_break_glass", "Audit entries of the last 24 hours about commands with --break-glass.", nil, nil)
	requestsWaiting = prometheus.NewDesc("makola_acts_waiting", "Change requests that await approval by a second person.", nil, nil)
	noticesWaiting  = prometheus.NewDesc("makola_notices_waiting_seconds", "Age of the oldest notice that its channel has not delivered; 0 if there is none.", []string{"channel"}, nil)
	noticesFailed   = prometheus.NewDesc("makola_notices_failed", "Notices of the last 24 hours that were given up, or that the other side refused for good.", []string{"channel"}, nil)
	databaseBytes   = prometheus.NewDesc("makola_db_bytes", "Size of the database, its indexes and free pages included; of SQLite without its write-ahead log.", nil, nil)
	figuresBehind   = prometheus.NewDesc("makola_figures_behind_seconds", "How far the figures of pages are behind the payments. Missing while they are counted for the first time, or again.", nil, nil)
	ledgerImbalance = prometheus.NewDesc("makola_ledger_imbalance_pesewas", "Sum of all accounts of an asset, in pesewas, or in credits for SMS; must be 0.", []string{"asset"}, nil)
)

// Describe implements prometheus.Collector.
func (s *stored) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDepth, queueDead, queueOldest, jobsOverdue, periodicSeconds, ledgerImbalance, recoveryPhase, recoverySeconds, backupLast, smsStrays, otpTapsClosed, auditUnlinked, auditHead, requestsWaiting, brokeGlass, noticesWaiting, noticesFailed, databaseBytes, figuresBehind} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If a query fails, its figures are left out and the failure is logged.
func (s *stored) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	depths, err := s.app.jobs.Depth(ctx)
	for _, d := range depths {
		gauge(queueDepth, float64(d.Alive), d.Kind)
		gauge(queueDead, float64(d.Dead), d.Kind)
		age := 0.0
		if !d.Oldest.IsZero() {
			age = max(0, s.app.clock.Since(d.Oldest).Seconds())
		}
		gauge(queueOldest, age, d.Kind)
	}
	s.complain(err)
	for kind, late := range s.app.jobs.Overdue() {
		gauge(jobsOverdue, late.Seconds(), kind)
	}
	for work, since := range s.app.jobs.Periodics() {
		gauge(periodicSeconds, since.Seconds(), work)
	}
	state, err := s.app.recovery.State(ctx)
	s.complain(err)
	if err == nil {
		lasted := 0.0
		if state.Lasts() {
			lasted = max(0, s.app.clock.Since(state.BegunAt).Seconds())
		}
		gauge(recoveryPhase, map[recovery.Phase]float64{recovery.PhaseClosed: 1, recovery.PhaseOpen: 2}[state.Phase])
		gauge(recoverySeconds, lasted)
	}
	last, found, err := backup.Last(ctx, s.app.db)
	s.complain(err)
	if err == nil {
		at := 0.0
		if found {
			at = float64(last.MadeAt.Unix())
		}
		gauge(backupLast, at)
	}
	since, err := s.app.audit.UnlinkedSince(ctx)
	s.complain(err)
	if err == nil {
		age := 0.0
		if !since.IsZero() {
			age = max(0, s.app.clock.Since(since).Seconds())
		}
		gauge(auditUnlinked, age)
	}
	head, err := s.app.audit.Head(ctx)
	s.complain(err)
	if err == nil {
		gauge(auditHead, float64(head.Number))
	}
	waiting, err := s.app.changes.Store.Waiting(ctx)
	s.complain(err)
	if err == nil {
		gauge(requestsWaiting, float64(waiting))
	}
	broke, err := s.app.audit.BrokeGlassSince(ctx, s.app.clock.Now().Add(-24*time.Hour))
	s.complain(err)
	if err == nil {
		gauge(brokeGlass, float64(broke))
	}
	s.notices(ctx, gauge)
	s.counted(ctx, gauge)
	strays, err := s.app.messaging.UnmatchedReceipts(ctx)
	s.complain(err)
	if err == nil {
		gauge(smsStrays, float64(strays.Receipts))
	}
	closed, err := s.app.messaging.Codes.CountClosedRanges(ctx)
	s.complain(err)
	if err == nil {
		gauge(otpTapsClosed, float64(closed))
	}
	size, err := s.app.db.Size(ctx)
	s.complain(err)
	if err == nil {
		gauge(databaseBytes, float64(size))
	}
	sums, err := s.app.ledger.Imbalance(ctx)
	for asset, sum := range sums {
		gauge(ledgerImbalance, float64(sum), string(asset))
	}
	s.complain(err)
}

// counted collects the delay of the figures of pages.
func (s *stored) counted(ctx context.Context, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	to, err := s.app.figures.CountedTo(ctx)
	if s.complain(err); err == nil && !to.IsZero() {
		gauge(figuresBehind, max(0, s.app.clock.Since(to).Seconds()))
	}
}

// notices collects the figures of notices.
func (s *stored) notices(ctx context.Context, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	channels, err := s.app.notices.Health(ctx)
	s.complain(err)
	for _, h := range channels {
		age := 0.0
		if !h.Oldest.IsZero() {
			age = max(0, s.app.clock.Since(h.Oldest).Seconds())
		}
		gauge(noticesWaiting, age, string(h.Channel))
		gauge(noticesFailed, float64(h.Failed), string(h.Channel))
	}
}

// complain logs a failed query, at most once a minute. The rest of the program already logs an unavailable database,
// and a line for each scrape would hide those lines.
func (s *stored) complain(err error) {
	if err == nil {
		return
	}
	level := slog.LevelDebug
	if !errors.Is(err, db.ErrUnavailable) {
		missed, ok := s.told.May(s.app.clock.Now())
		if !ok {
			return
		}
		level, err = slog.LevelWarn, fmt.Errorf("%w (and %d times since the last line)", err, missed)
	}
	s.app.log.Log(context.Background(), level, "failed to read metric", "error", err)
}
