package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/batches"
	campaigns "github.com/makola/makola/internal/console/compose"
	"github.com/makola/makola/internal/console/handsets"
	"github.com/makola/makola/internal/console/ops"
	"github.com/makola/makola/internal/console/records"
	accountsettings "github.com/makola/makola/internal/console/settings"
	"github.com/makola/makola/internal/console/statements"
	accounts "github.com/makola/makola/internal/console/tenant"
	owntreasury "github.com/makola/makola/internal/console/treasury"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/moolre"
	"github.com/makola/makola/internal/provider/pawapay"
	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/recovery"
	simmoolre "github.com/makola/makola/internal/sim/moolre"
	simpawapay "github.com/makola/makola/internal/sim/pawapay"
	simpaystack "github.com/makola/makola/internal/sim/paystack"
	"github.com/makola/makola/internal/tenant"
)

// bind opens the addresses before anything is created and before another node's lease can be requested. So a start
// that finds an address in use changes nothing.
func (a *App) bind(context.Context) error {
	l, err := listen("the JSON interface", a.cfg.Listen, false, nil)
	if err != nil {
		return err
	}
	a.later(l.close)
	if a.cfg.TLSCert != "" {
		if err := l.useTLS(a.cfg.TLSCert, a.cfg.TLSKey, a.log); err != nil {
			return err
		}
	}
	l.turns = newTurns(a.cfg.TrustedProxies)
	a.doors.api = l
	if !a.cfg.Metrics() {
		return nil
	}
	address := a.cfg.MetricsListen
	if !a.production && strings.HasSuffix(a.cfg.Listen, ":0") {
		address = "127.0.0.1:0" // a request for a free port applies to all listeners
	}
	if a.doors.metrics, err = listen("metrics", address, !a.production, nil); err != nil {
		return err
	}
	a.later(a.doors.metrics.close)
	return nil
}

// listenMetrics serves the metrics. It starts before the interface and stops after it, so that metrics are available
// while the interface drains. At its stop, running requests are cut off, because a profile must not use up the time
// for draining.
func (a *App) listenMetrics(context.Context) error {
	l := a.doors.metrics
	if l == nil {
		return nil
	}
	l.server.Handler = a.metricsHandler()
	a.serve(l, func(context.Context) error { return l.server.Close() })
	a.ready.MetricsURL = l.url() + "/metrics"
	return nil
}

// listen serves the interface and adds the addresses to the ready record.
func (a *App) listen(context.Context) error {
	l := a.doors.api
	most := Descriptors() / 4 * 3 // the rest is for the database, providers and receivers
	if a.cfg.MaxClients > 0 {
		most = min(most, a.cfg.MaxClients)
	}
	a.crowd = newClients(most)
	l.server.ConnState = a.crowd.changed
	l.server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return a.crowd.arrive(withConn(ctx, conn), conn)
	}
	public := a.cfg.PublicURL
	if public == "" {
		public = l.url()
	}
	hosts := a.hosts()
	a.callers = fewLines(a.log)
	a.api = api.New(api.Deps{
		Hosts:  hosts,
		Access: a.access, Limits: a.limits, Tenants: a.tenants, Ledger: a.ledger, Payments: a.payments, Batches: a.batches, Changes: a.changes, Statements: a.statements, Lookups: a.lookups, Senders: a.senders, Contacts: a.contacts, Messaging: a.messaging, TextRails: a.textRails, Reported: a.receiveReport, Routes: a.routes, Webhooks: a.webhooks, Requests: a.requests, Recovery: a.recovery, Clock: a.clock, Log: a.callers,
		Secret: a.cfg.Secret, PublicURL: public, TrustedProxies: a.cfg.TrustedProxies, Origins: a.cfg.Origins,
		GeneralLimit: a.cfg.PerMinute(), USSDCode: a.cfg.USSDCode, Short: a.db.Short, Development: !a.production, ProxiesOnly: a.production && a.cfg.TLSCert == "", Stopped: a.timekeeper.Stopped, Observe: a.seen, Refused: a.requests.Record,
	})
	sites, waiting := a.pages(a.cfg.Secret.Derive)
	a.console = console.New(a.consoleDeps(public, hosts, waiting), sites...)
	l.server.Handler = a.handler()
	a.serve(l, a.stopListening)
	a.ready.APIURL = l.url() + "/api/v1"
	a.ready.DocsURL = l.url() + "/docs"
	if !a.production {
		a.ready.ConsoleURL = public + "/"
	}
	if a.sim != nil && !a.production {
		a.ready.SimURL = l.url() + simControl
	}
	a.findCallbacks(public)
	return nil
}

// consoleDeps returns the dependencies of the console's frame. waiting counts the items that wait for a visitor.
func (a *App) consoleDeps(public string, hosts func(string) bool, waiting func(console.Place) (map[string]int, error)) console.Deps {
	d := console.Deps{
		Waiting: waiting,
		Hosts:   hosts, Observe: a.seen, Identity: a.identity, Tenants: a.tenants, Audit: a.audit, Notices: a.notices, Clock: a.clock, Log: a.callers,
		PublicURL: public, Installation: hex.EncodeToString(a.cfg.Secret.Derive("console/installation")[:4]),
		TrustedProxies: a.cfg.TrustedProxies, ProxiesOnly: a.production && a.cfg.TLSCert == "", Development: !a.production,
		Stopped: a.timekeeper.Stopped, Seal: a.cfg.Secret.Sealer(console.SealForms),
	}
	if !a.production {
		d.NewLink, d.Home = a.printLink, "/app/"+demoTenant
	}
	return d
}

// pages returns the routes of the console's sites, and the counts of their navigation. A server in production has no simulator, and no
// pages of handsets.
func (a *App) pages(secrets func(purpose string) []byte) (sites [][]console.Route, waiting func(console.Place) (map[string]int, error)) {
	approvals := &approvals.Pages{Changes: a.changes}
	records := &records.Pages{Inbox: a.inbox, Contacts: a.contacts, Tenants: a.tenants, Audit: a.audit, Ledger: a.ledger, Payments: a.payments, Messaging: a.messaging, Webhooks: a.webhooks,
		Requests: a.requests, Routes: a.routes, Approvals: approvals, Statements: a.statements, Notices: a.notices, NumberKey: secrets(identity.NumberKey)}
	settings := &accountsettings.Pages{Identity: a.identity, Access: a.access, Requests: a.requests, Webhooks: a.webhooks, Approvals: approvals}
	ops := &ops.Pages{Tenants: a.tenants, Access: a.access, Audit: a.audit, Payments: a.payments, Messaging: a.messaging, Senders: a.senders,
		Jobs: a.jobs, Rails: a.routes, Checkup: a.checkup, Approvals: approvals, Records: records, Settings: settings, Notices: a.notices, Checks: a.checks,
		Figures: a.figures, Reconcile: a.reconcile, LastBackup: func(ctx context.Context) (time.Time, bool, error) {
			last, found, err := backup.Last(ctx, a.db)
			return last.MadeAt, found, err
		}}
	accounts := &accounts.Pages{Tenants: a.tenants, Limits: a.limits, Ledger: a.ledger, Payments: a.payments, Rails: a.routes, Figures: a.figures, Senders: a.senders,
		Approvals: approvals, Records: records, Settings: settings, FormKey: secrets("console/forms")}
	batches := &batches.Pages{Batches: a.batches, Payments: a.payments, Audit: a.audit, Approvals: approvals}
	campaigns := &campaigns.Pages{Drafts: a.compose, Senders: a.senders, Contacts: a.contacts, Ledger: a.ledger, Approvals: approvals, Hours: a.cfg.SMSHours}
	statements := &statements.Pages{Approvals: approvals, Reconcile: a.reconcile, Payments: a.payments, Audit: a.audit}
	sites = [][]console.Route{ops.Routes(), accounts.Routes(), batches.Routes(), campaigns.Routes(), statements.Routes()}
	own := &owntreasury.Pages{Treasury: a.treasury, Books: a.closing, Ledger: a.ledger, Rails: a.routes, Approvals: approvals}
	sites = append(sites, own.Routes())
	if !a.production {
		handsets := &handsets.Pages{Tenants: a.tenants, Ledger: a.ledger, Payments: a.payments, Webhooks: a.webhooks, Simulator: a.sim.control}
		sites = append(sites, handsets.Routes())
	}
	return sites, ops.Waiting
}

// seen counts an answered request and writes it to the access log.
func (a *App) seen(s api.Seen) {
	a.meters.seen(s)
	if a.accessLog != nil {
		a.accessLog.write(a.clock.Now(), s)
	}
}

// serve runs a listener until Stop, which ends it with stop. The log of net/http goes to the same place as all other
// lines.
func (a *App) serve(l *listener, stop func(context.Context) error) {
	l.server.ErrorLog = log.New(serverLog{fewLines(a.log)}, "", 0)
	go func() {
		if err := l.serve(); err != nil {
			a.failed <- err
		}
	}()
	a.later(stop)
}

// stopListening ends the interface without losing a request. It refuses new connections, answers every request on the
// existing ones, and then closes the idle ones.
func (a *App) stopListening(ctx context.Context) error {
	if a.cfg.Notice() > 0 { // without it clients have no other node
		if err := a.doors.api.refuse(ctx); err != nil {
			a.log.WarnContext(ctx, "pending connections may be reset", "error", err)
		}
		a.crowd.answered(ctx)
	}
	return a.doors.api.shutdown(ctx)
}

// handler answers requests within the limits of unread answers. It routes the probes, the control interface of
// development's simulator (/sim/v1) and the console's pages (console.Owns) by name. The JSON interface answers every
// other path, and an unknown path with an error in JSON. It does not use ServeMux, because ServeMux redirects unclean
// paths.
func (a *App) handler() http.Handler {
	unread := newAnswers(a.cfg.TrustedProxies, cmp.Or(a.opts.AnswerTime, answerTime), func() { a.meters.unread.Inc() })
	paths := a.paths()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { unread.serve(w, r, paths) })
}

// transportSecurity makes browsers use only TLS for a year. It leaves out subdomains, which may be other servers.
var transportSecurity = []string{"max-age=31536000"}

func (a *App) paths() http.Handler {
	overTLS := a.production && (a.cfg.TLSCert != "" || strings.HasPrefix(a.cfg.PublicURL, "https://"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if overTLS {
			w.Header()["Strict-Transport-Security"] = transportSecurity
		}
		if a.leaving() { // clients with a connection look for another node before this one ends
			w.Header().Set("Connection", "close")
		}
		switch {
		case r.URL.Path == "/healthz":
			probe(w, r, http.StatusOK, "ok")
		case r.URL.Path == "/readyz":
			a.readiness(w, r)
		case crowded(r) && !strings.HasPrefix(r.URL.Path, "/callbacks/"):
			a.busy(w, r)
		case !a.production && a.sim != nil && strings.HasPrefix(r.URL.Path, simControl+"/"):
			a.sim.control.ServeHTTP(w, r)
		case console.Owns(r.URL.Path):
			a.meters.forwarded(r, a.cfg.TrustedProxies)
			a.meters.inFlight.Inc()
			defer a.meters.inFlight.Dec()
			a.console.ServeHTTP(w, r)
		default:
			a.meters.forwarded(r, a.cfg.TrustedProxies)
			a.meters.inFlight.Inc()
			defer a.meters.inFlight.Dec()
			a.api.ServeHTTP(w, r)
		}
	})
}

// readyTime is how long the database may take to answer during a probe.
const readyTime = 800 * time.Millisecond

// readiness reports whether this node should get requests: it is not stopping, and the database answers. A node that
// refuses some requests stays ready, because a proxy that removes it would also stop payments.
func (a *App) readiness(w http.ResponseWriter, r *http.Request) {
	if a.leaving() {
		probe(w, r, http.StatusServiceUnavailable, "draining")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if err := a.db.Ping(ctx); err != nil {
		if r.Context().Err() == nil { // otherwise the caller disconnected, which is no fault of the database
			a.callers.WarnContext(r.Context(), "not ready", "error", err)
		}
		message := "the database does not answer"
		if resource, _ := postgres.Exhausted(err); resource != "" { // PostgreSQL's own message names a role, and anybody may ask
			message = "the database has no " + resource + " left"
		}
		probe(w, r, http.StatusServiceUnavailable, message)
		return
	}
	stopped := a.timekeeper.Stopped() != nil
	if stopped && a.db.Engine() == db.Postgres { // another node may have the right time
		probe(w, r, http.StatusServiceUnavailable, "the clock of this node is wrong: money is refused")
		return
	}
	s, _ := a.recovery.State(r.Context()) // after an error the probe reports no recovery, because the database has just answered
	refused := a.refused(s, stopped)
	message := "ready"
	switch {
	case len(refused) > 0:
		message += ", but " + strings.Join(refused, "; ")
	case s.Lasts():
		message += "; a recovery is in progress: " + string(s.Phase)
	}
	probe(w, r, http.StatusOK, message, refused...)
}

// refused lists the operations that a ready node refuses, each with its reason. stopped reports a clock that stops
// payments.
func (a *App) refused(s recovery.State, stopped bool) (list []string) {
	if stopped {
		list = append(list, "the clock of this machine is wrong: money is refused")
	}
	if s.Closed() {
		list = append(list, "a recovery is closed: customers get 503, except those that an operator has allowed")
	}
	switch {
	case a.db.Full():
		list = append(list, "the database's disk is full: contacts, campaigns and sender IDs are refused, and payments that it cannot store get 503")
	case a.db.Short():
		list = append(list, "the disk is nearly full: contacts, campaigns and sender IDs are refused")
	}
	return list
}

// busy refuses a request on a connection beyond the limit, with the interface's message.
func (a *App) busy(w http.ResponseWriter, r *http.Request) {
	id := api.RequestID(r)
	h := w.Header()
	h.Set("Connection", "close")
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", "2")
	h.Set("X-Request-Id", id)
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"message":"Too many connections. Try again shortly","code":"server_busy","request_id":"` + id + `","doc_url":"` + guides.DocURL(a.api.PublicURL, "server_busy") + "\"}\n"))
}

// probe answers a probe. refused lists the operations that a ready node refuses.
func probe(w http.ResponseWriter, r *http.Request, status int, message string, refused ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Request-Id", api.RequestID(r))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Message string   `json:"message"`
		Refused []string `json:"refused,omitempty"`
	}{message, refused})
}

// findCallbacks sets the addresses for providers' callbacks, under the public URL. In development the simulator on
// this machine can reach any address of the server. A live provider could not, so it gets no address.
func (a *App) findCallbacks(public string) {
	u, err := url.Parse(public)
	local := err == nil && net.ParseIP(u.Hostname()).IsLoopback()
	urls := map[railID]string{}
	for _, r := range a.rails {
		if r.Mode != "live" || !local {
			urls[railID{r.Name, r.Mode}] = public + provider.CallbackPath(a.cfg.Secret, r)
		}
	}
	for _, r := range a.textRails {
		if r.Reports != nil && (r.Mode != string(tenant.Live) || !local) {
			urls[railID{r.Name, r.Mode}] = public + r.CallbackPath(a.cfg.Secret)
		}
	}
	a.callbacks.Store(&urls)
	for name, settings := range map[string]func(address string) any{
		paystack.Name: func(address string) any { return simpaystack.Settings{EventURL: &address} },
		pawapay.Name:  func(address string) any { return simpawapay.Settings{CallbackURL: &address} },
		moolre.Name:   func(address string) any { return simmoolre.Settings{CallbackURL: &address} },
	} {
		if address := urls[railID{name, string(tenant.Test)}]; address != "" && a.sim != nil {
			if err := a.sim.sendEvents(context.Background(), name, settings(address)); err != nil {
				a.log.Warn("simulated provider sends no events", "provider", name, "error", err)
			}
		}
	}
}

// callbackURL returns the address for the callbacks of a rail's provider. It is empty if there is none yet.
func (a *App) callbackURL(r provider.Rail) string {
	urls := a.callbacks.Load()
	if urls == nil {
		return ""
	}
	return (*urls)[railID{r.Name, r.Mode}]
}
