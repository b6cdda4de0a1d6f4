package scheduler

import (
	"math"
	"time"
)

// Rules limit the concurrent jobs of a kind. The functions are called often, one at a time.
type Rules struct {
	// PerLine returns how many jobs of one line may run at once, at least one. If it is nil, there is no limit.
	PerLine func(line string) int
	// PerTurn returns how many jobs of one tenant may run at once in a line, at least one. If it is nil, PerLine is
	// the limit.
	PerTurn func(tenant, line string) int
	// Enter requests a place for the next job of a tenant in a line. If it returns false, the turn is set aside until
	// Leave offers it. If Enter is nil, there is always a place.
	Enter func(tenant, line string) bool
	// Leave returns a place and calls offer for the turns that may enter now. offer reports whether the turn can use
	// a place at once. Leave is nil if Enter is nil.
	Leave func(tenant, line string, offer func(tenant, line string) bool)
}

// state is the place of an entry in the scheduler.
type state uint8

const (
	waiting state = iota // in the heap, until its time
	ready                // in a line, until a worker takes it
	running              // in a handler
	gone                 // finished, dropped or lost
)

// Entry is one job in memory.
type Entry[J any] struct {
	Job     J             // the caller's data
	ID      string        // unique within the scheduler
	Subject string        // the name that Wake uses; "": the ID
	Line    string        // the line of its kind that it joins when it is due
	Tenant  string        // tenant whose turn in the line the job uses
	Repeat  bool          // the job has failed before
	Due     time.Duration // time at which the job runs

	kind    *Kind[J]
	tenant  *tenant
	turn    *turn[J] // while ready or running
	state   state
	woken   bool      // while running: Wake was called, so the job runs again at once
	settled bool      // while running: a transaction finished or postponed the job
	lost    bool      // while running: the job's epoch is over
	index   int       // in the heap
	ticket  int       // number of its last ticket
	next    *Entry[J] // another entry of the same subject
	heir    *Entry[J] // lost: the entry of the same job in our new epoch
}

// Waits reports whether the job is not due yet.
func (e *Entry[J]) Waits() bool { return e.state == waiting }

// Runs reports whether the job runs.
func (e *Entry[J]) Runs() bool { return e.state == running }

// Overtaken reports whether the outcome of a running job is ignored, because a transaction or another epoch has
// decided about the job.
func (e *Entry[J]) Overtaken() bool { return e.settled || e.lost }

// Siblings returns the number of jobs of the same kind and tenant in memory.
func (e *Entry[J]) Siblings() int { return e.tenant.pending }

// leaves subtracts an entry from the number of its tenant's jobs.
func (e *Entry[J]) leaves() {
	e.tenant.pending--
	e.kind.sweepTenant(e.tenant)
}

// Kind has the jobs of one kind and their lines.
type Kind[J any] struct {
	Rules
	lines   map[string]*line[J]
	ring    fifo[*line[J]] // lines below their limit that have a job to run
	tenants map[string]*tenant
	// Unused lines and turns are kept for the next jobs, because most lines exist for one job and only briefly.
	idleLines []*line[J]
	idleTurns []*turn[J]
}

// line has the ready jobs of one key. Within it, tenants take turns.
type line[J any] struct {
	key     string
	turns   map[string]*turn[J] // by tenant
	ring    fifo[*turn[J]]      // turns that may run a job
	running int
	inRing  bool
}

// turn has the ready jobs of one tenant in one line, in the order in which they became ready. First attempts and
// repeats are in separate queues, which are used alternately.
type turn[J any] struct {
	line    *line[J]
	tenant  *tenant
	first   fifo[ticket[J]]
	repeats fifo[ticket[J]]
	again   bool // the next job is a repeat
	running int
	inRing  bool
	aside   bool // Enter returned false
}

// ticket is the place of a job in a turn. It is invalid if the job has left the turn.
type ticket[J any] struct {
	*Entry[J]
	number int
}

func (t ticket[J]) valid() bool { return t.state == ready && t.Entry.ticket == t.number }

// tenant counts the jobs and turns of one tenant within a kind.
type tenant struct {
	name    string
	turns   int
	pending int // jobs in memory, due or not
}

// Offers reports whether there may be a job to run.
func (k *Kind[J]) Offers() bool { return k.ring.len() > 0 }

func (k *Kind[J]) tenantOf(name string) *tenant {
	t := k.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		k.tenants[name] = t
	}
	return t
}

// add adds a due job to its line.
func (k *Kind[J]) add(e *Entry[J]) {
	l := k.lines[e.Line]
	if l == nil {
		l = k.newLine(e.Line)
		k.lines[e.Line] = l
	}
	t := l.turns[e.tenant.name]
	if t == nil {
		t = k.newTurn()
		t.line, t.tenant = l, e.tenant
		l.turns[e.tenant.name] = t
		t.tenant.turns++
	}
	e.turn = t
	e.ticket++
	if e.Repeat {
		t.repeats.push(ticket[J]{e, e.ticket})
	} else {
		t.first.push(ticket[J]{e, e.ticket})
	}
	k.offerTurn(t)
}

func (t *turn[J]) len() int { return t.first.len() + t.repeats.len() }

// pop removes and returns the turn's next job.
func (t *turn[J]) pop() (*Entry[J], bool) {
	for t.len() > 0 {
		again := t.repeats.len() > 0 && (t.again || t.first.len() == 0)
		from := &t.first
		if again {
			from = &t.repeats
		}
		t.again = !again
		if next, _ := from.pop(); next.valid() {
			return next.Entry, true
		}
	}
	return nil, false
}

// full reports whether a turn has reached its limit of running jobs.
func (k *Kind[J]) full(t *turn[J]) bool {
	return k.PerTurn != nil && t.running >= max(1, k.PerTurn(t.tenant.name, t.line.key))
}

// limit returns how many jobs of one line may run at once.
func (k *Kind[J]) limit(key string) int {
	if k.PerLine == nil {
		return math.MaxInt
	}
	return max(1, k.PerLine(key))
}

// offerTurn adds a turn to its line's ring if it has a job that may run.
func (k *Kind[J]) offerTurn(t *turn[J]) {
	if t.inRing || t.aside || t.len() == 0 || k.full(t) {
		return // a full turn is offered when one of its jobs ends
	}
	t.inRing = true
	t.line.ring.push(t)
	k.offer(t.line)
}

// offer adds a line to the ring if a worker may take a job from it.
func (k *Kind[J]) offer(l *line[J]) {
	if l.inRing || l.ring.len() == 0 {
		return
	}
	if l.running < k.limit(l.key) {
		l.inRing = true
		k.ring.push(l)
	}
}

// take removes and returns the next job to run, or nil.
func (k *Kind[J]) take() *Entry[J] {
	for {
		l, ok := k.ring.pop()
		if !ok {
			return nil
		}
		l.inRing = false
		if l.running >= k.limit(l.key) {
			continue // the line is offered again when one of its jobs ends
		}
		if e := k.takeFrom(l); e != nil {
			return e
		}
	}
}

// takeFrom removes and returns the next job of a line, or nil.
func (k *Kind[J]) takeFrom(l *line[J]) *Entry[J] {
	for {
		t, ok := l.ring.pop()
		if !ok {
			k.sweepLine(l)
			return nil
		}
		t.inRing = false
		if k.Enter != nil && !k.Enter(t.tenant.name, l.key) {
			t.aside = true
			continue
		}
		if !k.full(t) {
			if e, ok := t.pop(); ok {
				t.running++
				l.running++
				k.offerTurn(t)
				k.offer(l)
				return e
			}
		}
		// The turn has no job to run, so it gives back its place.
		k.leave(t)
		k.offerTurn(t)
		k.sweep(t)
	}
}

// ended updates the line of a job that has run.
func (k *Kind[J]) ended(e *Entry[J]) {
	t, l := e.turn, e.turn.line
	e.turn = nil
	t.running--
	l.running--
	k.leave(t)
	k.offerTurn(t)
	k.offer(l)
	k.sweep(t) // this may also remove the line
}

// leave returns the place of a turn's job.
func (k *Kind[J]) leave(t *turn[J]) {
	if k.Leave != nil {
		k.Leave(t.tenant.name, t.line.key, k.reoffer)
	}
}

// reoffer offers a turn again that was set aside. It reports whether one of its jobs can begin at once.
func (k *Kind[J]) reoffer(tenant, key string) (begins bool) {
	l := k.lines[key]
	if l == nil || l.turns[tenant] == nil {
		return false
	}
	t := l.turns[tenant]
	t.aside = false
	k.offerTurn(t)
	begins = t.inRing && l.running < k.limit(key)
	k.sweep(t)
	return begins
}

// overdue returns how long the longest waiting ready job of the kind has been due.
func (k *Kind[J]) overdue(now time.Duration) (late time.Duration) {
	for _, l := range k.lines {
		for _, t := range l.turns {
			for _, jobs := range []*fifo[ticket[J]]{&t.first, &t.repeats} {
				late = max(late, waited(jobs, now))
			}
		}
	}
	return late
}

// waited returns how long the first job of a queue has been due.
func waited[J any](jobs *fifo[ticket[J]], now time.Duration) time.Duration {
	for _, e := range jobs.items[jobs.head:] {
		if e.valid() {
			return now - e.Due
		}
	}
	return 0
}

// idleKept is the maximum number of unused lines, and of unused turns, that a kind keeps.
const idleKept = 64

func (k *Kind[J]) newLine(key string) *line[J] {
	if last := len(k.idleLines) - 1; last >= 0 {
		l := k.idleLines[last]
		k.idleLines = k.idleLines[:last]
		l.key = key
		return l
	}
	return &line[J]{key: key, turns: map[string]*turn[J]{}}
}

func (k *Kind[J]) newTurn() *turn[J] {
	if last := len(k.idleTurns) - 1; last >= 0 {
		t := k.idleTurns[last]
		k.idleTurns = k.idleTurns[:last]
		return t
	}
	return &turn[J]{}
}

// sweep removes a turn without jobs. It then removes the turn's line and tenant if they have no other turns.
func (k *Kind[J]) sweep(t *turn[J]) {
	if t.line == nil || t.running > 0 || t.inRing || t.aside || t.len() > 0 {
		return // in use, or removed before
	}
	l := t.line
	if l.turns[t.tenant.name] == t {
		delete(l.turns, t.tenant.name)
		t.tenant.turns--
		k.sweepTenant(t.tenant)
		if len(k.idleTurns) < idleKept {
			*t = turn[J]{first: t.first.emptied(), repeats: t.repeats.emptied()}
			k.idleTurns = append(k.idleTurns, t)
		}
	}
	k.sweepLine(l)
}

func (k *Kind[J]) sweepLine(l *line[J]) {
	if l.running == 0 && !l.inRing && len(l.turns) == 0 && k.lines[l.key] == l {
		delete(k.lines, l.key)
		if len(k.idleLines) < idleKept {
			l.ring = l.ring.emptied()
			k.idleLines = append(k.idleLines, l)
		}
	}
}

func (k *Kind[J]) sweepTenant(t *tenant) {
	if t.name != "" && t.turns == 0 && t.pending == 0 && k.tenants[t.name] == t {
		delete(k.tenants, t.name)
	}
}
