package sim

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Providers names the simulated providers that there are adapters for.
func (s *Sim) Providers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.wires)), func(name string) bool { return s.wires[name].serve == nil })
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

// SetFloat makes the account that the provider pays out of hold this much, in
// pesewas. The money of collections lies in an account of its own.
func (s *Sim) SetFloat(provider string, amount money.Pesewas) error {
	if s.wires[provider].serve == nil {
		return problem.Field("provider", "must be one of the simulated providers")
	}
	s.settleDue()
	_, out := s.book.accounts(provider)
	return s.book.addFloat(provider, amount-out)
}

// Statement is what the provider's own statement shows of the settled
// movements: successes, and those that were taken back. It leaves out what
// a plan omits and gets amounts wrong where a plan says so. An empty provider
// means all of them.
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
