package sim

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/money"
)

// Options shapes a simulator.
type Options struct {
	// Dir keeps the book; empty keeps it in memory only.
	Dir   string
	Clock *clock.Clock
	Log   *slog.Logger
	// OpeningFloat is what each provider holds for us at the start, in
	// pesewas; zero means GHS 100,000,000.00.
	OpeningFloat money.Pesewas
}

// Sim is a running simulator.
type Sim struct {
	opts      Options
	clock     *clock.Clock
	log       *slog.Logger
	book      *book
	faults    *faults
	schedule  *scheduler
	callbacks *callbacks
	handsets  *handsets
	providers map[string]Provider // by name
	keeps     map[string]Provider // by the names under which the book keeps their orders
	workers   []Worker
	mux       *http.ServeMux

	closing sync.Once
	closed  error

	mu   sync.Mutex
	down map[string]time.Time // by party: when the provider comes back (magic 031)
}

// Part makes a provider for a simulator that is being opened. It may keep the
// simulator and must not use it before New returns.
type Part func(*Sim) Provider

// Provider is one provider's side of the wire.
type Provider struct {
	Name    string // in paths, faults and the book
	Adapter string // the name of Makola's adapter, which faults may use instead; may be empty
	// Serve answers everything under /<name>/; nil where the provider has a
	// listener of its own.
	Serve http.Handler
	// Accounts are further names under which the book keeps orders.
	Accounts []string
	// Messages marks a message centre or a provider of texts, at which faults of payments do not strike.
	Messages bool
	// OneBalance marks a provider that pays from the balance into which collections come.
	OneBalance bool
	// Callback renders the provider's callback about an entry.
	Callback func(Entry) Callback
	// Forge spoils the signature of a callback; nil where callbacks are not signed.
	Forge func(Callback) Callback
	// Refusal renders a code in the envelope of an operation's host, and returns the HTTP status with it. It is about
	// an order, or about none if the order's reference is empty. An empty code is the ordinary refusal.
	Refusal func(op, code string, o Order) (status int, body []byte)
	// Control adds routes to /sim/v1, by the pattern of http.ServeMux.
	Control map[string]func(*http.Request) (any, error)
	// Worker is the provider's own work; may be nil.
	Worker Worker
}

// Worker is work that goes on by itself.
type Worker interface {
	// Quiet waits until there is nothing to do by the clock.
	Quiet(context.Context) error
	// Idle reports whether there is nothing to do by the clock.
	Idle() bool
	Close()
}

// Clock returns the simulator's clock.
func (s *Sim) Clock() *clock.Clock { return s.clock }

// Log returns the simulator's log.
func (s *Sim) Log() *slog.Logger { return s.log }

// Strike takes the faults that strike the next request of an operation.
func (s *Sim) Strike(provider, op string) Hit { return s.faults.next(provider, op) }

// At runs do at a moment, on the simulator's own goroutine.
func (s *Sim) At(due time.Time, do func()) { s.schedule.at(due, do) }

// User returns an API user; the case of its id does not matter.
func (s *Sim) User(id string) (User, bool) { return s.book.user(id) }

// AddUser enters an API user, durably; made is false where there is one already.
func (s *Sim) AddUser(u User) (made bool, err error) { return s.book.addUser(u) }

// SetKey gives an API user a key, durably.
func (s *Sim) SetKey(id, key string) (known bool, err error) { return s.book.setKey(id, key) }
