package sim

import "time"

// downFor is how long magic number 031 returns 503.
const downFor = 60 * time.Second

// IsDown reports whether the provider is down for a party. The first call for the party begins the downtime.
func (s *Sim) IsDown(party string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	until, known := s.down[party]
	if !known {
		until = now.Add(downFor)
		s.down[party] = until
	}
	return now.Before(until)
}

// Status returns the current entry as the provider sees it. A due entry is settled first, even if the scheduler has
// not run yet.
func (s *Sim) Status(provider, reference string) (Entry, bool) {
	e, ok := s.book.get(provider, reference)
	if ok && e.dueBy(s.clock.Now()) {
		s.settleDueEntry(e)
		return s.book.get(provider, reference)
	}
	return e, ok
}

// await schedules the settlement of an entry for its due time.
func (s *Sim) await(e Entry) {
	if !e.Due.IsZero() {
		provider, reference := e.Provider, e.Reference
		s.schedule.at(e.Due, func() {
			if e, ok := s.book.get(provider, reference); ok && e.Status == Pending {
				s.settleDueEntry(e)
			}
		})
	}
}

// settleDueEntry settles an entry by its plan and sends the callbacks.
func (s *Sim) settleDueEntry(e Entry) {
	if after, did := s.settleByPlan(e); did {
		s.announce(after)
	}
}

func (s *Sim) settleByPlan(e Entry) (Entry, bool) {
	at := e.Due
	if now := s.clock.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	after, did, _ := s.book.settle(settleRecord{
		Provider: e.Provider, Reference: e.Reference, Status: e.Plan.Then, Reason: e.Plan.Reason, At: at,
	}, true)
	if did && after.Plan.FlipAfter > 0 {
		s.flip(after, after.Plan.Flips)
	}
	return after, did
}

// flip changes a final entry to the opposite status the given number of times, FlipAfter apart.
func (s *Sim) flip(e Entry, times int) {
	if times < 1 {
		return
	}
	s.schedule.after(e.Plan.FlipAfter, func() {
		if after, did := s.turn(e); did {
			s.flip(after, times-1)
		}
	})
}

// turn changes a failure to a success or reverses a success, and sends a callback.
func (s *Sim) turn(e Entry) (Entry, bool) {
	r := settleRecord{Provider: e.Provider, Reference: e.Reference, Status: Success, At: s.clock.Now(), Contradicted: true}
	if e.Status == Success {
		r.Status, r.Reason, r.Reversed = Failed, ReversedLater, true
	}
	after, did, err := s.book.settle(r, false)
	if err != nil || !did {
		return e, false
	}
	if after.CallbackURL != "" && !after.Plan.NoCallback {
		s.callbacks.send(s.keeps[after.Provider].Callback(after))
	}
	return after, true
}

// settleDue settles all due entries, for callers that need totals.
func (s *Sim) settleDue() {
	now := s.clock.Now()
	for _, e := range s.book.open() {
		if e.dueBy(now) {
			s.settleDueEntry(e)
		}
	}
}

// announce sends the provider's messages and callbacks about a settled entry.
func (s *Sim) announce(e Entry) {
	p := e.Plan
	if e.CallbackURL == "" || p.NoCallback {
		return
	}
	render := s.keeps[e.Provider].Callback
	truth := render(e)
	lie := e
	lie.Status, lie.Reason = Failed, Internal
	if e.Status == Failed {
		lie.Status, lie.Reason = Success, ""
	}
	if p.Forged {
		s.callbacks.send(s.forged(e.Provider, render(lie)))
	}
	send := func() {
		s.callbacks.send(truth)
		if p.Twice {
			s.callbacks.send(truth)
		}
		if p.Stale {
			s.schedule.after(time.Second, func() { s.callbacks.send(render(lie)) })
		}
	}
	if p.CallAfter > 0 {
		s.schedule.after(p.CallAfter, send)
		return
	}
	send()
}

// forged returns a callback as a sender without the provider's key would make it.
func (s *Sim) forged(provider string, c Callback) Callback {
	if forge := s.keeps[provider].Forge; forge != nil {
		return forge(c)
	}
	return c
}

// ReverseEntry reverses a success, as a provider does after a complaint. It reports whether there was one.
func (s *Sim) ReverseEntry(provider, reference string) bool {
	e, known := s.Status(provider, reference)
	if !known || e.Status != Success {
		return false
	}
	_, did := s.turn(e)
	return did
}
