package payments

import (
	"context"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// New builds the domain and registers its jobs. They run after the queue's Start.
func New(d Deps) *Payments {
	metrics := newMetrics()
	calls := &rails{routes: d.Routes, tenants: d.Tenants, clock: d.Clock, callbackURL: d.CallbackURL, queries: queries{metrics: metrics}}
	if calls.callbackURL == nil {
		calls.callbackURL = func(provider.Rail) string { return "" }
	}
	recovered := &recoverySearch{recovery: d.Recovery, watch: d.Watch, rails: calls, log: d.Log}
	again := &rechecker{rails: calls, clock: d.Clock, log: d.Log, metrics: metrics}
	queue := newRecheckQueue(d.Clock, again.recheckNow)
	f := &follower{jobs: d.Jobs, rails: calls, recovered: recovered, rechecks: queue, clock: d.Clock, log: d.Log}
	f.live.init()
	var p *Payments
	b := book.New(book.Deps{DB: d.DB, Ledger: d.Ledger, Tenants: d.Tenants, Jobs: d.Jobs, Webhooks: d.Webhooks, Watch: d.Watch, Clock: d.Clock},
		book.Hooks{RequestOpen: f.requestOpen, Opened: f.opened, Closed: f.drop, Account: calls.account,
			Refund: func(ctx context.Context, topUp book.Payment) (*book.Acceptance, error) {
				return p.airtimeRefund(ctx, topUp)
			},
			RefundRefused: func(topUp book.Payment, refusal error) { p.noAirtimeRefund(topUp, refusal) }})
	again.book, f.book = b, b
	p = &Payments{
		Reader: b.Reader, book: b, tenants: d.Tenants, jobs: d.Jobs, lookups: d.Lookups, treasury: d.Treasury, clock: d.Clock, log: d.Log,
		development: d.Development, approval: d.Approval, references: newReferences(d.Secret.Derive("payments/provider-reference")),
		rails: calls, recovered: recovered, follower: f, rechecker: again, rechecks: queue,
		repeats: repeats{book: b, follower: f, clock: d.Clock, waiting: make(chan struct{}, maxWaitingRepeats)},
	}
	for _, kind := range []string{book.JobKind, book.RefundJobKind} {
		d.Jobs.Register(jobs.Handler{Kind: kind, Workers: workers, Key: f.jobLine, PerKey: perLine, Tenant: f.jobTenant, PerTurn: perTenant, Left: f.evict, Run: f.runJob})
	}
	d.Jobs.Periodic("payments-second-look", recheckEvery, func(ctx context.Context) error {
		if err := p.claims(ctx); err != nil {
			return err
		}
		return p.rechecker.sweep(ctx)
	})
	return p
}

// Close waits for running transactions. Call it after the queue's Stop.
func (p *Payments) Close() {
	p.rechecks.close()
	p.book.Close()
}

// Quiet waits until no recheck that a callback triggered is running or due. Tests and the simulation use it with the
// queue's own Quiet.
func (p *Payments) Quiet(ctx context.Context) error { return p.rechecks.quiet(ctx) }
