package scheduler

import (
	"fmt"
	"slices"
	"testing"
)

// stand is a scheduler with jobs of one kind. The test runs them.
type stand struct {
	*Scheduler[int]
	k    *Kind[int]
	next int
}

func newStand(r Rules) *stand {
	s := &stand{Scheduler: New[int]()}
	s.k = s.Kind(r)
	return s
}

func (s *stand) add(tenant, line string, n, tries int) {
	for range n {
		s.next++
		s.Put(s.k, &Entry[int]{ID: fmt.Sprint(s.next), Line: line, Tenant: tenant, Repeat: tries > 0}, 0)
	}
}

// run takes all runnable jobs and returns their tenants.
func (s *stand) run() (taken []*Entry[int], tenants []string) {
	for e := s.Take(s.k); e != nil; e = s.Take(s.k) {
		taken = append(taken, e)
		tenants = append(tenants, e.Tenant)
	}
	return taken, tenants
}

func (s *stand) end(e *Entry[int]) {
	s.Ended(e, 0)
	s.Forget(e)
}

// turnsOf runs some rounds to their end and returns the tenants in their order.
func (s *stand) turnsOf(rounds int) (order []string) {
	for range rounds {
		taken, tenants := s.run()
		order = append(order, tenants...)
		for _, e := range taken {
			s.end(e)
		}
	}
	return order
}

// If one tenant adds many jobs to a rail's line, the next tenant's job waits for one turn, not for all of them.
func TestLine_tenantsTakeTurns(t *testing.T) {
	s := newStand(Rules{PerLine: func(string) int { return 1 }})
	s.add("burst", "rail", 1000, 0)
	s.add("neighbour", "rail", 2, 0)
	order := s.turnsOf(5)
	if want := []string{"burst", "neighbour", "burst", "neighbour", "burst"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// A tenant that is alone in a line leaves some of its places free for other tenants.
func TestLine_burstLeavesPlaces(t *testing.T) {
	s := newStand(Rules{PerLine: func(string) int { return 8 }, PerTurn: func(_, _ string) int { return 7 }})
	s.add("burst", "rail", 100, 0)
	burst, _ := s.run()
	s.add("neighbour", "rail", 2, 0)
	if _, tenants := s.run(); len(burst) != 7 || !slices.Equal(tenants, []string{"neighbour"}) {
		t.Errorf("%d of the burst, and beside it %v", len(burst), tenants)
	}
	s.end(burst[0])
	if _, tenants := s.run(); !slices.Equal(tenants, []string{"neighbour"}) {
		t.Errorf("in the place of one that ended: %v", tenants)
	}
}

// First tries do not wait for all repeated tries, nor the other way round.
func TestLine_repeatsAndFirstTriesTakeTurns(t *testing.T) {
	s := newStand(Rules{PerLine: func(string) int { return 1 }})
	s.add("tenant", "shop", 100, 1)
	s.add("tenant", "shop", 2, 0)
	var order []bool
	for range 6 {
		taken, _ := s.run()
		for _, e := range taken {
			order = append(order, e.Repeat)
			s.end(e)
			break
		}
	}
	if want := []bool{false, true, false, true, true, true}; !slices.Equal(order, want) {
		t.Errorf("repeats: %v, want %v", order, want)
	}
}
