package scheduler

import (
	"math"
	"time"
)

// Rules bound the concurrent jobs of a kind. They are called often, one at a time.
type Rules struct {
	// PerLine is how many jobs of one line may run at once, at least one. nil: any number.
	PerLine func(line string) int
	// PerTurn is how many jobs of one tenant may run at once in a line, at least one. nil: as PerLine.
	PerTurn func(tenant, line string) int
	// Enter requests a place for the next job of a tenant in a line. If it returns false, the turn is set aside until
	// Leave offers it. nil means that there is always a place.
	Enter func(tenant, line string) bool
	// Leave returns a place, and offers the turns that may enter now. offer reports whether the turn can use a place
	// at once. It is nil if Enter is.
	Leave func(tenant, line string, offer func(tenant, line string) bool)
}

// state is where an entry is.
type state uint8

const (
	waiting state = iota // in the heap, for its time
	ready                // in a line, for a worker
	running              // in a handler
	gone                 // nowhere: finished, dropped or lost
)

// Entry is one job in memory.
type Entry[J any] struct {
	Job     J             // the caller's
	ID      string        // one of a kind
	Subject string        // what Wake calls it by; "": its ID
	Line    string        // the line of its kind that it joins when it is due
	Tenant  string        // whose turn in the line it takes
	Repeat  bool          // it has failed before
	Due     time.Duration // when it runs

	kind    *Kind[J]
	tenant  *tenant
	turn    *turn[J] // while ready or running
	state   state
	woken   bool      // while running: run again at once
	settled bool      // while running: a transaction finished or postponed it
	lost    bool      // while running: the epoch that owned it is over
	index   int       // in the heap
	ticket  int       // number of the last one
	next    *Entry[J] // another entry of the same subject
	heir    *Entry[J] // lost: the same job under our new epoch
}

// Waits reports whether the job waits for its time.
func (e *Entry[J]) Waits() bool { return e.state == waiting }

// Runs reports whether the job runs.
func (e *Entry[J]) Runs() bool { return e.state == running }

// Overtaken marks a running job whose outcome no longer counts: a transaction or another epoch has decided.
func (e *Entry[J]) Overtaken() bool { return e.settled || e.lost }

// Siblings returns how many jobs of the same kind and tenant there are.
func (e *Entry[J]) Siblings() int { return e.tenant.pending }

// leaves takes an entry off its tenant's books.
func (e *Entry[J]) leaves() {
	e.tenant.pending--
	e.kind.sweepTenant(e.tenant)
}

// Kind is a kind of jobs with its lines.
type Kind[J any] struct {
	Rules
	lines   map[string]*line[J]
	ring    fifo[*line[J]] // lines with a turn that may run, below their limit
	tenants map[string]*tenant
	// Unused lines, kept for the next job: most lines hold one job, for a moment.
	idleLines []*line[J]
	idleTurns []*turn[J]
}

// line is the ready jobs of one key. In it tenants take turns.
type line[J any] struct {
	key     string
	turns   map[string]*turn[J] // by tenant
	ring    fifo[*turn[J]]      // that may run
	running int
	inRing  bool
}

// turn has the ready jobs of one tenant in one line, in the order in which they became ready. First tries and repeats
// are apart and take turns as well.
type turn[J any] struct {
	line    *line[J]
	tenant  *tenant
	first   fifo[ticket[J]]
	repeats fifo[ticket[J]]
	again   bool // a repeat is next
	running int
	inRing  bool
	aside   bool // Enter returned false
}

// ticket is the place of a job in a turn. It is void once the job has left.
type ticket[J any] struct {
	*Entry[J]
	number int
}

func (t ticket[J]) valid() bool { return t.state == ready && t.Entry.ticket == t.number }

// tenant is whose jobs of a kind are in memory.
type tenant struct {
	name    string
	turns   int
	pending int // jobs in memory, whatever their time
}

// Offers reports whether there may be a job to take.
func (k *Kind[J]) Offers() bool { return k.ring.len() > 0 }

func (k *Kind[J]) tenantOf(name string) *tenant {
	t := k.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		k.tenants[name] = t
	}
	return t
}

// add puts a job that is due into its line.
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

// pop gives the turn's next job.
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

// full reports whether a turn has as many running jobs as it may.
func (k *Kind[J]) full(t *turn[J]) bool {
	return k.PerTurn != nil && t.running >= max(1, k.PerTurn(t.tenant.name, t.line.key))
}

// limit is how many jobs of one line may run at once.
func (k *Kind[J]) limit(key string) int {
	if k.PerLine == nil {
		return math.MaxInt
	}
	return max(1, k.PerLine(key))
}

// offerTurn puts a turn into its line.
func (k *Kind[J]) offerTurn(t *turn[J]) {
	if t.inRing || t.aside || t.len() == 0 || k.full(t) {
		return // a full one is offered when one of its own ends
	}
	t.inRing = true
	t.line.ring.push(t)
	k.offer(t.line)
}

// offer puts a line into the ring if a worker may take from it.
func (k *Kind[J]) offer(l *line[J]) {
	if l.inRing || l.ring.len() == 0 {
		return
	}
	if l.running < k.limit(l.key) {
		l.inRing = true
		k.ring.push(l)
	}
}

// take gives the next job to run.
func (k *Kind[J]) take() *Entry[J] {
	for {
		l, ok := k.ring.pop()
		if !ok {
			return nil
		}
		l.inRing = false
		if l.running >= k.limit(l.key) {
			continue // it is offered when one of its own ends
		}
		if e := k.takeFrom(l); e != nil {
			return e
		}
	}
}

// takeFrom gives the job of a line whose turn it is, if there is one.
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
		// It came for nothing: another may have its place.
		k.leave(t)
		k.offerTurn(t)
		k.sweep(t)
	}
}

// ended records that a job has run.
func (k *Kind[J]) ended(e *Entry[J]) {
	t, l := e.turn, e.turn.line
	e.turn = nil
	t.running--
	l.running--
	k.leave(t)
	k.offerTurn(t)
	k.offer(l)
	k.sweep(t) // and with its last turn the line
}

// leave gives the place of a turn's job back.
func (k *Kind[J]) leave(t *turn[J]) {
	if k.Leave != nil {
		k.Leave(t.tenant.name, t.line.key, k.reoffer)
	}
}

// reoffer puts a turn back that was set aside.
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

// overdue is for how long the job of the kind has been ready that is so for longest.
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

// waited is for how long the first job of a queue has been due.
func waited[J any](jobs *fifo[ticket[J]], now time.Duration) time.Duration {
	for _, e := range jobs.items[jobs.head:] {
		if e.valid() {
			return now - e.Due
		}
	}
	return 0
}

// idleKept is how many lines and turns a kind keeps for later.
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

// sweep forgets a turn, a line and a tenant without jobs.
func (k *Kind[J]) sweep(t *turn[J]) {
	if t.line == nil || t.running > 0 || t.inRing || t.aside || t.len() > 0 {
		return // it is in use, or was swept before
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
