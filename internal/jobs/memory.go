package jobs

import (
	"container/heap"
	"time"
)

// state is where an entry is.
type state uint8

const (
	waiting state = iota // in the heap, for its time
	ready                // in a line, for a worker
	running              // in a handler
	gone                 // nowhere: finished, dropped or lost
)

// entry is one job in memory.
type entry struct {
	job     Job
	kind    *kind
	key     string
	created int64     // microseconds
	due     time.Time // when it runs; equal to the row's run_at unless moved
	state   state
	moved   bool   // due was changed in memory only
	begun   bool   // a handler has had it
	woken   bool   // while running: run again at once
	decided bool   // while running: a transaction finished or postponed it
	lost    bool   // while running: the epoch that owned it is over
	index   int    // in the heap
	next    *entry // another entry of the same subject
	heir    *entry // lost: the same job under our new epoch
}

// memory holds the jobs of one epoch: a heap by time, and for each kind the
// lines of those that are due. It knows neither the database nor a lock; the
// queue's lock guards it.
type memory struct {
	byID      map[string]*entry
	bySubject map[string]*entry
	waiting   waitingHeap
	kinds     map[string]*kind
	ready     int
	running   int
	ghosts    map[string]*entry // running entries of lost epochs
}

// kind is a handler with its lines.
type kind struct {
	Handler
	lines    map[string]*line
	ring     fifo[*line] // lines with a ready job, below their limit
	held     []*line     // lines with a ready job and a limit of 0 when it was asked last
	ready    int
	workers  int             // goroutines that run this kind
	starting int             // of these, how many have not looked for a job yet
	resting  []chan struct{} // besides these, who waits to be one again; closed: to end
}

// line is the ready jobs of one key, in the order in which they became ready.
type line struct {
	key     string
	jobs    fifo[*entry]
	running int
	inRing  bool
	held    bool
}

func newMemory() *memory {
	return &memory{
		byID:      map[string]*entry{},
		bySubject: map[string]*entry{},
		kinds:     map[string]*kind{},
		ghosts:    map[string]*entry{},
	}
}

// put takes a job that is not in memory.
func (m *memory) put(e *entry, now time.Time) {
	if ghost := m.ghosts[e.job.ID]; ghost != nil {
		// The old epoch's handler still runs it here: not both at once.
		e.state, ghost.heir = gone, e
		return
	}
	m.byID[e.job.ID] = e
	if s := e.job.Subject; s != "" {
		e.next = m.bySubject[s]
		m.bySubject[s] = e
	}
	m.schedule(e, now)
}

// schedule puts an entry that is in no heap and no line where its time says.
func (m *memory) schedule(e *entry, now time.Time) {
	if e.due.After(now) {
		e.state = waiting
		heap.Push(&m.waiting, e)
		return
	}
	m.makeReady(e)
}

func (m *memory) makeReady(e *entry) {
	e.state = ready
	k := e.kind
	l := k.lines[e.key]
	if l == nil {
		l = &line{key: e.key}
		k.lines[e.key] = l
	}
	l.jobs.push(e)
	k.ready++
	m.ready++
	k.offer(l)
}

// offer puts a line into the ring if a worker may take from it.
func (k *kind) offer(l *line) {
	if l.inRing || l.jobs.len() == 0 {
		return
	}
	switch limit := k.limit(l.key); {
	case l.running < limit:
		l.inRing = true
		k.ring.push(l)
	case limit == 0 && !l.held:
		l.held = true
		k.held = append(k.held, l)
	}
}

// release offers the lines that were held once more.
func (k *kind) release() {
	held := k.held
	k.held = held[:0] // what is held again is written behind what is read
	for _, l := range held {
		l.held = false
		k.offer(l)
	}
}

// takes says whether this node can do such jobs now.
func (k *kind) takes() bool { return k.Takes == nil || k.Takes() }

// limit is how many jobs of one key may run at once.
func (k *kind) limit(key string) int {
	if k.PerKey == nil {
		return k.Workers
	}
	return k.PerKey(key)
}

// take gives the next job to run, going round the lines so that a long line
// does not hold up a short one. It is nil when none may run.
func (m *memory) take(k *kind) *entry {
	for {
		l, ok := k.ring.pop()
		if !ok {
			return nil
		}
		l.inRing = false
		if l.running >= k.limit(l.key) {
			k.offer(l) // when one of it ends, or when it is held no longer
			continue
		}
		for {
			e, ok := l.jobs.pop()
			if !ok {
				k.sweep(l)
				break
			}
			if e.state != ready {
				continue // finished while it stood in line
			}
			e.state = running
			k.ready--
			m.ready--
			m.running++
			l.running++
			k.offer(l)
			return e
		}
	}
}

// ended says that the handler of e returned.
func (m *memory) ended(e *entry) {
	m.running--
	l := e.kind.lines[e.key]
	l.running--
	e.kind.offer(l)
	e.kind.sweep(l)
}

// first gives the job of the line that has been ready for longest.
func (l *line) first() *entry {
	for _, e := range l.jobs.items[l.jobs.head:] {
		if e.state == ready {
			return e
		}
	}
	return nil
}

// sweep forgets a line that nobody uses.
func (k *kind) sweep(l *line) {
	if l.running == 0 && !l.inRing && l.jobs.len() == 0 {
		delete(k.lines, l.key)
	}
}

// due moves the entries whose time has come into their lines.
func (m *memory) due(now time.Time) {
	for len(m.waiting) > 0 && !m.waiting[0].due.After(now) {
		m.makeReady(heap.Pop(&m.waiting).(*entry))
	}
}

// next is when there is something to do again, if at all: a job is due, or a
// line that is held may be no longer.
func (m *memory) next(now time.Time) (at time.Time, ok bool) {
	if len(m.waiting) > 0 {
		at, ok = m.waiting[0].due, true
	}
	if again := now.Add(heldFor); m.held() && (!ok || again.Before(at)) {
		at, ok = again, true
	}
	return at, ok
}

// held says whether there are lines that are held.
func (m *memory) held() bool {
	for _, k := range m.kinds {
		if len(k.held) > 0 {
			return true
		}
	}
	return false
}

// idle says whether nothing runs and nothing may be taken.
func (m *memory) idle() bool {
	if m.running > 0 {
		return false
	}
	if m.ready == 0 {
		return true
	}
	for _, k := range m.kinds {
		if k.ring.len() > 0 {
			return false
		}
	}
	return true
}

// unschedule takes an entry out of heap or line. One in a line stays there as
// a husk that take passes over.
func (m *memory) unschedule(e *entry) {
	switch e.state {
	case waiting:
		heap.Remove(&m.waiting, e.index)
	case ready:
		e.kind.ready--
		m.ready--
	}
	e.state = gone
}

// forget drops an entry. A running one is only taken off the books.
func (m *memory) forget(e *entry) {
	if e.state != running {
		m.unschedule(e)
	}
	delete(m.byID, e.job.ID)
	s := e.job.Subject
	if s == "" {
		return
	}
	if m.bySubject[s] == e {
		if e.next == nil {
			delete(m.bySubject, s)
		} else {
			m.bySubject[s] = e.next
		}
		return
	}
	for p := m.bySubject[s]; p != nil; p = p.next {
		if p.next == e {
			p.next = e.next
			return
		}
	}
}

// move gives an entry that is not running a new time.
func (m *memory) move(e *entry, due, now time.Time) {
	if e.state == ready && !due.After(now) {
		return
	}
	m.unschedule(e)
	e.due = due
	m.schedule(e, now)
}

// wake makes the jobs of a subject run now and says whether there were any.
func (m *memory) wake(subject string, now time.Time) bool {
	first := m.bySubject[subject]
	for e := first; e != nil; e = e.next {
		switch e.state {
		case waiting:
			e.moved = true
			m.move(e, now, now)
		case running:
			e.woken = true
		}
	}
	return first != nil
}

// shift moves the times of all entries by as much, so that their order stays.
func (m *memory) shift(by time.Duration) {
	for _, e := range m.byID {
		e.shift(by)
	}
	for _, ghost := range m.ghosts {
		if ghost.heir != nil {
			ghost.heir.shift(by)
		}
	}
}

func (e *entry) shift(by time.Duration) { e.due, e.moved = e.due.Add(by), true }

// drop empties the memory of an epoch that is over. What is running goes on as
// a ghost, whose outcome counts for nothing.
func (m *memory) drop() {
	for _, ghost := range m.ghosts {
		ghost.heir = nil
	}
	for _, e := range m.byID {
		if e.state == running {
			e.lost = true
			m.ghosts[e.job.ID] = e
			continue
		}
		m.unschedule(e)
		e.kind.leave(e.job)
	}
	m.byID = map[string]*entry{}
	m.bySubject = map[string]*entry{}
	m.waiting = nil
}

// leave tells that a job is not in memory any more.
func (k *kind) leave(j Job) {
	if k.Left != nil {
		k.Left(j)
	}
}

// furthest gives up to n waiting entries that are due after horizon, those
// that are due last first.
func (m *memory) furthest(n int, horizon time.Time) []*entry {
	var last nearestHeap
	for _, e := range m.waiting {
		if !e.due.After(horizon) {
			continue
		}
		heap.Push(&last, e)
		if len(last) > n {
			heap.Pop(&last)
		}
	}
	return last
}

// waitingHeap is a heap by due time that knows where each entry is.
type waitingHeap []*entry

func (h waitingHeap) Len() int           { return len(h) }
func (h waitingHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h waitingHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waitingHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *waitingHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// nearestHeap is a heap by due time that leaves the entries' own indexes alone.
type nearestHeap []*entry

func (h nearestHeap) Len() int           { return len(h) }
func (h nearestHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h nearestHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nearestHeap) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *nearestHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// fifo is a queue in one slice.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(item T) {
	if f.head > 32 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
}

func (f *fifo[T]) pop() (item T, ok bool) {
	if f.len() == 0 {
		return item, false
	}
	var none T
	item, f.items[f.head] = f.items[f.head], none
	f.head++
	return item, true
}
