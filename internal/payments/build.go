package payments

import (
	"context"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// New builds the domain and registers its jobs; the queue's Start sets them
// going.
func New(d Deps) *Payments {
	metrics := newMetrics()
	calls := &rails{routes: d.Routes, clock: d.Clock, callbackURL: d.CallbackURL, questions: questions{metrics: metrics}}
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
		book.Hooks{Answering: f.answering, Opened: f.opened, Closed: f.drop, Account: calls.account,
			Refund: func(ctx context.Context, topUp book.Payment) (*book.Acceptance, error) {
				return p.airtimeRefund(ctx, topUp)
			},
			RefundRefused: func(topUp book.Payment, refusal error) { p.noAirtimeRefund(topUp, refusal) }})
	again.book, f.book = b, b
	p = &Payments{
		Reader: b.Reader, book: b, tenants: d.Tenants, jobs: d.Jobs, lookups: d.Lookups, treasury: d.Treasury, clock: d.Clock, log: d.Log,
		development: d.Development, holds: d.Holds, references: newReferences(d.Secret.Derive("payments/provider-reference")),
		rails: calls, recovered: recovered, follower: f, rechecker: again, rechecks: queue,
	}
	for _, kind := range []string{book.JobKind, book.RefundJobKind} {
		d.Jobs.Register(jobs.Handler{Kind: kind, Workers: workers, Key: f.jobLine, PerKey: perLine, Tenant: f.jobTenant, PerTurn: perTurn, Left: f.left, Run: f.runJob})
	}
	d.Jobs.Periodic("payments-second-look", recheckEvery, func(ctx context.Context) error {
		if err := p.claims(ctx); err != nil {
			return err
		}
		return p.rechecker.sweep(ctx)
	})
	return p
}

// Close waits for the transactions that are under way. It comes after the
// queue's Stop, when nothing asks for new ones.
func (p *Payments) Close() {
	p.rechecks.close()
	p.book.Close()
}

// Quiet waits until nothing that a callback set going is under way or due. With
// the queue's own it is for tests and for the simulation.
func (p *Payments) Quiet(ctx context.Context) error { return p.rechecks.quiet(ctx) }
