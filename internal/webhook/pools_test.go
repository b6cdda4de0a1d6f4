package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/jobs/scheduler"
	"pgregory.net/rapid"
)

// stand is a scheduler with jobs that the test runs.
type stand struct {
	*scheduler.Scheduler[int]
	k    *scheduler.Kind[int]
	next int
}

func newStand(r scheduler.Rules) *stand {
	s := &stand{Scheduler: scheduler.New[int]()}
	s.k = s.Kind(r)
	return s
}

func (s *stand) add(tenant, line string, n, tries int) {
	for range n {
		s.next++
		s.Put(s.k, &scheduler.Entry[int]{ID: fmt.Sprint(s.next), Line: line, Tenant: tenant, Repeat: tries > 0}, 0)
	}
}

// run takes all runnable jobs and returns their tenants.
func (s *stand) run() (taken []*scheduler.Entry[int], tenants []string) {
	for e := s.Take(s.k); e != nil; e = s.Take(s.k) {
		taken = append(taken, e)
		tenants = append(tenants, e.Tenant)
	}
	return taken, tenants
}

func (s *stand) end(e *scheduler.Entry[int]) {
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

// poolStand returns a stand whose jobs are deliveries in pools.
func poolStand(p *pools) *stand {
	return newStand(scheduler.Rules{PerLine: func(string) int { return 8 }, Enter: p.enter, Leave: p.leave})
}

func onePool(only pool) *pools {
	p := newPools(1, func(_, _ string) int { return 0 })
	p.all = []*pool{&only}
	return p
}

// A tenant with many lines gets exactly its share of the workers. Other tenants get the rest.
func TestPools_tenantShare(t *testing.T) {
	s := poolStand(onePool(pool{atOnce: 256, perTenant: 2}))
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

// twoPools returns a pool for quick receivers, and a pool for receivers whose hosts begin with "slow".
func twoPools(workers int, slow pool) *pools {
	p := newPools(workers, func(_, host string) int {
		if strings.HasPrefix(host, "slow") {
			return 1
		}
		return 0
	})
	p.all = []*pool{{atOnce: workers, perTenant: workers}, &slow}
	return p
}

// The slow lines of a tenant delay only each other. They delay neither the tenant's quick line nor another tenant's
// lines.
func TestPools_slowDelayNoOthers(t *testing.T) {
	s := poolStand(twoPools(8, pool{atOnce: 4, perTenant: 2}))
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

// If a pool is full, tenants take turns, however many lines each of them has.
func TestPools_tenantsAlternate(t *testing.T) {
	s := poolStand(twoPools(8, pool{atOnce: 1, perTenant: 1}))
	for i := range 100 {
		s.add("many", fmt.Sprint("slow ", i), 1, 0)
	}
	s.add("few", "slow", 2, 0)
	order := s.turnsOf(5)
	if want := []string{"many", "few", "many", "few", "many"}; !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}

// A line that becomes quick leaves the slow pool, even while it waits there. Another line gets its place.
func TestPools_quickLineLeaves(t *testing.T) {
	quick := map[string]bool{}
	h := twoPools(8, pool{atOnce: 2, perTenant: 2})
	h.choose = func(_, key string) int {
		if quick[key] {
			return 0
		}
		return 1
	}
	s := poolStand(h)
	s.add("tenant", "one", 5, 0)
	s.add("tenant", "two", 5, 0)
	s.add("tenant", "three", 2, 0)
	taken, _ := s.run()
	if len(taken) != 2 || taken[0].Line != "one" || taken[1].Line != "two" {
		t.Fatalf("at first run %d", len(taken))
	}
	quick["one"] = true
	s.end(taken[0])
	more, _ := s.run()
	keys := map[string]int{}
	for _, e := range more {
		keys[e.Line]++
	}
	if keys["one"] != 4 || keys["three"] != 1 || len(more) != 5 {
		t.Errorf("once one is quick these run: %v", keys)
	}
	for _, e := range append(more, taken[1]) {
		s.end(e)
	}
	if rest, _ := s.run(); len(rest) != 2 || rest[0].Line == rest[1].Line {
		t.Errorf("%d of the slow ones' rest run", len(rest))
	}
	if p := h.all; p[0].running != 0 || p[1].running != 2 {
		t.Errorf("the pools count %d and %d", p[0].running, p[1].running)
	}
}

// A line may get its turn in a pool and leave the pool before it runs. Its turn then passes to a waiting line.
func TestPools_leavingLinePassesTurn(t *testing.T) {
	slow := map[string]bool{"two": true, "three": true}
	h := twoPools(8, pool{atOnce: 1, perTenant: 1})
	h.choose = func(_, key string) int {
		if slow[key] {
			return 1
		}
		return 0
	}
	s := poolStand(h)
	s.add("tenant", "one", 2, 0)
	s.add("tenant", "two", 1, 0)
	taken, _ := s.run()
	slices.SortFunc(taken, func(a, b *scheduler.Entry[int]) int { return strings.Compare(a.Line, b.Line) })
	if len(taken) != 3 || taken[2].Line != "two" {
		t.Fatalf("%d run", len(taken))
	}
	slow["one"] = true
	s.end(taken[0])
	s.add("tenant", "one", 1, 0)
	s.add("tenant", "three", 1, 0)
	s.end(taken[2]) // now line one has its turn
	slow["one"] = false
	s.end(taken[1])
	if rest, _ := s.run(); len(rest) != 2 {
		t.Errorf("%d of 2 run", len(rest))
	}
}

// If a tenant has too many events, each is tried once. Retries wait until there are fewer events.
func TestOverload_retriesWait(t *testing.T) {
	for tries, there := range map[int]int{0: backlog + 1, 1: backlog} {
		if backlogged(jobs.Job{Tries: tries, Siblings: there}) {
			t.Errorf("after %d failures an event beside %d waits", tries, there)
		}
	}
	if !backlogged(jobs.Job{Tries: 1, Siblings: backlog + 1}) {
		t.Error("an event that failed does not wait although its tenant has too many")
	}
}

// After random deliveries every pool and share is within its limit. No line waits while a place is free, and no state
// remains at the end.
func TestPools_randomDeliveries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[receiver]int{}
		p := newPools(8, func(tenant, host string) int { return in[receiver{tenant, host}] })
		p.all = []*pool{{atOnce: 3, perTenant: 2}, {atOnce: 2, perTenant: 2}}
		s := newStand(scheduler.Rules{PerLine: func(string) int { return 3 }, Enter: p.enter, Leave: p.leave})
		tenants, hosts := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"x", "y"})
		var taken []*scheduler.Entry[int]
		end := func() {
			e := taken[0]
			taken = taken[1:]
			s.end(e)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { s.add(tenants.Draw(t, "tenant"), hosts.Draw(t, "host"), 1, 0) },
			"learn": func(t *rapid.T) {
				in[receiver{tenants.Draw(t, "tenant"), hosts.Draw(t, "host")}] = rapid.IntRange(0, 1).Draw(t, "pool")
			},
			"take": func(*rapid.T) {
				if e := s.Take(s.k); e != nil {
					taken = append(taken, e)
				}
			},
			"end": func(*rapid.T) {
				if len(taken) > 0 {
					end()
				}
			},
			"forget": func(t *rapid.T) {
				if e := s.Find(fmt.Sprint(rapid.IntRange(1, s.next+1).Draw(t, "id"))); e != nil && !e.Runs() {
					s.Forget(e)
				}
			},
			"": func(t *rapid.T) {
				running := 0
				for n, pool := range p.all {
					running += pool.running
					if pool.running > pool.atOnce || pool.running < 0 {
						t.Fatalf("%d run in pool %d", pool.running, n)
					}
				}
				for tenant, of := range p.shares {
					for n := range of.of {
						if sh := &of.of[n]; sh.running > sh.pool.perTenant || sh.running < 0 {
							t.Fatalf("%d of %s run in pool %d", sh.running, tenant, n)
						}
					}
				}
				if running != len(taken) {
					t.Fatalf("%d run, %d by the books", len(taken), running)
				}
			},
		})
		for s.Len() > 0 {
			for e := s.Take(s.k); e != nil; e = s.Take(s.k) {
				taken = append(taken, e)
			}
			if len(taken) == 0 {
				t.Fatalf("%d deliveries wait for ever", s.Len())
			}
			end()
		}
		for s.Take(s.k) != nil {
			t.Fatal("a delivery that was forgotten began")
		}
		if len(p.shares) != 0 || len(p.places) != 0 || s.Running() != 0 {
			t.Fatalf("%d tenants and %d receivers are remembered for ever", len(p.shares), len(p.places))
		}
	})
}
