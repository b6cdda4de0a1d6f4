// Package messaging sends texts for tenants: it keeps the names they send under (which operators
// review), their contacts and the numbers that want no messages, prices and charges campaigns and
// one-time passwords in SMS credits, hands each segment to an operator through an SMS rail, and knows
// what became of it.
//
// A campaign is accepted in one transaction (its row, its recipients in chunks, the charge, the jobs),
// delivered chunk by chunk with a mark before each submit, and refunded once for what no operator
// accepted. SMPP has no idempotency key: what was written and not answered is unknown and is sent
// again only where a setting says so, a one-time password never.
package messaging

import (
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/fresh"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// senderFreshness is how old a cached sender ID may be.
const senderFreshness = time.Second

// cachedSenders is how many sender IDs a node remembers.
const cachedSenders = 10_000

// Deps is what messaging stands on.
type Deps struct {
	DB      *db.DB
	Ledger  *ledger.Ledger
	Tenants *tenant.Store
	Jobs    *jobs.Queue
	Clock   *clock.Clock
	Log     *slog.Logger
	Secret  config.Secret // codes are hashed under it
	// SMS are the rails by mode; a mode without one keeps what is accepted until there is one.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend says that campaign messages whose fate a crash left unknown are sent again, so that some
	// may come twice. One-time passwords never are.
	Resend bool
}

// Messaging is the domain. It is safe for concurrent use.
type Messaging struct {
	db         *db.DB
	ledger     *ledger.Ledger
	tenants    *tenant.Store
	jobs       *jobs.Queue
	clock      *clock.Clock
	log        *slog.Logger
	sms        map[tenant.Mode]provider.SMSSender
	resend     bool
	otpKey     []byte
	senders    *fresh.Cache[senderKey, Sender]
	admissions *lane.Lane[*admission, admitted]
	steps      *lane.Lane[*step, stepped]
	receipts   *lane.Lane[earlyReceipt, struct{}]
}

// New builds the domain and registers its jobs; the queue's Start sets them going.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, jobs: d.Jobs, clock: d.Clock, log: d.Log,
		sms: d.SMS, resend: d.Resend, otpKey: d.Secret.Derive("messaging/otp")}
	m.senders = fresh.New(d.Clock, senderFreshness, cachedSenders, m.loadSender)
	m.admissions = lane.New(lane.Options{}, m.admit)
	m.steps = lane.New(lane.Options{MaxRows: 5_000}, m.advance)
	m.receipts = lane.New(lane.Options{MaxRows: 5_000}, m.takeReceipts)
	m.jobs.Register(jobs.Handler{Kind: chunkKind, Workers: chunkWorkers, Key: chunkMode, Run: m.deliver})
	m.jobs.Periodic("messaging-sweep", sweepEvery, m.sweep)
	return m
}

// Close waits for the transactions that are under way. It comes after the queue's Stop.
func (m *Messaging) Close() {
	m.admissions.Close()
	m.steps.Close()
	m.receipts.Close()
}
