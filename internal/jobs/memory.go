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
	tenant  *tenant
	turn    *turn     // while ready or running
	share   *share    // while running: where it is counted
	created int64     // microseconds
	due     time.Time // when it runs; equal to the row's run_at unless moved
	state   state
	moved   bool      // due was changed in memory only
	begun   bool      // a handler has had it
	since   time.Time // running: of periodic work, by the machine's clock
	woken   bool      // while running: run again at once
	decided bool      // while running: a transaction finished or postponed it
	lost    bool      // while running: the epoch that owned it is over
	index   int       // in the heap
	next    *entry    // another entry of the same subject
	heir    *entry    // lost: the same job under our new epoch
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
	e.tenant = e.kind.tenant(e.job)
	e.tenant.pending++
	if s := e.job.Subject; s != "" {
		e.next = m.bySubject[s]
		m.bySubject[s] = e
	}
	m.schedule(e, now)
}

// schedule puts an entry that is in no heap and no line where its time says.
func (m *memory) schedule(e *entry, now time.Time) {
	e.kind.postpone(e, now)
	if e.due.After(now) {
		e.state = waiting
		heap.Push(&m.waiting, e)
		return
	}
	m.makeReady(e)
}

// due moves the entries whose time has come into their lines.
func (m *memory) due(now time.Time) {
	for len(m.waiting) > 0 && !m.waiting[0].due.After(now) {
		m.schedule(heap.Pop(&m.waiting).(*entry), now)
	}
}

// next is when the next job is due, if there is one.
func (m *memory) next() (at time.Time, ok bool) {
	if len(m.waiting) == 0 {
		return time.Time{}, false
	}
	return m.waiting[0].due, true
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
	e.leaves()
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

// wake makes the jobs of a subject run now, or the job with the id that has none,
// and says whether there were any.
func (m *memory) wake(subject string, now time.Time) bool {
	first := m.bySubject[subject]
	if e := m.byID[subject]; first == nil && e != nil && e.job.Subject == "" {
		first = e
	}
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

// drop empties the memory of an epoch that is over. A job that runs goes on as a ghost, whose
// outcome counts for nothing.
func (m *memory) drop() {
	for _, ghost := range m.ghosts {
		ghost.heir = nil
	}
	for _, e := range m.byID {
		e.leaves()
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

// fifoKept is how long the slice of an empty queue may be that is used again.
const fifoKept = 64

// emptied gives an empty queue in the same slice.
func (f *fifo[T]) emptied() fifo[T] {
	if cap(f.items) > fifoKept {
		return fifo[T]{}
	}
	clear(f.items)
	return fifo[T]{items: f.items[:0]}
}
