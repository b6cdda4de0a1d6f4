// Package app builds one Makola from its parts, starts it and stops it. Only this package joins the domains, the
// transports and the adapters. It chooses the providers for test and for live money. It starts the database, the
// domain, the queue, the listeners and the ready file in this order. It stops them in reverse: new requests, requests
// in flight, jobs, the simulator, the database. It decides nothing about money.
//
// Its tests are those of the whole program: scenarios over HTTP, the simulation with faults, and the built program
// killed under load.
//
// Files:
//
//	running.go                     the parts of a running Makola, and its stop
//	build.go                       construction of the parts
//	rails.go, sms.go, sms_rail.go, texts.go  the payment providers and the SMS rails, test and live; texts over HTTP
//	secret.go, ring.go             the master keys
//	serve.go, listen.go            the listeners: the interface, metrics; one listener
//	backlog_*.go                   connections that wait to be accepted
//	clients.go, local_origin.go    the number of connections; pages of other sites are kept from loopback
//	answers.go, turns.go           limits of unread answers; rotation of work for unknown connections
//	unidentified.go                limits of unknown connections
//	certificate.go                 TLS files that change on disk
//	descriptors_*.go               the number of files that this process may open
//	bounded_log.go                 a limit of lines that clients can cause
//	access_log.go                  a line for each answered request, if enabled
//	metrics.go, meters.go          every metric; those that requests change
//	newest_row.go                  the newest stored time, for comparison with the machine's clock
//	people.go                      the dependencies of the console, and its first link
//	demo.go                        development: an account with money
//	simulator.go, simulated.go     the simulator: how it starts; its addresses for clients
//	banner.go, ready.go            the output of a start, for people and for programs
//	notices.go, conditions.go      the content of notices about change requests; the conditions that are watched
//	notify.go                      messages to systemd
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// Start builds and starts Makola and returns when everything listens. If it returns an error, nothing is left
// running.
func Start(ctx context.Context, cfg config.Server, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	a := &App{cfg: cfg, opts: o, log: o.Log, clock: o.Clock, production: cfg.Production(), failed: make(chan error, 4), draining: make(chan struct{})}
	a.ready = Ready{Version: o.Version, PID: os.Getpid()}
	err := a.rise(ctx, a.settle, a.lockFolder, a.openAccessLog, a.bind, a.openDatabase, a.startSimulator, a.buildProxy, a.buildParts, a.startParts, a.listenMetrics, a.listen, a.loadDemo, a.invite, a.greet, a.announce, a.supervise)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// rise performs the steps of a start. If a step fails, it stops the running parts within the usual time of a stop.
func (a *App) rise(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return errors.Join(err, a.end(ctx))
		}
	}
	return nil
}

// announce writes the ready file. Only the message to the supervisor comes later. A program that reads the file may
// interrupt the server, so the server must have started by then.
func (a *App) announce(context.Context) error {
	if a.cfg.ReadyFile == "" {
		return nil
	}
	a.later(func(context.Context) error { return a.ready.remove(a.cfg.ReadyFile) })
	return a.ready.write(a.cfg.ReadyFile)
}

// Ready returns the content of this server's ready file.
func (a *App) Ready() Ready { return a.ready }

// Quiet waits until nothing is due by the clock and nothing due is running: jobs, status queries, and the simulator
// of this process with its callbacks, texts and receipts. Tests that move the clock use it.
func (a *App) Quiet(ctx context.Context) error {
	local := a.sim != nil && a.sim.local != nil
	if local {
		if err := a.connected(ctx); err != nil {
			return err
		}
	}
	for range 2 { // a finished item of one may start work of the other
		if err := errors.Join(a.jobs.Quiet(ctx), a.payments.Quiet(ctx)); err != nil {
			return err
		}
		if !local {
			continue
		}
		if err := a.sim.local.Quiet(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run waits until ctx ends or a listener fails, then stops.
func (a *App) Run(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-a.failed:
	}
	a.notify("STOPPING=1")
	a.log.Info(draining, "notice", a.cfg.Notice(), "drain_for", a.cfg.DrainFor)
	a.notice(context.WithoutCancel(ctx))
	return errors.Join(err, a.end(ctx))
}

// end is Stop with the operator's time limit, even if ctx is already done.
func (a *App) end(ctx context.Context) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.DrainFor)
	defer cancel()
	return a.Stop(limit)
}

// notice makes /readyz report that this node is leaving, and gives proxies time to notice.
func (a *App) notice(ctx context.Context) {
	a.leave.Do(func() { close(a.draining) })
	if notice := a.cfg.Notice(); notice > 0 {
		_ = a.clock.Sleep(ctx, notice) // ctx has no end, so the sleep is complete
	}
}

// openAccessLog opens the access log if one is configured.
func (a *App) openAccessLog(context.Context) (err error) {
	if a.cfg.AccessLog == "" {
		return nil
	}
	log, closeLog, err := openAccessLog(a.cfg.AccessLog, a.log)
	if err != nil {
		return err
	}
	a.accessLog = log
	a.later(func(context.Context) error { return closeLog() })
	return nil
}

// settle completes the configuration: the mode, the data folder, the node's name.
func (a *App) settle(context.Context) error {
	if a.cfg.Ephemeral {
		folder, err := os.MkdirTemp("", "makola-")
		if err != nil {
			return fmt.Errorf("create a temporary data folder: %w", err)
		}
		a.folder, a.cfg.Data = folder, folder
		a.later(func(context.Context) error { return os.RemoveAll(folder) })
	}
	unfit, head := a.cfg.Wrong(), "This Makola needs"
	if a.production {
		unfit = append(a.cfg.Missing(), unfit...)
		head = "This Makola is in production mode, because " + a.cfg.WhyProduction() + ", and needs"
	}
	if len(unfit) > 0 {
		return problem.New(problem.Invalid, "settings_unfit", head+":\n  - "+strings.Join(unfit, "\n  - "))
	}
	if a.cfg.ReadyFile != "" {
		if err := checkPlace(a.cfg.ReadyFile); err != nil {
			return err
		}
	}
	if _, err := a.firstPassword(); err != nil { // a bad file is refused before anything is created
		return err
	}
	a.cfg.PublicURL = strings.TrimRight(a.cfg.PublicURL, "/") // paths follow it
	if a.cfg.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		// SQLite has one server at a time, which the lock of its folder ensures. With the name of the previous
		// server, this one takes over that server's work at once instead of waiting for a lease to expire.
		a.cfg.Node = host
		if a.cfg.Database != "" {
			// A process id can repeat after a reboot, so the name also has a few random digits.
			a.cfg.Node = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:4])
		}
	}
	return nil
}
