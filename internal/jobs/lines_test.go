package jobs

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// stand puts jobs into a kind that is run by hand.
type stand struct {
	*memory
	k    *kind
	next int
}

func newStand(h Handler) *stand {
	h.Key = func(j Job) string { return j.Subject }
	h.Tenant = func(j Job) string { return string(j.Payload) }
	return &stand{memory: newMemory(), k: newKind(h)}
}

func (s *stand) add(tenant, key string, n, tries int) {
	for range n {
		s.next++
		s.put(&entry{job: Job{ID: fmt.Sprint(s.next), Subject: key, Payload: []byte(tenant), Tries: tries}, kind: s.k, key: key, due: epochStart}, epochStart)
	}
}

// run takes all that may run and says whose it is.
func (s *stand) run() (taken []*entry, tenants []string) {
	for e := s.take(s.k); e != nil; e = s.take(s.k) {
		taken = append(taken, e)
		tenants = append(tenants, e.tenant.tenant)
	}
	return taken, tenants
}

func (s *stand) end(e *entry) {
	s.ended(e)
	e.state = gone
	s.forget(e)
}

// A burst of one tenant in a rail's line delays the next one's job by one turn, not by the burst.
func TestTenantsTakeTurnsInALine(t *testing.T) {
	s := newStand(Handler{Workers: 4, PerKey: func(string) int { return 1 }})
	s.add("burst", "rail", 1000, 0)
	s.add("neighbour", "rail", 2, 0)
	var order []string
	for range 5 {
		taken, tenants := s.run()
		order = append(order, tenants...)
		for _, e := range taken {
			s.end(e)
		}
	}
	if want := []string{"burst", "neighbour", "burst", "neighbour", "burst"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// A tenant alone in a line leaves some of its places to who comes.
func TestABurstLeavesPlaces(t *testing.T) {
	s := newStand(Handler{Workers: 100, PerKey: func(string) int { return 8 }, PerTurn: func(string) int { return 7 }})
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

// However many lines a tenant has, it has its share of the workers and no more; what it leaves is the others'.
func TestATenantWithEndlessLinesHasItsShare(t *testing.T) {
	s := newStand(Handler{Workers: 256, PerKey: func(string) int { return 8 },
		PerTenant: func(tenant string) int { return map[string]int{"endless": 2, "neighbour": 32}[tenant] }})
	for i := range 1000 {
		s.add("endless", fmt.Sprint("host ", i), 1, 0)
	}
	if _, tenants := s.run(); len(tenants) != 2 {
		t.Errorf("%d of the endless ones run at once", len(tenants))
	}
	s.add("neighbour", "shop", 5, 0)
	taken, tenants := s.run()
	if !slices.Equal(tenants, []string{"neighbour", "neighbour", "neighbour", "neighbour", "neighbour"}) {
		t.Errorf("beside them run: %v", tenants)
	}
	s.end(taken[0])
	if taken, _ = s.run(); len(taken) != 0 {
		t.Errorf("a neighbour's end let %d of the endless in", len(taken))
	}
}

// Repeats of all tenants together leave room for what is tried the first time.
func TestRepeatsLeaveRoom(t *testing.T) {
	s := newStand(Handler{Workers: 8, Repeats: 4})
	for i := range 10 {
		s.add(fmt.Sprint("tenant ", i), "shop", 10, 1)
	}
	repeats, tenants := s.run()
	if slices.Sort(tenants); len(repeats) != 4 || len(slices.Compact(tenants)) != 4 {
		t.Errorf("%d repeats at once, of %v", len(repeats), tenants)
	}
	s.add("neighbour", "shop", 4, 0)
	if _, tenants := s.run(); len(tenants) != 4 {
		t.Errorf("beside the repeats run: %v", tenants)
	}
	s.end(repeats[0])
	if again, _ := s.run(); len(again) != 1 {
		t.Errorf("after one repeat has ended %d others run", len(again))
	}
}

// A tenant with too many jobs tries each once; what failed comes when there are fewer, or later.
func TestACrowdsRepeatsArePutOff(t *testing.T) {
	s := newStand(Handler{Workers: 100, Crowd: 10})
	s.add("crowd", "shop", 9, 0)
	s.add("crowd", "shop", 5, 1)
	s.add("neighbour", "shop", 2, 1)
	taken, tenants := s.run()
	count := func(tenant string) (n int) {
		for _, one := range tenants {
			if one == tenant {
				n++
			}
		}
		return n
	}
	// The tenth was no crowd yet.
	if count("crowd") != 10 || count("neighbour") != 2 {
		t.Errorf("%d of the crowd and %d of the neighbour run", count("crowd"), count("neighbour"))
	}
	for _, e := range taken {
		s.end(e)
	}
	s.due(epochStart.Add(crowdPause / 2))
	if early, _ := s.run(); len(early) != 0 {
		t.Errorf("%d repeats came after half the pause", len(early))
	}
	s.due(epochStart.Add(2 * crowdPause))
	if late, _ := s.run(); len(late) != 4 {
		t.Errorf("%d of 4 repeats came after the pause of %v", len(late), crowdPause.Round(time.Minute))
	}
}
