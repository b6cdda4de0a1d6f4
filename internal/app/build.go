package app

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// How long rows are kept that nobody needs for ever, and how often they are looked for.
const (
	keepExchanges  = 90 * 24 * time.Hour
	pruneEvery     = time.Hour
	ledgerCheckGap = 10 * time.Minute
)

// parts is the domain, built and wired.
type parts struct {
	db        *db.DB
	ledger    *ledger.Ledger
	tenants   *tenant.Store
	access    *access.Access
	jobs      *jobs.Queue
	webhooks  *webhook.Webhooks
	routes    *route.Table
	payments  *payments.Payments
	messaging *messaging.Messaging
	sms       []*smsRail // that of test money is the last
	api       *api.API
	meters    *meters
	rails     []provider.Rail
	closers   []func()
}

// openDatabase opens and, on SQLite, locks and migrates. PostgreSQL is migrated by `makola migrate up`,
// except in development, where a first start must need nothing else.
func (a *App) openDatabase(ctx context.Context) error {
	if a.cfg.Database == "" {
		unlock, err := db.LockFolder(a.cfg.Data)
		if err != nil {
			return err
		}
		a.later(func(context.Context) error { return unlock() })
	}
	d, err := db.Open(ctx, db.Options{URL: a.cfg.Database, Path: a.cfg.SQLite(), MaxConns: a.cfg.Connections, Faults: a.opts.Faults})
	if err != nil {
		return err
	}
	a.db = d
	a.later(func(context.Context) error { return d.Close() })
	pending, err := d.PendingMigrations(ctx)
	if err != nil {
		return err
	}
	if len(pending) == 0 {
		return nil
	}
	if a.production && d.Engine() == db.Postgres {
		return fmt.Errorf("the database lacks %d migrations: run makola migrate up", len(pending))
	}
	return d.Migrate(ctx)
}

func (a *App) buildParts(ctx context.Context) error {
	a.access = access.New(a.db, a.clock)
	if err := a.access.CheckInstallation(ctx, a.cfg.Secret); err != nil {
		return err
	}
	a.ledger = ledger.New(a.db, a.clock, a.cfg.Node)
	a.tenants = tenant.New(a.db, a.ledger, a.clock)
	a.jobs = jobs.New(a.db, a.clock, a.log, jobs.Options{Node: a.cfg.Node, LeaseFor: a.opts.Lease})
	a.webhooks = webhook.New(a.db, a.jobs, a.clock, a.log, webhook.Options{Secret: a.cfg.Secret, Development: !a.production})
	// The adapters report their exchanges to the table that is made of them.
	if err := a.buildRails(func(e provider.Exchange) { a.routes.Record(e) }); err != nil {
		return err
	}
	a.later(func(context.Context) error {
		for _, closeClient := range a.closers {
			closeClient()
		}
		return nil
	})
	a.routes = route.New(a.db, a.clock, a.log, a.rails)
	a.payments = payments.New(payments.Deps{
		DB: a.db, Ledger: a.ledger, Tenants: a.tenants, Jobs: a.jobs, Webhooks: a.webhooks, Routes: a.routes,
		Clock: a.clock, Log: a.log, Secret: a.cfg.Secret, CallbackURL: a.callbackURL, Development: !a.production,
	})
	a.later(func(context.Context) error { a.payments.Close(); return nil })
	if err := a.buildMessaging(); err != nil {
		return err
	}
	a.meters = newMeters(a)
	return nil
}

// startParts sets the background work going.
func (a *App) startParts(ctx context.Context) error {
	if err := a.routes.Start(ctx); err != nil {
		return err
	}
	a.later(a.routes.Stop)
	a.jobs.Periodic("prune", pruneEvery, a.prune)
	a.jobs.Periodic("ledger-check", ledgerCheckGap, a.checkLedger)
	if err := a.jobs.Start(ctx); err != nil {
		return err
	}
	a.later(a.jobs.Stop)
	a.startMessaging(ctx)
	return nil
}

// prune removes what has served its time, everywhere.
func (a *App) prune(ctx context.Context) error {
	if _, err := a.access.PruneCounters(ctx); err != nil {
		return err
	}
	_, err := a.routes.Prune(ctx, a.clock.Now().Add(-keepExchanges))
	return err
}

// checkLedger holds the ledger against itself and tells the metric and the log.
func (a *App) checkLedger(ctx context.Context) error {
	report, err := a.ledger.Check(ctx)
	if err != nil {
		return err
	}
	a.meters.ledgerChecked(report, a.clock.Now())
	if !report.OK() {
		a.log.ErrorContext(ctx, "the ledger does not add up", "problems", report.Problems)
	}
	return nil
}
