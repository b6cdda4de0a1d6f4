package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainJob is a job of the model.
type plainJob struct {
	id, line, tenant string
	repeat           bool
	due              time.Duration
	is               state
	ready            int // event at which the job became ready
	woken, settled   bool
}

func (j *plainJob) subject() string { return "of " + j.line }

// model is the simplest possible scheduler. For each decision it examines all jobs, and it returns the correct decisions.
type model struct {
	jobs    map[string]*plainJob
	ghosts  map[string]*plainJob // runs of lost epochs
	heirs   map[string]*plainJob
	done    map[*plainJob]bool // runs whose jobs were finished meanwhile
	now     time.Duration
	event   int
	since   map[string]int // the event since which a line, or a turn of it, has been runnable without a break
	taken   map[string]int // the last event at which a job of a line, or of a turn, was taken
	perLine int
	perTurn int
}

func turnName(j *plainJob) string { return j.line + "/" + j.tenant }

func (m *model) put(j *plainJob) {
	if m.ghosts[j.id] != nil {
		m.heirs[j.id] = j
		return
	}
	m.jobs[j.id] = j
	m.schedule(j)
}

func (m *model) schedule(j *plainJob) {
	j.is = waiting
	if j.due <= m.now {
		j.is, j.ready = ready, m.event
	}
}

// mayRun returns the turns that have a runnable job, and the lines that have a free place for one.
func (m *model) mayRun() (turns, lines map[string]bool) {
	runs, waits := map[string]int{}, map[string]*plainJob{}
	for _, j := range slices.Concat(slices.Collect(maps.Values(m.jobs)), slices.Collect(maps.Values(m.ghosts)), slices.Collect(maps.Keys(m.done))) {
		switch j.is {
		case running:
			runs[j.line]++
			runs[turnName(j)]++
		case ready:
			waits[turnName(j)] = j
		}
	}
	turns, lines = map[string]bool{}, map[string]bool{}
	for name, j := range waits {
		if runs[name] < m.perTurn {
			turns[name] = true
			if runs[j.line] < m.perLine {
				lines[j.line] = true
			}
		}
	}
	return turns, lines
}

// tick ends an event. It records since when each line and turn is runnable.
func (m *model) tick() {
	m.event++
	turns, lines := m.mayRun()
	for _, may := range []map[string]bool{turns, lines} {
		for name := range may {
			if _, ok := m.since[name]; !ok {
				m.since[name] = m.event
			}
		}
	}
	maps.DeleteFunc(m.since, func(name string, _ int) bool { return !turns[name] && !lines[name] })
}

// passedOver returns another name that was runnable when name was last taken, and has waited since an earlier event.
// It is empty if there is none.
func (m *model) passedOver(name string, others map[string]bool) string {
	for other := range others {
		since, may := m.since[other]
		if other != name && may && since < m.taken[name] && m.taken[other] < m.taken[name] {
			return other
		}
	}
	return ""
}

// wrong returns why a job must not be taken now.
func (m *model) wrong(j *plainJob) string {
	turns, lines := m.mayRun()
	if j.is != ready || !turns[turnName(j)] || !lines[j.line] {
		return "it may not run"
	}
	for _, other := range m.jobs {
		if other.is == ready && turnName(other) == turnName(j) && other.repeat == j.repeat && other.ready < j.ready {
			return "it was not the first of its turn: " + other.id
		}
	}
	inLine := map[string]bool{}
	for name := range turns {
		if name[:len(j.line)] == j.line {
			inLine[name] = true
		}
	}
	if other := m.passedOver(turnName(j), inLine); other != "" {
		return "it was the turn of " + other
	}
	if other := m.passedOver(j.line, lines); other != "" {
		return "it was the turn of the line " + other
	}
	return ""
}

// TestScheduler_agreesWithAModel compares the scheduler with a plain model over random events.
func TestScheduler_agreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			jobs: map[string]*plainJob{}, ghosts: map[string]*plainJob{}, heirs: map[string]*plainJob{}, done: map[*plainJob]bool{},
			since: map[string]int{}, taken: map[string]int{}, perLine: 3, perTurn: 2,
		}
		s := New[*plainJob]()
		k := s.Kind(Rules{PerLine: func(string) int { return m.perLine }, PerTurn: func(_, _ string) int { return m.perTurn }})
		var runs []*Entry[*plainJob]
		next := 0
		delay := func(t *rapid.T) time.Duration {
			return m.now + time.Duration(rapid.IntRange(-3, 3).Draw(t, "delay"))*time.Minute
		}
		put := func(t *rapid.T, id string) {
			j := &plainJob{
				id: id, line: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "line"), tenant: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"),
				repeat: rapid.Bool().Draw(t, "repeat"), due: delay(t),
			}
			m.put(j)
			s.Put(k, &Entry[*plainJob]{Job: j, ID: id, Subject: j.subject(), Line: j.line, Tenant: j.tenant, Repeat: j.repeat, Due: j.due}, m.now)
		}
		some := func(t *rapid.T) *plainJob {
			if len(m.jobs) == 0 {
				return nil
			}
			return m.jobs[rapid.SampledFrom(slices.Sorted(maps.Keys(m.jobs))).Draw(t, "id")]
		}
		advance := func(by time.Duration) {
			m.now += by
			due := slices.Collect(maps.Values(m.jobs))
			slices.SortFunc(due, func(a, b *plainJob) int { return int(a.due - b.due) })
			for _, j := range due {
				if j.is == waiting && j.due <= m.now {
					m.schedule(j) // among jobs that are due at the same moment, any may be first
				}
			}
			s.Advance(m.now)
		}
		take := func(t *rapid.T) bool {
			_, lines := m.mayRun()
			e := s.Take(k)
			if e == nil {
				if len(lines) > 0 {
					t.Fatalf("nothing was taken although these lines may run: %v", lines)
				}
				return false
			}
			j := e.Job
			if m.jobs[j.id] != j {
				t.Fatalf("%s was taken and is not there", j.id)
			}
			if why := m.wrong(j); why != "" {
				t.Fatalf("%s of %s was taken: %s", j.id, turnName(j), why)
			}
			j.is, j.woken, j.settled = running, false, false
			m.taken[j.line], m.taken[turnName(j)] = m.event, m.event
			runs = append(runs, e)
			return true
		}
		end := func(t *rapid.T, again bool) {
			e := runs[0]
			runs = runs[1:]
			j := e.Job
			standing := s.Ended(e, m.now)
			want := Kept
			switch {
			case m.ghosts[j.id] == j:
				delete(m.ghosts, j.id)
				want = Lost
				if heir := m.heirs[j.id]; heir != nil {
					delete(m.heirs, j.id)
					m.put(heir)
					want = Inherited
				}
			case m.done[j]:
				delete(m.done, j)
				want = Finished
			case j.settled:
				want = Settled
			}
			if standing != want {
				t.Fatalf("%s ended as %d, want %d", j.id, standing, want)
			}
			if standing != Kept && standing != Settled {
				j.is = gone
				return
			}
			if standing == Kept && !again {
				s.Forget(e)
				delete(m.jobs, j.id)
				return
			}
			if standing == Kept {
				j.due = delay(t)
			}
			due := j.due
			if j.woken {
				j.due = m.now
			}
			m.schedule(j)
			s.Again(e, due, m.now)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				next++
				put(t, fmt.Sprint(next))
			},
			"inherit": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(m.ghosts)) {
					if m.heirs[id] == nil {
						put(t, id)
						return
					}
				}
			},
			"advance": func(t *rapid.T) { advance(time.Minute) },
			"take":    func(t *rapid.T) { take(t) },
			"end": func(t *rapid.T) {
				if len(runs) > 0 {
					end(t, rapid.Bool().Draw(t, "again"))
				}
			},
			"finish": func(t *rapid.T) {
				j := some(t)
				if j == nil {
					return
				}
				s.Finish(j.id)
				delete(m.jobs, j.id)
				if j.is == running {
					m.done[j] = true // the run counts in its line until it ends
				}
			},
			"move": func(t *rapid.T) {
				j, to := some(t), delay(t)
				if j == nil {
					return
				}
				s.Move(s.Find(j.id), to, m.now)
				switch {
				case j.is == running:
					j.due, j.settled = to, true
				case j.is != ready || to > m.now:
					j.due = to
					m.schedule(j)
				}
			},
			"wake": func(t *rapid.T) {
				subject := "of " + rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "line")
				there := false
				for _, j := range m.jobs {
					if j.subject() != subject {
						continue
					}
					there = true
					switch j.is {
					case waiting:
						j.due = m.now
						m.schedule(j)
					case running:
						j.woken = true
					}
				}
				if s.Wake(subject, m.now) != there {
					t.Fatalf("%s: there are jobs: %v", subject, there)
				}
			},
			"drop": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "seldom") > 0 {
					return
				}
				left := 0
				for id, j := range m.jobs {
					if j.is == running {
						m.ghosts[id] = j
					} else {
						left++
					}
				}
				clear(m.heirs)
				clear(m.jobs)
				if got := len(s.Drop()); got != left {
					t.Fatalf("%d jobs left, want %d", got, left)
				}
			},
			"": func(t *rapid.T) {
				m.tick()
				agree(t, m, s)
			},
		})
		for s.Len() > 0 || len(runs) > 0 {
			advance(time.Minute)
			m.tick()
			for take(t) {
				m.tick()
			}
			if len(runs) > 0 {
				end(t, false)
				m.tick()
			}
		}
		take(t) // skips jobs that were dropped while they waited in a line
		if len(k.lines) != 0 || len(k.tenants) != 0 || !s.Idle() {
			t.Fatalf("%d lines and %d tenants are remembered for ever", len(k.lines), len(k.tenants))
		}
	})
}

// agree fails the test if the state of the scheduler differs from the model.
func agree(t *rapid.T, m *model, s *Scheduler[*plainJob]) {
	counts := map[state]int{}
	var first *plainJob
	for id, j := range m.jobs {
		e := s.Find(id)
		if e == nil || e.state != j.is || e.Due != j.due {
			t.Fatalf("%s should be %+v, and is %+v", id, j, e)
		}
		counts[j.is]++
		if j.is == waiting && (first == nil || j.due < first.due) {
			first = j
		}
	}
	if s.Len() != len(m.jobs) || s.Ready() != counts[ready] || s.Running() != counts[running]+len(m.ghosts)+len(m.done) {
		t.Fatalf("there are %d jobs, %d ready, %d running; want %d, %v and %d ghosts", s.Len(), s.Ready(), s.Running(), len(m.jobs), counts, len(m.ghosts))
	}
	if at, ok := s.Next(); ok != (first != nil) || ok && at != first.due {
		t.Fatalf("the next one is due at %v, %v; want %+v", at, ok, first)
	}
}
