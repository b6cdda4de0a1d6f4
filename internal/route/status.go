package route

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Status is the state of one provider and operation for operators.
type Status struct {
	Mode      string
	Provider  string
	Operation Operation
	Paused    *Pause // nil: not paused
	// Breaker is "closed", "open" or "half-open". Until and Why are set if it is not closed.
	Breaker string
	Until   time.Time
	Why     string
	// NotKnown is the provider's last response to a reference that does not exist. It is nil if the provider was not
	// probed or has no status for this operation.
	NotKnown *NotKnown
}

// List returns the state of every provider and operation of the configured rails. Without rails, as in a command, it
// returns the providers and operations of the routes. In both cases it adds all others that are paused or have an
// open breaker. It reads the database, not the cache.
func (t *Table) List(ctx context.Context) ([]Status, error) {
	sw, err := t.loadSwitches(ctx)
	if err != nil {
		return nil, err
	}
	banks, err := t.loadCatalogue(ctx)
	if err != nil {
		return nil, err
	}
	said, err := t.notKnown(ctx)
	if err != nil {
		return nil, err
	}
	now := t.clock.Now()
	keys := t.served(sw, banks)
	t.breakers.mu.Lock()
	defer t.breakers.mu.Unlock()
	for k := range sw.pauses {
		keys[k] = true
	}
	for k := range sw.breakers {
		keys[k] = true
	}
	list := make([]Status, 0, len(keys))
	for k := range keys {
		s := Status{Mode: k.mode, Provider: k.provider, Operation: k.op, Breaker: "closed"}
		for _, op := range []Operation{k.op, Any} {
			if p, ok := sw.pauses[breakerKey{k.mode, k.provider, op}]; ok {
				s.Paused = &p
			}
		}
		if b, open, _ := t.breakers.state(k, sw.breakers); open {
			s.Breaker, s.Until, s.Why = "open", b.until, b.why
			if !now.Before(b.until) {
				s.Breaker = "half-open"
			}
		}
		if n, ok := said[k]; ok {
			s.NotKnown = &n
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Status) int {
		return strings.Compare(a.Mode+" "+a.Provider+" "+position(a.Operation), b.Mode+" "+b.Provider+" "+position(b.Operation))
	})
	return list, nil
}

// served returns the providers and operations of List that neither a pause nor a breaker adds.
func (t *Table) served(sw *switches, banks *catalogue) map[breakerKey]bool {
	keys := map[breakerKey]bool{}
	for _, r := range t.rails {
		for _, op := range Operations() {
			// A rail pays wallets and banks by one role. It serves banks only if it has codes for them.
			if Can(r, op) && (op != DisburseBank || len(banks.bankCodes[r.Name]) > 0) {
				keys[breakerKey{r.Mode, r.Name, op}] = true
			}
		}
	}
	if len(t.rails) == 0 {
		for r, providers := range sw.routes {
			for _, name := range providers {
				for _, mode := range []string{"test", "live"} {
					if r.mode == Any || r.mode == mode {
						keys[breakerKey{mode, name, r.op}] = true
					}
				}
			}
		}
	}
	return keys
}

// position returns a sort key for the order of Operations, with Any first.
func position(op Operation) string { return string(rune('a' + 1 + slices.Index(Operations(), op))) }
