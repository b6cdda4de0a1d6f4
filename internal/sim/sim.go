// Package sim is the simulator: mobile money providers, a message centre and
// their customers' handsets on this machine. It speaks the providers' own protocols, so the
// real adapters talk to it and nothing in Makola knows that the money is not
// real. It keeps a book of its own in a file of its own, answers only after
// the book has the movement, misbehaves on request (see Faults) and by magic
// number (see PlanFor), and shares no code with what it stands in for.
//
// Files; a provider's are named after it and mounted in New:
//
//	sim.go                   the simulator, started and stopped
//	book.go                  every movement and what it will come to
//	journal.go               the book made durable
//	plan.go                  what a number leads to
//	faults.go                what goes wrong on request
//	call.go                  one provider request, from its faults to its answer
//	schedule.go              what happens later, by one timer for all
//	callbacks.go             callbacks of providers
//	handset.go               inboxes of customers, and their consent
//	control.go, operate.go   the /sim/v1 interface, and the same for Go
//	mtn.go                   MTN's wire: mtn_money.go (payments and callbacks), mtn_users.go (credentials, tokens), mtn_consent.go (who a customer is), mtn_notify.go (texts to a customer)
//	hubtel.go                Hubtel's wire: hubtel_money.go (payments), hubtel_services.go (airtime and packages)
//	smsc.go                  the message centre, which speaks SMPP 3.4 on a listener of its own (ServeSMPP)
//	smsc_session.go          one connection of it
//	smsc_submit.go           a message taken
//	smsc_plan.go             what a number leads to, for a text
//	smsc_text.go             parts of a message joined
//	smsc_receipt.go          delivery receipts: what they say, and how often they are offered
//	smsc_count.go            segments counted
//	smsc_control.go          its part of /sim/v1
package sim

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
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
	// MTNReasonObject makes MTN's status answers give reason as the object
	// of MTN's specification instead of the bare text of the live system.
	MTNReasonObject bool
	// MTNSandboxCurrency is the currency of the target environment sandbox;
	// empty means EUR, as MTN's has it.
	MTNSandboxCurrency string
	// HubtelAllowed are the addresses that may call Hubtel; empty: all.
	HubtelAllowed []netip.Prefix
	// SMSC are the habits of the message centre.
	SMSC SMSCOptions
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
	smsc      *smsc
	wires     map[string]wire
	mux       *http.ServeMux

	closing sync.Once
	closed  error

	mu   sync.Mutex
	down map[string]time.Time // by party: when the provider comes back (magic 031)
}

// wire is one provider's side of the wire.
type wire struct {
	// serve answers everything under /<provider>/; nil where another's paths do.
	serve http.Handler
	// callback renders what the provider would send about an entry.
	callback func(Entry) Callback
	// says renders a code in the envelope of an operation's host, about an order
	// or, when its reference is empty, about none; status is what goes with it.
	// An empty code is the ordinary refusal.
	says func(op, code string, o Order) (status int, body []byte)
}

// New opens the book and starts the simulator. Close it at the end.
func New(o Options) (*Sim, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OpeningFloat == 0 {
		o.OpeningFloat = 100_000_000 * money.Cedi
	}
	s := &Sim{
		opts: o, clock: o.Clock, log: o.Log,
		faults: newFaults(o.Clock), schedule: newScheduler(o.Clock),
		callbacks: newCallbacks(o.Log), handsets: newHandsets(),
		down: map[string]time.Time{},
	}
	s.smsc = newSMSC(s, o.SMSC)
	mtn := newMTN(s)
	s.wires = map[string]wire{
		MTN:        mtn,
		MTNSandbox: {callback: mtn.callback, says: mtn.says},
		Hubtel:     newHubtel(s),
	}
	var err error
	if s.book, err = openBook(o.Dir, o.OpeningFloat); err != nil {
		s.schedule.close()
		s.callbacks.close()
		return nil, err
	}
	for _, e := range s.book.open() {
		s.await(e)
	}
	s.mux = http.NewServeMux()
	for _, name := range s.Providers() {
		s.mux.Handle("/"+name+"/", http.StripPrefix("/"+name, s.wires[name].serve))
	}
	s.mux.Handle("/sim/v1/", s.control())
	return s, nil
}

// Handler serves the providers' protocols under /mtn/, /hubtel/, ... and the
// control interface under /sim/v1/.
func (s *Sim) Handler() http.Handler { return s.mux }

// Close stops the simulator and closes its book; a second time it does nothing.
// Callbacks and receipts not yet sent are lost.
func (s *Sim) Close() error {
	s.closing.Do(func() {
		s.schedule.close()
		s.smsc.close()
		s.callbacks.close()
		s.closed = s.book.close()
	})
	return s.closed
}

// Quiet waits until everything that is due by the clock has happened, every
// callback has been delivered or given up, and every receipt that a bound
// client can take has been acknowledged.
func (s *Sim) Quiet(ctx context.Context) error {
	for {
		if err := s.schedule.quiet(ctx); err != nil {
			return err
		}
		if err := s.callbacks.quiet(ctx); err != nil {
			return err
		}
		if err := s.smsc.quiet(ctx); err != nil {
			return err
		}
		if s.schedule.idle() && s.callbacks.idle() && s.smsc.idle() {
			return nil
		}
	}
}

// Entries gives what every provider did under a reference; hyphens and case do
// not matter.
func (s *Sim) Entries(reference string) []Entry {
	var found []Entry
	for name := range s.wires {
		if e, ok := s.status(name, reference); ok {
			found = append(found, e)
		}
	}
	return found
}

// All gives every entry of the book in the order in which they came.
func (s *Sim) All() []Entry {
	s.settleDue()
	return s.book.all()
}

// Float is what the provider holds for us now, in pesewas: the opening float,
// what came in, less what went out and what it charged.
func (s *Sim) Float(provider string) money.Pesewas {
	s.settleDue()
	return s.book.float(provider)
}

// Opening is the float that the provider held before the first movement.
func (s *Sim) Opening(provider string) money.Pesewas { return s.book.opening(provider) }

// plain is a reference without its hyphens and case.
func plain(reference string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(reference), "-", ""))
}
