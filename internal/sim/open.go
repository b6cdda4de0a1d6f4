// Package sim is the simulator: mobile money providers, a message centre and their customers' handsets on this
// machine. It keeps its own book in its own file, and answers only after the book has the movement. It misbehaves on
// request (see Faults) and by magic number (see PlanFor). It shares no code with the packages that it replaces.
//
// The packages below this one implement the protocols of the providers, and New takes them as parts. The real
// adapters talk to them, and no other package of Makola knows that the money is simulated.
//
// Files, from the top down; each needs only files below it:
//
//	open.go      the simulator, started and stopped
//	control.go   the /sim/v1 interface
//	operate.go   the same for Go
//	statement.go statements of the providers' accounts
//	texts.go     texts at providers over HTTP
//	handset.go   a customer's messages and answers
//	call.go      one provider request, from its faults to its answer
//	settle.go    the end of an entry, and the callbacks about it
//	sim.go       a simulator's parts, and the type of a provider
//	book.go, users.go       every movement and its plan; users of sandboxes
//	entry.go     orders, entries and records of the journal
//	journal.go   the durable file of the book
//	faults.go    faults on request
//	plan.go      the outcome that a number selects
//	schedule.go  later events, by one timer for all
//	callbacks.go callbacks of providers
//	inbox.go     inboxes of customers
package sim

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/money"
)

// New opens the book and starts the simulator with its providers. The caller must Close it.
func New(o Options, parts ...Part) (*Sim, error) {
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
		opts: o, clock: o.Clock, log: o.Log, faults: newFaults(o.Clock), schedule: newScheduler(o.Clock),
		callbacks: newCallbacks(o.Log), handsets: newHandsets(), providers: map[string]Provider{}, keeps: map[string]Provider{},
		down: map[string]time.Time{},
	}
	s.workers = []Worker{s.schedule}
	for _, part := range parts {
		s.add(part(s))
	}
	s.workers = append(s.workers, s.callbacks)
	var err error
	if s.book, err = openBook(o.Dir, o.OpeningFloat); err != nil {
		s.stop()
		return nil, err
	}
	s.book.single = map[string]bool{}
	for name, p := range s.providers {
		s.book.single[name] = p.OneBalance
	}
	for _, e := range s.book.open() {
		s.await(e)
	}
	s.mux = http.NewServeMux()
	for name, p := range s.providers {
		if p.Serve != nil {
			s.mux.Handle("/"+name+"/", http.StripPrefix("/"+name, p.Serve))
		}
	}
	s.mux.Handle("/sim/v1/", s.control())
	return s, nil
}

func (s *Sim) add(p Provider) {
	s.providers[p.Name] = p
	if p.Callback != nil {
		for _, name := range append([]string{p.Name}, p.Accounts...) {
			s.keeps[name] = p
		}
	}
	if p.Worker != nil {
		s.workers = append(s.workers, p.Worker)
	}
}

// Handler serves the providers' protocols under /mtn/, /hubtel/, ... and the
// control interface under /sim/v1/.
func (s *Sim) Handler() http.Handler { return s.mux }

// Close stops the simulator and closes its book. A second call does nothing. Callbacks and receipts that were not
// sent are lost.
func (s *Sim) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.closed = s.book.close()
	})
	return s.closed
}

func (s *Sim) stop() {
	for _, w := range s.workers {
		w.Close()
	}
}

// Quiet waits until every due event has happened and every callback was delivered or given up. It also waits until
// connected clients have acknowledged all receipts that they can receive.
func (s *Sim) Quiet(ctx context.Context) error {
	for {
		idle := true
		for _, w := range s.workers {
			if err := w.Quiet(ctx); err != nil {
				return err
			}
		}
		for _, w := range s.workers {
			idle = idle && w.Idle()
		}
		if idle {
			return nil
		}
	}
}
