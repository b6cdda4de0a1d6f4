package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/books"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/checkup"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/textroute"
	"github.com/makola/makola/internal/timekeeping"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Options are the parameters of a start outside of the operator's configuration. Zero values select the defaults
// given here.
type Options struct {
	Version string
	Out     io.Writer    // output for the first screen of a development server; nil: none
	Log     *slog.Logger // nil: none
	Clock   *clock.Clock // nil: the machine's clock
	Faults  *db.Faults   // nil outside tests
	// Supervisor is the program that started this process and watches it.
	Supervisor Supervisor
	// BooksEvery is how often the books are checked; zero: every ten minutes.
	BooksEvery time.Duration
	// Lease is how long this node may be silent before other nodes take its jobs. Zero means the queue's default.
	Lease time.Duration
	// AnswerTime is how long a client may take nothing of its answer. Zero means ten seconds.
	AnswerTime time.Duration
	// HashMemory is the memory for hashing a password, in KiB. Zero means the amount for production.
	HashMemory uint32
}

// App is a running Makola.
type App struct {
	cfg        config.Server
	opts       Options
	log        *slog.Logger
	clock      *clock.Clock
	production bool
	folder     string // folder that is removed at the end if the server is ephemeral

	parts
	sim       *simulator // nil in production without a simulator
	doors     doors
	crowd     *clients     // of the interface
	callers   *slog.Logger // logger with limits, for lines that anybody can cause
	accessLog *accessLog   // nil if none is configured
	failed    chan error
	ready     Ready
	demoMade  bool // this start made the demo tenant
	// callbacks are the addresses for the providers' callbacks. They are known once the interface listens, and
	// payments may run before that.
	callbacks atomic.Pointer[map[railID]string]
	draining  chan struct{}
	leave     sync.Once                     // closes draining
	undo      []func(context.Context) error // parts in the order of starting
}

// Supervisor receives the state of this process, in the datagrams of systemd's sd_notify. Its zero value is none.
type Supervisor struct {
	Socket   string        // NOTIFY_SOCKET; a name that begins with @ has no file
	Watchdog time.Duration // silence after which the supervisor ends the process; zero: never
}

// doors are the listeners, which are bound before they serve.
type doors struct{ api, metrics *listener }

// railID names a rail of this node.
type railID struct{ name, mode string }

// parts are the constructed parts of the domain.
type parts struct {
	db           *db.DB
	recovery     *recovery.Recovery
	watch        *recovery.Watch
	ledger       *ledger.Ledger
	books        *books.Books
	tenants      *tenant.Store
	statements   *statement.Reader
	figures      *figures.Figures
	access       *access.Access
	limits       *ratelimit.Limiter
	installation *installation.Store
	audit        *audit.Log
	auditHead    audit.Head // that the last check saw, of the one that checks
	auditSince   audit.Head // after which the next check begins; zero: the link of twenty minutes ago
	identity     *identity.Identity
	changes      *changes.Changes
	jobs         *jobs.Queue
	webhooks     *webhook.Webhooks
	requests     *requestlog.Log
	notices      *notice.Notices
	slowlyFrom   time.Duration // time of the next check of slow conditions, by Elapsed; used by the worker of notices
	routes       *route.Table
	checkup      *checkup.Checkup
	lookups      *lookup.Lookups
	treasury     *treasury.Treasury
	payments     *payments.Payments
	batches      *batch.Batches
	reconcile    *reconcile.Reconcile
	closing      *closing.Books
	senders      *senderid.Store
	contacts     *contacts.Store
	messaging    *messaging.Messaging
	compose      *compose.Store
	inbox        *inbox.Store
	textRails    []provider.TextRail
	textMetrics  *textroute.Metrics
	sms          []*smsRail      // the rail of test money is the last
	proxy        *outbound.Proxy // proxy of outgoing requests; nil: none
	api          *api.API
	console      *console.Console
	meters       *meters
	rails        []provider.Rail

	timekeeper *timekeeping.Keeper
}

// draining is logged after an interrupt. A second interrupt ends the process at once.
const draining = "draining: interrupt again to stop at once"

// leaving reports whether this node is stopping.
func (a *App) leaving() bool {
	select {
	case <-a.draining:
		return true
	default:
		return false
	}
}

// Stop stops all parts in the reverse order of starting. It may be called twice.
func (a *App) Stop(ctx context.Context) error {
	a.leave.Do(func() { close(a.draining) })
	late, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })()
	var all error
	for len(a.undo) > 0 {
		last := a.undo[len(a.undo)-1]
		a.undo = a.undo[:len(a.undo)-1]
		all = errors.Join(all, bounded(ctx, late, last))
	}
	return all
}

// stopGrace is the time for all steps of a stop together, beyond the configured time.
const stopGrace = 5 * time.Second

// stepGrace is the time for each step after stopGrace is over. A step that does not hang ends within it.
const stepGrace = 100 * time.Millisecond

// bounded runs one step of a stop. A step that hangs continues in the background until the process ends, because an
// unresponsive database or disk must not prevent a node from stopping.
func bounded(ctx, late context.Context, step func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	select {
	case err := <-done:
		return err
	case <-late.Done():
	}
	moment := time.NewTimer(stepGrace)
	defer moment.Stop()
	select {
	case err := <-done:
		return err
	case <-moment.C:
		return errors.New("shutdown step timed out; it continues in the background")
	}
}

// later registers a step of Stop for a part that has just started.
func (a *App) later(undo func(context.Context) error) { a.undo = append(a.undo, undo) }
