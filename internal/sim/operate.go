package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Providers returns the names of the simulated providers of money for which there are adapters.
func (s *Sim) Providers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.providers)), func(name string) bool { return s.providers[name].Serve == nil || s.providers[name].Messages })
}

// Resolve ends a pending entry by hand and reports whether it did.
func (s *Sim) Resolve(provider, reference string, status Status, reason Reason) bool {
	e, did, err := s.book.settle(settleRecord{
		Provider: provider, Reference: reference, Status: status, Reason: reason, At: s.clock.Now(),
	}, false)
	if !did || err != nil {
		return false
	}
	s.announce(e)
	return true
}

// SetFloat sets the balance of the account from which the provider pays, in pesewas. The money of collections is in
// another account.
func (s *Sim) SetFloat(provider string, amount money.Pesewas) error {
	if s.providers[provider].Serve == nil {
		return problem.Field("provider", "must be one of the simulated providers")
	}
	_, out := s.Accounts(provider)
	return s.book.addFloat(provider, amount-out, s.clock.Now())
}

// Statement returns the settled movements as the provider's own statement shows them: successes and reversed ones. If
// a plan requires it, it omits entries or changes amounts. An empty provider means all providers.
func (s *Sim) Statement(provider string) []Entry {
	rows := []Entry{}
	for _, e := range s.All() {
		if provider != "" && e.Provider != provider || e.Plan.Omit || e.Status != Success && !e.Reversed {
			continue
		}
		e.Amount += e.Plan.Off
		rows = append(rows, e)
	}
	return rows
}

// Entries returns the entries of all providers with a reference. It ignores hyphens and case.
func (s *Sim) Entries(reference string) []Entry {
	var found []Entry
	for _, name := range slices.Sorted(maps.Keys(s.keeps)) {
		if e, ok := s.Status(name, reference); ok {
			found = append(found, e)
		}
	}
	return found
}

// All returns all entries of the book in the order of arrival.
func (s *Sim) All() []Entry {
	s.settleDue()
	return s.book.all()
}

// Float returns our balance at the provider in pesewas: the opening float and the money received, less the money sent
// and the charges.
func (s *Sim) Float(provider string) money.Pesewas {
	s.settleDue()
	return s.book.float(provider)
}

// Opening returns the float at the provider before the first movement.
func (s *Sim) Opening(provider string) money.Pesewas { return s.book.opening(provider) }

// Accounts returns the two parts of the float at a provider: the money that collections brought, and the account that
// pays everything else.
func (s *Sim) Accounts(provider string) (incoming, outgoing money.Pesewas) {
	s.settleDue()
	return s.book.accounts(provider)
}

// Inject arms a fault.
func (s *Sim) Inject(f Fault) error {
	at, known := s.providers[f.Provider]
	if f.Provider != "" && !known {
		return problem.Field("provider", "must be one of the simulated providers")
	}
	if f.Operation != "" && f.Operation != "*" && !slices.Contains(operations, f.Operation) {
		return problem.Field("operation", "must be one of "+strings.Join(operations, ", "))
	}
	if !slices.Contains(FaultKinds(), f.Kind) {
		return problem.Field("fault", fmt.Sprintf("must be one of %v", FaultKinds()))
	}
	if at.Messages && slices.Contains(moneyOnly, f.Kind) {
		return problem.Field("fault", "has no effect at the message centre")
	}
	if f.Count < 0 || f.For < 0 || f.Delay < 0 || f.Every < 0 {
		return problem.Field("count", "must not be negative")
	}
	if f.Answer != "" && !slices.Contains(answered, f.Kind) {
		return problem.Field("answer", fmt.Sprintf("belongs to %v", answered))
	}
	if _, _, ok := splitAnswer(f.Answer); !ok {
		return problem.Field("answer", "must be a code, html or empty, with an HTTP status before it or not, such as 3050 or 400:html")
	}
	switch {
	case f.Delay > 0:
	case f.Kind == StatusHang:
		f.Delay = time.Hour
	default:
		f.Delay = 10 * time.Second
	}
	s.faults.arm(f)
	return nil
}

// ClearFaults removes all armed faults.
func (s *Sim) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
	s.faults.armed.Store(false)
}

// Faults lists the armed faults.
func (s *Sim) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	list := make([]Fault, len(s.faults.list))
	for i, a := range s.faults.list {
		list[i] = a.Fault
		list[i].Count = max(a.left, 0)
	}
	return list
}
