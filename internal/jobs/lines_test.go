package jobs

import (
	"fmt"
	"slices"
	"strings"
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
		tenants = append(tenants, e.tenant.name)
	}
	return taken, tenants
}

func (s *stand) end(e *entry) {
	s.ended(e)
	e.state = gone
	s.forget(e)
}

// turnsOf gives whose jobs ran in some rounds, each of which ends.
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

// A burst of one tenant in a rail's line delays the next one's job by one turn, not by the burst.
func TestTenantsTakeTurnsInALine(t *testing.T) {
	s := newStand(Handler{Workers: 4, PerKey: func(string) int { return 1 }})
	s.add("burst", "rail", 1000, 0)
	s.add("neighbour", "rail", 2, 0)
	order := s.turnsOf(5)
	if want := []string{"burst", "neighbour", "burst", "neighbour", "burst"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// A tenant alone in a line leaves some of its places to who comes.
func TestABurstLeavesPlaces(t *testing.T) {
	s := newStand(Handler{Workers: 100, PerKey: func(string) int { return 8 }, PerTurn: func(_, _ string) int { return 7 }})
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
	s := newStand(Handler{Workers: 256, PerKey: func(string) int { return 8 }, Pools: []Pool{{AtOnce: 256, PerTenant: 2}}})
	for i := range 1000 {
		s.add("endless", fmt.Sprint("host ", i), 1, 0)
	}
	if _, tenants := s.run(); len(tenants) != 2 {
		t.Errorf("%d of the endless ones run at once", len(tenants))
	}
	s.add("neighbour", "shop", 2, 0)
	taken, tenants := s.run()
	if !slices.Equal(tenants, []string{"neighbour", "neighbour"}) {
		t.Errorf("beside them run: %v", tenants)
	}
	s.end(taken[0])
	if taken, _ = s.run(); len(taken) != 0 {
		t.Errorf("a neighbour's end let %d of the endless in", len(taken))
	}
}

// twoPools are one for what is quick, and one for the lines whose keys begin with "slow".
func twoPools(workers int, slow Pool) Handler {
	return Handler{Workers: workers, Pools: []Pool{{AtOnce: workers, PerTenant: workers}, slow}, Pool: func(_, key string) int {
		if strings.HasPrefix(key, "slow") {
			return 1
		}
		return 0
	}}
}

// The slow lines of a tenant, however many, wait for each other alone: neither the tenant's own quick line nor another tenant's does.
func TestAPoolHoldsUpNoOther(t *testing.T) {
	s := newStand(twoPools(8, Pool{AtOnce: 4, PerTenant: 2}))
	for i := range 100 {
		s.add("slow one", fmt.Sprint("slow ", i), 5, i%2)
		s.add("slow two", fmt.Sprint("slow ", i), 5, i%2)
		s.add("slow three", fmt.Sprint("slow ", i), 5, i%2)
	}
	slow, tenants := s.run()
	if slices.Sort(tenants); !slices.Equal(tenants, []string{"slow one", "slow one", "slow two", "slow two"}) {
		t.Errorf("%v run at once", tenants)
	}
	s.add("slow one", "quick", 4, 0)
	if _, tenants := s.run(); len(tenants) != 4 {
		t.Errorf("beside the slow ones run: %v", tenants)
	}
	s.end(slow[0])
	if _, tenants := s.run(); !slices.Equal(tenants, []string{"slow three"}) {
		t.Errorf("after one of two tenants has ended the third waits: %v", tenants)
	}
}

// At a pool that is full tenants take turns, however many lines each has.
func TestTenantsTakeTurnsAtAPool(t *testing.T) {
	s := newStand(twoPools(8, Pool{AtOnce: 1, PerTenant: 1}))
	for i := range 100 {
		s.add("many", fmt.Sprint("slow ", i), 1, 0)
	}
	s.add("few", "slow", 2, 0)
	order := s.turnsOf(5)
	if want := []string{"many", "few", "many", "few", "many"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// A line whose runs turn out quick leaves its pool, also while it waits there, and its place is another's.
func TestALineLeavesItsPool(t *testing.T) {
	quick := map[string]bool{}
	h := twoPools(8, Pool{AtOnce: 2, PerTenant: 2})
	h.Pool = func(_, key string) int {
		if quick[key] {
			return 0
		}
		return 1
	}
	s := newStand(h)
	s.add("tenant", "one", 5, 0)
	s.add("tenant", "two", 5, 0)
	s.add("tenant", "three", 1, 0)
	taken, _ := s.run()
	if len(taken) != 2 || taken[0].key != "one" || taken[1].key != "two" {
		t.Fatalf("at first run %d", len(taken))
	}
	quick["one"] = true
	s.end(taken[0])
	more, _ := s.run()
	keys := map[string]int{}
	for _, e := range more {
		keys[e.key]++
	}
	if keys["one"] != 4 || keys["two"] != 1 || len(more) != 5 {
		t.Errorf("once one is quick these run: %v", keys)
	}
	for _, e := range append(more, taken[1]) {
		s.end(e)
	}
	if rest, _ := s.run(); len(rest) != 2 || rest[0].key == rest[1].key {
		t.Errorf("%d of the slow ones' rest run", len(rest))
	}
	if p := s.k.pools; p[0].running != 0 || p[1].running != 2 {
		t.Errorf("the pools count %d and %d", p[0].running, p[1].running)
	}
}

// A line that had its turn in a pool and leaves it before it runs there gives the turn to who waits.
func TestALineThatLeavesPassesItsTurnOn(t *testing.T) {
	slow := map[string]bool{"two": true, "three": true}
	h := twoPools(8, Pool{AtOnce: 1, PerTenant: 1})
	h.Pool = func(_, key string) int {
		if slow[key] {
			return 1
		}
		return 0
	}
	s := newStand(h)
	s.add("tenant", "one", 2, 0)
	s.add("tenant", "two", 1, 0)
	taken, _ := s.run()
	slices.SortFunc(taken, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	if len(taken) != 3 || taken[2].key != "two" {
		t.Fatalf("%d run", len(taken))
	}
	slow["one"] = true
	s.end(taken[0])
	s.add("tenant", "one", 1, 0)
	s.add("tenant", "three", 1, 0)
	s.end(taken[2]) // one has its turn
	slow["one"] = false
	s.end(taken[1])
	if rest, _ := s.run(); len(rest) != 2 {
		t.Errorf("%d of 2 run", len(rest))
	}
}

// First tries do not wait until all repeats of their turn are over, nor the other way round.
func TestRepeatsTakeTurnsWithFirstTries(t *testing.T) {
	s := newStand(Handler{Workers: 1})
	s.add("tenant", "shop", 100, 1)
	s.add("tenant", "shop", 2, 0)
	var order []int
	for range 6 {
		taken, _ := s.run()
		for _, e := range taken {
			order = append(order, e.job.Tries)
			s.end(e)
			break
		}
	}
	if want := []int{0, 1, 0, 1, 1, 1}; !slices.Equal(order, want) {
		t.Errorf("tries: %v, want %v", order, want)
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
