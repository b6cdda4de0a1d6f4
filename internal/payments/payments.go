// Package payments moves other people's money: it collects from mobile money
// wallets, pays out to wallets and bank accounts, and sells airtime and data
// packages. A payment is accepted in the book (package book, below: its row, the
// ledger's holds and a job in one transaction), submitted to a provider by that
// job, and settled in the book in one more. This package decides what is asked of
// the book and of the providers, and when; it holds no rows and no transfers.
// What a provider answers is a value, and judge.go alone says what it may do to
// the money; what cannot be proven either way holds the money until the provider
// or an operator has spoken.
//
// Files, from a request to a provider and back:
//
//	payments.go                          the domain, and what it stands on
//	collection.go, payout.go, airtime.go, topup.go, bundle.go
//	                                     what each product asks for, and its checks
//	accept.go, reference.go              what comes before the book: rail, ids, references of our own
//	held.go                              payouts that wait for the approval of their account's own people
//	job.go, tracked.go                   what drives an open payment, and what of it is in memory
//	submission.go, status_questions.go   calls to a rail: submit, and ask for a status
//	judge.go                             what an outcome may do to the money
//	callbacks.go, client_questions.go    what moves the next question forward: providers and clients
//	status.go                            the state of a payment for a client that asks
//	recheck.go, recheck_sweep.go         final payments that are asked about again
//	recovery.go                          payments after the database went back in time
//	operator.go                          what operators decide about a payment
//	metrics.go                           what a node counts of its providers
package payments

import (
	"context"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/enquiry"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Deps is what payments stand on.
type Deps struct {
	DB        *db.DB
	Ledger    *ledger.Ledger
	Tenants   *tenant.Store
	Jobs      *jobs.Queue
	Webhooks  *webhook.Webhooks
	Routes    *route.Table
	Enquiries *enquiry.Enquiries // nil: nothing is sold, and no bank account is paid (commands)
	Treasury  *treasury.Treasury
	Recovery  *recovery.Recovery // nil: the database never goes back in time (tests)
	Watch     *recovery.Watch    // nil: not watched (commands, tests)
	Clock     *clock.Clock
	Log       *slog.Logger
	Secret    config.Secret // ProviderReferences are made under it
	// CallbackURL gives the address at which a rail's callbacks arrive; nil or
	// an empty answer: none are wanted.
	CallbackURL func(rail provider.Rail) string
	// Holds says whether a payout must be approved by its account's own people
	// first; nil: none must (commands, tests).
	Holds Holds
	// Development lets callbacks of customers go to loopback addresses.
	Development bool
}

// Payments is the domain. It is safe for concurrent use. It reads the book for
// everybody, and it alone writes there.
type Payments struct {
	*book.Reader
	book        *book.Book
	tenants     *tenant.Store
	jobs        *jobs.Queue
	routes      *route.Table
	enquiries   *enquiry.Enquiries
	treasury    *treasury.Treasury
	recovery    *recovery.Recovery
	watch       *recovery.Watch
	clock       *clock.Clock
	log         *slog.Logger
	callbackURL func(provider.Rail) string
	development bool
	holds       Holds
	references  *references
	live        live
	rechecks    *rechecks
	questions   questionLines
	metrics     metrics
}

// New builds the domain and registers its jobs; the queue's Start sets them
// going.
func New(d Deps) *Payments {
	p := &Payments{
		tenants: d.Tenants, jobs: d.Jobs, routes: d.Routes, enquiries: d.Enquiries, treasury: d.Treasury, recovery: d.Recovery, watch: d.Watch,
		clock: d.Clock, log: d.Log, callbackURL: d.CallbackURL, development: d.Development, holds: d.Holds,
		references: newReferences(d.Secret.Derive("payments/provider-reference")),
	}
	if p.callbackURL == nil {
		p.callbackURL = func(provider.Rail) string { return "" }
	}
	p.live.init()
	p.rechecks = newRechecks(p.clock, func(ctx context.Context, pay book.Payment) {
		if _, err := p.recheck(ctx, pay); err != nil && ctx.Err() == nil {
			p.log.Error("a final payment could not be looked at again", "payment", pay.ID, "error", err)
		}
	})
	p.metrics = newMetrics()
	p.book = book.New(book.Deps{DB: d.DB, Ledger: d.Ledger, Tenants: d.Tenants, Jobs: d.Jobs, Webhooks: d.Webhooks, Watch: d.Watch, Clock: d.Clock},
		book.Hooks{Answering: p.answering, Track: func(pay book.Payment) any { return trackOpened(pay) }, Opened: p.opened, Closed: p.drop})
	p.Reader = p.book.Reader
	p.jobs.Register(jobs.Handler{Kind: book.JobKind, Workers: workers, Key: jobLine, PerKey: perLine, Tenant: jobTenant, PerTurn: perTurn, Left: p.left, Run: p.runJob})
	p.jobs.Periodic("payments-second-look", recheckEvery, p.sweep)
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

// answerTime is the whole time that a payout's answer may take, submitTime what a
// provider may take to answer a submission, and askTime what it may take to answer a
// question. The calls go on when the answer has been given.
const (
	answerTime = 8 * time.Second
	submitTime = 30 * time.Second
	askTime    = 3 * time.Second
)

// detached gives a context that outlives the caller's.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
