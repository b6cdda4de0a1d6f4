package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/books"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/checkup"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/timekeeping"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// How long rows are kept unless they are kept for ever, and how often expired rows are removed.
const (
	keepExchanges = 90 * 24 * time.Hour
	pruneEvery    = time.Hour
	notKnownEvery = 24 * time.Hour
	expireEvery   = time.Minute // change requests that have waited too long
	matchEvery    = 20 * time.Second
)

// The intervals of checks of the books. booksCheckTime bounds one check. After a check, booksCheckRest times its
// duration pass before the next check, so that checks of many new rows cost little.
const (
	booksCheckGap  = 10 * time.Minute
	booksCheckTime = 30 * time.Minute
	booksCheckRest = 20
)

// lockFolder prevents a second server from using a SQLite database.
func (a *App) lockFolder(context.Context) error {
	if a.cfg.Database != "" {
		return nil
	}
	unlock, err := db.LockFolder(a.cfg.Data)
	if err != nil {
		return err
	}
	a.later(func(context.Context) error { return unlock() })
	return nil
}

// openDatabase opens the database and, on SQLite, migrates it. PostgreSQL is migrated by `makola migrate up`, except
// in development, where a first start must need nothing else.
func (a *App) openDatabase(ctx context.Context) error {
	d, err := a.awaitDatabase(ctx)
	if err != nil {
		return err
	}
	a.db = d
	a.later(func(context.Context) error { return d.Close() })
	pending, err := d.PendingMigrations(ctx)
	if err != nil {
		return err
	}
	if !a.production {
		if err := a.refuseLive(ctx, pending); err != nil {
			return err
		}
	}
	if len(pending) == 0 {
		return nil // installation.Check refuses a database with a mark
	}
	if err := installation.New(d, a.clock).CheckMark(ctx, pending); err != nil {
		return err
	}
	if a.production && d.Engine() == db.Postgres {
		return problem.New(problem.Unavailable, "migrations_pending", fmt.Sprintf("The database lacks %d migrations of this program: run makola migrate up", len(pending)))
	}
	return d.Migrate(ctx)
}

// A production server that starts before its database, as after a power failure, waits for it instead of failing.
// systemd allows a start 90 s (deploy/makola.service).
const (
	databaseWait  = 60 * time.Second
	databasePause = time.Second
)

// awaitDatabase opens the database. In production it waits for a database that cannot be reached. It does not wait
// for a database that does not exist or that refuses the login.
func (a *App) awaitDatabase(ctx context.Context) (*db.DB, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, databaseWait, errors.New("the database could not be reached in time"))
	defer cancel()
	for waited := false; ; waited = true {
		d, err := db.Open(ctx, db.Options{URL: a.cfg.Database, Path: a.cfg.SQLite(), MaxConns: a.cfg.Connections, Reserve: a.cfg.DiskReserve << 20, Faults: a.opts.Faults})
		if err == nil || !a.production || !postgres.Unreachable(err) {
			return d, err
		}
		if !waited {
			a.log.WarnContext(ctx, "waiting for the database", "at_most", databaseWait, "error", err)
		}
		if a.clock.Sleep(ctx, databasePause) != nil {
			return nil, err
		}
	}
}

// refuseLive refuses a database of customers with live money in development mode, which has a demo key, a simulator
// and a generated master key. It runs before any migration.
func (a *App) refuseLive(ctx context.Context, pending []db.Migration) error {
	const tenants = 1 // the migration that makes their table
	if slices.ContainsFunc(pending, func(m db.Migration) bool { return m.Number == tenants }) {
		return nil
	}
	live, err := tenant.AnyLive(ctx, a.db)
	if err != nil || !live {
		return err
	}
	return problem.New(problem.Invalid, "live_customers",
		"This database has customers with live money, so it needs production mode: set MAKOLA_ENV=production and the settings that the server then names")
}

// buildProxy makes the egress proxy if one is set. It sends nothing to it.
func (a *App) buildProxy(ctx context.Context) (err error) {
	a.proxy, err = a.cfg.Egress.Proxy(fewLines(a.log))
	if a.proxy != nil {
		a.log.InfoContext(ctx, "using egress proxy", "proxy", a.proxy.Address())
	}
	return err
}

func (a *App) buildParts(ctx context.Context) error {
	a.access, a.installation, a.limits = access.New(a.db, a.clock), installation.New(a.db, a.clock), ratelimit.New(a.db, a.clock)
	journal := audit.Journal{Folder: a.cfg.Storage.Data, Failed: func(path string, err error) {
		a.log.Error("change applied, but not recorded in acts.jsonl", "file", path, "error", err)
	}}
	a.audit = audit.New(a.db, a.clock).Keeping(journal)
	a.timekeeper = timekeeping.New(a.db, a.clock, a.log, timekeeping.Options{Node: a.cfg.Node, Guard: a.production, Newest: func(ctx context.Context) (time.Time, error) { return NewestRow(ctx, a.db) }})
	if err := a.findSecret(ctx); err != nil {
		return err
	}
	a.audit = a.audit.Keyed(a.cfg.Secret).Followed(notice.Follow)
	a.identity = identity.New(a.db, a.clock, a.audit, identity.Options{Secret: a.cfg.Secret, Development: !a.production, HashMemory: a.opts.HashMemory})
	if err := a.installation.Check(ctx, a.cfg.Secret); err != nil {
		return err
	}
	if a.production {
		if err := a.installation.MarkProduction(ctx); err != nil {
			return err
		}
	}
	if err := a.watchDatabase(ctx); err != nil {
		return err
	}
	a.ledger = ledger.New(a.db, a.clock, a.cfg.Node)
	a.books = books.New(a.db, a.clock)
	a.tenants = tenant.New(a.db, a.ledger, a.clock)
	a.jobs = jobs.New(a.db, a.clock, a.log, jobs.Options{Node: a.cfg.Node, Shared: a.db.Engine() == db.Postgres, LeaseFor: a.opts.Lease})
	a.notices = notice.New(notice.Deps{DB: a.db, Jobs: a.jobs, People: a.identity, Tenants: a.tenants, Clock: a.clock, Log: a.log, SMTP: a.cfg.SMTP, Seal: notice.Sealer(a.cfg.Secret),
		Audit: a.audit, Ways: a.cfg.Notices, Poster: webhook.NewPoster(webhook.Options{Development: !a.production, Proxy: a.proxy}), Text: a.textNotice,
		PublicURL: a.cfg.PublicURL, Request: a.noticeOfRequest, Watch: a.watchConditions})
	a.webhooks = webhook.New(a.db, a.jobs, a.clock, a.log, webhook.Options{Secret: a.cfg.Secret, Keep: a.cfg.Keep.Webhooks, Development: !a.production, Proxy: a.proxy})
	a.requests = requestlog.New(a.db, a.clock, a.log)
	// The adapters record their exchanges in this table.
	adapters := NewAdapters(a.cfg, a.simURL(), provider.ClientOptions{Clock: a.clock, Proxy: a.proxy, Record: func(e provider.Exchange) { a.routes.Record(e) }})
	a.rails, a.textRails = adapters.Rails, adapters.Texts
	a.later(func(context.Context) error { adapters.Close(); return nil })
	a.routes = route.New(a.db, a.clock, a.log, Providers(), a.rails)
	a.lookups = lookup.New(a.db, a.tenants, a.routes, a.clock)
	a.treasury = treasury.New(a.db, a.ledger, a.tenants, a.clock, a.log, a.routes.CheckFloat)
	a.payments = payments.New(payments.Deps{
		Recovery: a.recovery, DB: a.db, Ledger: a.ledger, Tenants: a.tenants, Jobs: a.jobs, Webhooks: a.webhooks, Routes: a.routes, Lookups: a.lookups, Treasury: a.treasury, Watch: a.watch,
		Clock: a.clock, Log: a.log, Secret: a.cfg.Secret, CallbackURL: a.callbackURL, Development: !a.production,
		Approval: func(ctx context.Context, by payments.Requester, pay book.Payment) (*payments.PendingApproval, error) {
			return a.changes.HoldPayout(ctx, by, pay)
		},
	})
	a.statements = statement.New(a.db, a.ledger, a.payments.Reader, a.tenants)
	a.figures = figures.New(a.db, a.clock)
	a.jobs.Periodic("figures", figures.Every, a.figures.Sum)
	a.jobs.Periodic("ledger-hours", ledger.SumEvery, a.ledger.SumHours)
	a.jobs.Periodic("statement-blocks", statement.SumEvery, a.statements.SumBlocks)
	a.later(func(context.Context) error { a.payments.Close(); return nil })
	a.batches = batch.New(batch.Deps{DB: a.db, Ledger: a.ledger, Tenants: a.tenants, Payments: a.payments, Treasury: a.treasury, Jobs: a.jobs, Recovery: a.recovery, Access: a.access, Routes: a.routes, Lookups: a.lookups,
		Clock: a.clock, Log: a.log, Secret: a.cfg.Secret, Answers: idempotency.NewAnswers(a.db, a.clock), Webhooks: a.webhooks})
	a.closing = closing.New(a.db, a.ledger, a.clock)
	a.reconcile = reconcile.New(reconcile.Deps{DB: a.db, Clock: a.clock, Log: a.log, Ledger: a.ledger, Payments: a.payments.Reader, Account: a.payments.AccountAt, Closed: a.closing.IsClosed})
	approvals := changes.NewStore(a.db, a.clock, a.audit, a.identity, a.production)
	if err := a.buildMessaging(); err != nil {
		return err
	}
	a.checkup = checkup.New(checkup.Deps{DB: a.db, Clock: a.clock, Routes: a.routes, Texts: a.textRails, Book: a.payments.Reader, Binds: a.messaging.Binds, TextRoutes: a.cfg.SMSRoutes})
	a.changes = changes.New(changes.Deps{Store: approvals, Ledger: a.ledger, Tenants: a.tenants, Access: a.access, People: a.identity, Senders: a.senders, Inbox: a.inbox, Webhooks: a.webhooks,
		Seal: changes.NewSealer(a.cfg.Secret), MailLink: a.mailLink(), ShownKey: a.cfg.Secret.Derive("changes/shown"), Treasury: a.treasury, Closing: a.closing, Payments: a.payments, Batches: a.batches, Reconcile: a.reconcile, Messaging: a.messaging, Compose: a.compose, Routes: a.routes, Jobs: a.jobs, Lookups: a.lookups})
	if err := (Sealed{Ring: a.cfg.Secret, Webhooks: a.webhooks, People: a.identity, Changes: a.changes, Audit: a.audit, Notices: notice.Sealed(a.db, a.cfg.Secret)}).Check(ctx); err != nil {
		return err
	}
	a.jobs.Register(a.changes.LeftToServers())
	a.jobs.Periodic("acts-expire", expireEvery, a.changes.Expire)
	a.jobs.Periodic("statements-sweep", pruneEvery, a.reconcile.Sweep)
	a.jobs.Periodic("statements-match", matchEvery, a.reconcile.Match)
	a.jobs.Periodic("statements-settle", matchEvery, a.changes.SettleApproved)
	a.jobs.Periodic("statements-recheck", pruneEvery, a.reconcile.Recheck)
	a.meters = newMeters(a)
	return nil
}

// watchDatabase begins a recovery if the database has lost rows or is another one. It runs before any other part
// starts.
func (a *App) watchDatabase(ctx context.Context) error {
	last, _, err := backup.LastRestore(ctx, a.db)
	if err != nil {
		return err
	}
	a.recovery = recovery.New(a.db, a.clock, a.log)
	a.watch = recovery.NewWatch(a.recovery, recovery.WatchOptions{
		Began: func(tx *db.Tx) { lease.EndAll(tx); batch.RecoveryBegan(tx, a.clock); compose.RecoveryBegan(tx) },
		Node:  a.cfg.Node, Folder: a.cfg.Data, Synchronous: a.cfg.Synchronous, Restored: recovery.Restore{ID: last.ID, MadeAt: last.MadeAt}, Accounts: a.accounts(),
	})
	if err := a.watch.Start(ctx); err != nil {
		return err
	}
	a.later(a.watch.Stop)
	return nil
}

// startParts starts the background work.
func (a *App) startParts(ctx context.Context) error {
	if err := a.keepTime(ctx); err != nil {
		return err
	}
	if err := a.routes.Start(ctx); err != nil {
		return err
	}
	a.later(a.routes.Stop)
	a.requests.Start()
	a.later(a.requests.Stop)
	a.jobs.Periodic("prune", pruneEvery, a.prune)
	a.jobs.Periodic("ledger-check", cmp.Or(a.opts.BooksEvery, booksCheckGap), a.checkBooks)
	a.jobs.Periodic("ledger-check-full", books.WorkEvery, a.books.Work)
	a.jobs.Periodic("audit-check-full", books.WorkEvery, a.audit.Work)
	a.jobs.Periodic("provider-not-known", notKnownEvery, a.routes.AskNotKnown)
	a.jobs.Periodic("provider-banks", notKnownEvery, a.routes.CheckBanks)
	if err := a.jobs.Start(ctx); err != nil {
		return err
	}
	a.later(a.jobs.Stop)
	a.keepAudit(ctx)
	a.askNotKnown(ctx)
	a.later(func(ctx context.Context) error { a.messaging.Drain(ctx); return nil })
	a.startMessaging(ctx)
	return nil
}

// keepTime watches the clock of this machine until the server stops.
func (a *App) keepTime(ctx context.Context) error {
	if err := a.timekeeper.Start(ctx); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.timekeeper.Watch(watching)
	}()
	a.later(func(context.Context) error {
		cancel()
		<-done
		return nil
	})
	return nil
}

// keepAudit links the entries of the audit log while this node holds the lease for it, until the queue stops.
func (a *App) keepAudit(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	go func() {
		err := a.jobs.Hold(ctx, "audit/chain", func(held context.Context) { a.audit.Keep(held, a.log, lease.OlderLives) })
		select {
		case <-a.draining:
		default:
			a.log.ErrorContext(ctx, "audit chain worker stopped", "error", err)
		}
	}()
}

// askNotKnown probes the providers of this node in the background. The start does not wait for the providers.
func (a *App) askNotKnown(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.routes.AskNotKnown(ctx); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "failed to store provider responses to unknown references", "error", err)
		}
	}()
	a.later(func(stop context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-stop.Done():
			return stop.Err()
		}
	})
}

// prune removes expired rows of every package.
func (a *App) prune(ctx context.Context) error {
	if _, err := a.limits.Prune(ctx); err != nil {
		return err
	}
	if err := a.identity.Prune(ctx); err != nil {
		return err
	}
	if err := a.lookups.Prune(ctx); err != nil {
		return err
	}
	if err := a.requests.Prune(ctx, a.cfg.Keep.Requests); err != nil {
		return err
	}
	if err := a.notices.Prune(ctx); err != nil {
		return err
	}
	_, err := a.routes.Prune(ctx, a.clock.Now().Add(-cmp.Or(a.cfg.Keep.Exchanges, keepExchanges)))
	return err
}

// checkBooks checks the new rows of the ledger, the payments, the messages and the batches, and the audit log. It
// reports the results to the metrics, the log and the notices.
func (a *App) checkBooks(ctx context.Context) error {
	return errors.Join(
		a.checkRecent(ctx),
		a.checkBook(ctx, bookAudit, a.checkAudit))
}

// checkRecent makes the recent check of the books unless it was made too recently.
func (a *App) checkRecent(ctx context.Context) error {
	first := a.meters.books[bookLedger]
	if a.clock.Elapsed() < first.restsUntil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, booksCheckTime)
	defer cancel()
	begun := time.Now()
	report, err := a.books.Recent(ctx)
	first.restsUntil = a.clock.Elapsed() + booksCheckRest*time.Since(begun)
	if err != nil {
		return fmt.Errorf("run the recent check of the books: %w", err)
	}
	var all error
	for _, name := range books.Names() {
		if at := report.FullAt; !at.IsZero() {
			a.meters.books[name].full.Store(at.Unix())
		}
		all = errors.Join(all, a.checked(ctx, name, report.Found[name].Problems))
	}
	return all
}

// auditFirst is the age of the links that the first check of a node reads. It is longer than from one whole check to the
// next, so that a fault which the whole check has not reached is found again after a restart.
const auditFirst = 25 * time.Hour

// checkAudit checks the end of the audit log's chain, after the head that the check before the last one saw. The first
// check of a node begins auditFirst ago, and a check after a fault begins where the fault was found. The chain must still
// contain the head that this node saw last. The whole check, which a job of its own makes, adds its faults.
func (a *App) checkAudit(ctx context.Context) (problems []string, err error) {
	state, err := a.recovery.State(ctx)
	if err != nil {
		return nil, err
	}
	if state.Lasts() { // the database may have gone back in time, and its chain with it
		a.auditHead, a.auditSince = audit.Head{}, audit.Head{}
	}
	since := a.auditSince
	if since.Number == 0 {
		if since, err = a.audit.HeadBefore(ctx, a.clock.Now().Add(-auditFirst)); err != nil {
			return nil, err
		}
	}
	v, err := a.audit.VerifySince(ctx, since, a.auditHead)
	if err != nil {
		return nil, err
	}
	whole, err := a.audit.Whole(ctx)
	if err != nil {
		return nil, err
	}
	if at := whole.EndedAt; !at.IsZero() {
		a.meters.books[bookAudit].full.Store(at.Unix())
	}
	for _, f := range append(v.Faults, whole.Faults...) {
		text := fmt.Sprintf("%s: link %d, entry %s: %s", f.Kind, f.Number, f.Entry, f.What)
		if !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
	}
	if v.OK() {
		a.auditSince, a.auditHead = a.auditHead, v.Head
	} else {
		a.auditSince = since // the next check finds the fault again
	}
	return problems, nil
}

// checkBook makes one check unless it was made too recently.
func (a *App) checkBook(ctx context.Context, name string, check func(context.Context) ([]string, error)) error {
	book := a.meters.books[name]
	if a.clock.Elapsed() < book.restsUntil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, booksCheckTime)
	defer cancel()
	begun := time.Now()
	problems, err := check(ctx)
	book.restsUntil = a.clock.Elapsed() + booksCheckRest*time.Since(begun)
	if err != nil {
		return fmt.Errorf("check of %s: %w", name, err)
	}
	return a.checked(ctx, name, problems)
}

// checked reports the result of a check.
func (a *App) checked(ctx context.Context, name string, problems []string) error {
	book := a.meters.books[name]
	book.faults.Store(int64(len(problems)))
	book.checked.Store(a.clock.Now().Unix())
	if len(problems) > 0 {
		a.log.ErrorContext(ctx, "books do not balance", "book", name, "problems", problems)
	}
	return a.reportBook(ctx, name, problems)
}
