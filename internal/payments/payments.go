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
	// Development lets callbacks of customers go to loopback addresses.
	Development bool
}

// Payments is the domain. It is safe for concurrent use.
type Payments struct {
	db          *db.DB
	ledger      *ledger.Ledger
	tenants     *tenant.Store
	jobs        *jobs.Queue
	webhooks    *webhook.Webhooks
	routes      *route.Table
	enquiries   *enquiry.Enquiries
	treasury    *treasury.Treasury
	recovery    *recovery.Recovery
	watch       *recovery.Watch
	clock       *clock.Clock
	log         *slog.Logger
	callbackURL func(provider.Rail) string
	development bool
	references  *references
	lanes       lanes
	live        live
	looks       *rechecks
	questions   questionLines
	metrics     metrics
}

// New builds the domain and registers its jobs; the queue's Start sets them
// going.
func New(d Deps) *Payments {
	p := &Payments{
		db: d.DB, ledger: d.Ledger, tenants: d.Tenants, jobs: d.Jobs, webhooks: d.Webhooks, routes: d.Routes, enquiries: d.Enquiries, treasury: d.Treasury, recovery: d.Recovery, watch: d.Watch,
		clock: d.Clock, log: d.Log, callbackURL: d.CallbackURL, development: d.Development,
		references: newReferences(d.Secret.Derive("payments/provider-reference")),
	}
	if p.callbackURL == nil {
		p.callbackURL = func(provider.Rail) string { return "" }
	}
	p.live.init()
	p.looks = newRechecks(p.clock, func(ctx context.Context, pay Payment) {
		if _, err := p.recheck(ctx, pay); err != nil && ctx.Err() == nil {
			p.log.Error("a final payment could not be looked at again", "payment", pay.ID, "error", err)
		}
	})
	p.metrics = newMetrics()
	p.lanes = p.newLanes()
	p.jobs.Register(jobs.Handler{Kind: jobKind, Workers: workers, Key: jobLine, PerKey: perLine, Tenant: jobTenant, PerTurn: perTurn, Left: p.left, Run: p.runJob})
	p.jobs.Periodic("payments-second-look", lookEvery, p.sweep)
	return p
}

// Close waits for the transactions that are under way. It comes after the
// queue's Stop, when nothing asks for new ones.
func (p *Payments) Close() {
	p.looks.close()
	p.lanes.close()
}

// Quiet waits until nothing that a callback set going is under way or due. With
// the queue's own it is for tests and for the simulation.
func (p *Payments) Quiet(ctx context.Context) error { return p.looks.quiet(ctx) }

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
