// Package messaging sends texts for tenants: it keeps their contacts and the numbers that want no
// messages, prices and charges campaigns and one-time passwords in SMS credits, hands each segment to
// an operator through an SMS rail, and knows what became of it.
//
// A campaign is accepted in one transaction (its row, its recipients in chunks, the charge, the jobs),
// delivered chunk by chunk with a mark before each submit, and refunded once for what no operator
// accepted. A small one, such as a single message, is a chunk by itself, in its own row, and where it can
// be submitted at once it is marked in the transaction that charges it. SMPP has no idempotency key:
// what was written and not answered is unknown and is sent again only where a setting says so, a one-time
// password never. One owner at a time delivers a chunk: each of its transactions names the turn that the
// one before left, and a node that was taken for dead finds another there and stops.
package messaging

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/fresh"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

const (
	// freshness is how old what is cached may be.
	freshness = time.Second
	// cached is how many of each a node remembers.
	cached = 10_000
)

// Deps is what messaging stands on.
type Deps struct {
	DB      *db.DB
	Ledger  *ledger.Ledger
	Tenants *tenant.Store
	Jobs    *jobs.Queue
	Answers *idempotency.Answers
	Senders *senderid.Store
	Watch   *recovery.Watch // nil: nobody watches (commands, tests)
	Clock   *clock.Clock
	Log     *slog.Logger
	Secret  config.Secret // the keys of one-time passwords are derived from it
	// SMS are the rails by mode. A tenant of a mode without one is refused with Unavailable. A rail whose
	// connection another node has says provider.ErrElsewhere: that node delivers what is accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend says that campaign messages whose fate a crash left unknown are sent again, so that some
	// may come twice. One-time passwords never are.
	Resend bool
	// Validity is how long operators try to deliver a message of a campaign; 0: as long as they like. A one-time
	// password is tried until it expires.
	Validity time.Duration
	// Quotas bound what one tenant stores; a member of 0 is no bound.
	Quotas config.Quotas
	// OTPTap closes ranges of numbers to which too few one-time passwords are verified; Sends of 0: never.
	OTPTap config.OTPTap
	// Recovery holds campaigns back while the database may have forgotten what was sent; nil: it never does (tests).
	Recovery *recovery.Recovery
}

// Messaging is the domain. It is safe for concurrent use.
type Messaging struct {
	db       *db.DB
	recovery *recovery.Recovery
	ledger   *ledger.Ledger
	tenants  *tenant.Store
	jobs     *jobs.Queue
	answers  *idempotency.Answers
	watch    *recovery.Watch
	clock    *clock.Clock
	log      *slog.Logger
	sms      map[tenant.Mode]provider.SMSSender
	resend   bool
	validity time.Duration
	quotas   config.Quotas
	otp      otpKeys
	otpTap   config.OTPTap
	groups   atomic.Uint32 // numbers that join the parts of a message
	metrics  metrics
	early    earlyBird
	marks    marks

	uncommitted clock.Seldom // lines of the log about steps that are tried again
	senders     *senderid.Store
	states      *fresh.Cache[campaignKey, CampaignStatus]
	optOuts     *fresh.Cache[string, bool]
	admissions  *lane.Lane[*admission, admitted]
	steps       *lane.Lane[*step, stepped]
	receipts    *lane.Lane[earlyReceipt, took]
}

// New builds the domain and registers its jobs; the queue's Start sets them going. A command, which
// delivers nothing and knows no codes, gives neither SMS nor Secret.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, jobs: d.Jobs, answers: d.Answers, senders: d.Senders, clock: d.Clock, log: d.Log, sms: d.SMS, resend: d.Resend, validity: d.Validity, quotas: d.Quotas, otpTap: d.OTPTap, recovery: d.Recovery, watch: d.Watch,
		metrics: newMetrics()}
	if !d.Secret.Empty() {
		m.otp = otpKeys{code: d.Secret.Derive("messaging/otp-code"), hash: d.Secret.Derive("messaging/otp-hash")}
	}
	m.groups.Store(rand.Uint32()) //nolint:gosec // not a secret
	m.states = fresh.New(d.Clock, freshness, cached, m.loadStatus)
	m.optOuts = fresh.New(d.Clock, freshness, cached, m.loadOptOuts)
	m.admissions = lane.New(lane.Options{Systemic: systemic, Unsure: db.ErrAmbiguous}, m.admit)
	m.steps = lane.New(lane.Options{MaxRows: 5_000, Systemic: systemic}, m.advance)
	m.receipts = lane.New(lane.Options{MaxRows: 5_000, Systemic: systemic}, m.takeReceipts)
	m.register()
	m.jobs.Periodic("messaging-sweep", sweepEvery, m.sweep)
	m.jobs.Periodic("contacts-sweep", groupsSweepEvery, m.sweepGroups)
	m.jobs.Periodic("messaging-receipts", earlyPassEvery, m.passEarly)
	return m
}

// systemic errors are nobody's fault in the batch.
func systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}

// Drain ends the marks with the charge and waits for those that were made to be submitted, as long as ctx
// lasts and drainFor. It comes when nothing is accepted any more, and before the queue's Stop, which begins
// no job: what is marked and never submitted would be unknown to the next owner.
func (m *Messaging) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	m.marks.drain(ctx)
}

// Close waits for the transactions that are under way. It comes after the queue's Stop and after the
// rails, whose receipts come in to the end.
func (m *Messaging) Close() {
	m.admissions.Close()
	m.steps.Close()
	m.receipts.Close()
}
