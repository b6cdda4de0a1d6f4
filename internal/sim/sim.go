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

// Options configure a simulator.
type Options struct {
	// Dir is the folder of the book. If it is empty, the book is kept in memory.
	Dir   string
	Clock *clock.Clock
	Log   *slog.Logger
	// OpeningFloat is our float at each provider at the start, in pesewas. Zero means GHS 100,000,000.00.
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
	keeps     map[string]Provider // by the names under which the book stores their orders
	workers   []Worker
	mux       *http.ServeMux

	closing sync.Once
	closed  error

	mu   sync.Mutex
	down map[string]time.Time // by party: end of the provider's downtime (magic 031)
}

// Part returns a provider for a simulator that is being opened. It may store the simulator, but must not use it
// before New returns.
type Part func(*Sim) Provider

// Provider is the simulation of one provider's interface.
type Provider struct {
	Name    string // name in paths, faults and the book
	Adapter string // name of Makola's adapter, which faults may use instead; may be empty
	// Serve handles all requests under /<name>/. It is nil if the provider has its own listener.
	Serve http.Handler
	// Accounts are further names under which the book stores orders.
	Accounts []string
	// Messages marks a message centre or a provider of texts. Faults of payments do not affect it.
	Messages bool
	// OneBalance marks a provider that pays from the balance that receives collections.
	OneBalance bool
	// Callback returns the provider's callback about an entry.
	Callback func(Entry) Callback
	// Statement renders the heading and lines of a statement; nil where the provider has none.
	Statement func([]Line) [][]string
	// Forge makes the signature of a callback wrong. It is nil if callbacks are not signed.
	Forge func(Callback) Callback
	// Refusal returns a refusal with a code, in the format of an operation's host, and its HTTP status. It is about
	// an order, or about none if the order's reference is empty. An empty code means the ordinary refusal.
	Refusal func(op, code string, o Order) (status int, body []byte)
	// Control adds routes to /sim/v1. Its keys are patterns of http.ServeMux.
	Control map[string]func(*http.Request) (any, error)
	// Worker is the provider's own work. It may be nil.
	Worker Worker
}

// Worker is work that runs by itself.
type Worker interface {
	// Quiet waits until no work is due.
	Quiet(context.Context) error
	// Idle reports whether no work is due.
	Idle() bool
	Close()
}

// Clock returns the simulator's clock.
func (s *Sim) Clock() *clock.Clock { return s.clock }

// Log returns the simulator's log.
func (s *Sim) Log() *slog.Logger { return s.log }

// Strike returns the faults that affect the next request of an operation, and counts the request.
func (s *Sim) Strike(provider, op string) Hit { return s.faults.next(provider, op) }

// At runs do at a time, on the simulator's own goroutine.
func (s *Sim) At(due time.Time, do func()) { s.schedule.at(due, do) }

// User returns an API user. It ignores the case of the id.
func (s *Sim) User(id string) (User, bool) { return s.book.user(id) }

// AddUser stores an API user durably. made is false if the user exists.
func (s *Sim) AddUser(u User) (made bool, err error) { return s.book.addUser(u) }

// SetKey stores the key of an API user durably.
func (s *Sim) SetKey(id, key string) (known bool, err error) { return s.book.setKey(id, key) }
