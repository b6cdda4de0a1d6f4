// Package scheduler decides which job of a node runs next. It is pure: it has no database, no clock and no
// goroutines. Its caller reports events with the elapsed time, and asks for decisions. Concurrent callers need a lock
// around it.
//
// All times are elapsed times since the caller began. So a pause keeps its length when the wall clock is set.
//
// Files:
//
//	scheduler.go   the jobs in memory: by id, by subject, by time; their events
//	heaps.go       jobs in the order in which they are due
//	lines.go       lines within a kind, with their limits, and fair turns of tenants within a line
//	fifo.go        a queue in one slice
package scheduler

import (
	"container/heap"
	"iter"
	"maps"
	"time"
)

// Scheduler has the jobs of one epoch: a heap by time, and for each kind the lines of due jobs. J is the caller's
// data about a job.
type Scheduler[J any] struct {
	byID      map[string]*Entry[J]
	bySubject map[string]*Entry[J]
	waiting   waitingHeap[J]
	kinds     []*Kind[J]
	ready     int
	running   int
	ghosts    map[string]*Entry[J] // running jobs of earlier epochs, by id
}

// New returns a scheduler without jobs.
func New[J any]() *Scheduler[J] {
	return &Scheduler[J]{byID: map[string]*Entry[J]{}, bySubject: map[string]*Entry[J]{}, ghosts: map[string]*Entry[J]{}}
}

// Kind adds a kind of jobs with its own rules.
func (s *Scheduler[J]) Kind(r Rules) *Kind[J] {
	k := &Kind[J]{Rules: r, lines: map[string]*line[J]{}, tenants: map[string]*tenant{}}
	s.kinds = append(s.kinds, k)
	return k
}

// Len returns the number of jobs.
func (s *Scheduler[J]) Len() int { return len(s.byID) }

// Ready returns the number of due jobs that wait for a worker or their turn.
func (s *Scheduler[J]) Ready() int { return s.ready }

// Running returns the number of running jobs, including jobs of earlier epochs.
func (s *Scheduler[J]) Running() int { return s.running }

// Find returns the job with an id, or nil.
func (s *Scheduler[J]) Find(id string) *Entry[J] { return s.byID[id] }

// All iterates over all jobs.
func (s *Scheduler[J]) All() iter.Seq[*Entry[J]] { return maps.Values(s.byID) }

// Put adds a job whose id is not in the scheduler.
func (s *Scheduler[J]) Put(k *Kind[J], e *Entry[J], now time.Duration) {
	e.kind = k
	if ghost := s.ghosts[e.ID]; ghost != nil {
		// The handler of an earlier epoch still runs the job here. The job is added when that handler returns.
		e.state, ghost.heir = gone, e
		return
	}
	s.byID[e.ID] = e
	e.tenant = k.tenantOf(e.Tenant)
	e.tenant.pending++
	if e.Subject != "" {
		e.next = s.bySubject[e.Subject]
		s.bySubject[e.Subject] = e
	}
	s.schedule(e, now)
}

// schedule adds an entry to the heap, or to its line if it is due.
func (s *Scheduler[J]) schedule(e *Entry[J], now time.Duration) {
	if e.Due > now {
		e.state = waiting
		heap.Push(&s.waiting, e)
		return
	}
	e.state = ready
	s.ready++
	e.kind.add(e)
}

// Advance moves due jobs from the heap to their lines.
func (s *Scheduler[J]) Advance(now time.Duration) {
	for len(s.waiting) > 0 && s.waiting[0].Due <= now {
		s.schedule(heap.Pop(&s.waiting).(*Entry[J]), now)
	}
}

// Next returns when the next job of the heap is due.
func (s *Scheduler[J]) Next() (at time.Duration, ok bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	return s.waiting[0].Due, true
}

// Idle reports whether no job runs and no job may be taken.
func (s *Scheduler[J]) Idle() bool {
	if s.running > 0 {
		return false
	}
	if s.ready == 0 {
		return true
	}
	for _, k := range s.kinds {
		if k.Offers() {
			return false
		}
	}
	return true
}

// Take removes and returns the next job of a kind to run, or nil. Lines take turns, and within a line its tenants do,
// so that a long line does not delay a short one.
func (s *Scheduler[J]) Take(k *Kind[J]) *Entry[J] {
	e := k.take()
	if e == nil {
		return nil
	}
	e.state, e.woken, e.settled = running, false, false
	s.ready--
	s.running++
	return e
}

// Standing is the state of a job whose handler has returned.
type Standing uint8

// The standings.
const (
	Kept      Standing = iota // the caller continues with Again or Forget
	Settled                   // Move set its next time while it ran; the caller continues with Again
	Finished                  // it was finished while it ran
	Lost                      // its epoch is over, and this node does not own the job
	Inherited                 // its epoch is over, and the entry of the same job in our new epoch replaces it
)

// Ended records that the handler of a taken job has returned.
func (s *Scheduler[J]) Ended(e *Entry[J], now time.Duration) Standing {
	s.running--
	e.state = gone
	e.kind.ended(e)
	switch {
	case e.lost && s.ghosts[e.ID] != e:
		return Finished
	case e.lost:
		delete(s.ghosts, e.ID)
		if e.heir == nil {
			return Lost
		}
		s.Put(e.heir.kind, e.heir, now)
		return Inherited
	case s.byID[e.ID] != e:
		return Finished
	case e.settled:
		return Settled
	}
	return Kept
}

// Again schedules a job that has ended to run at due. If Wake was called while it ran, it runs now.
func (s *Scheduler[J]) Again(e *Entry[J], due, now time.Duration) {
	e.Due = due
	if e.woken {
		e.Due = now
	}
	s.schedule(e, now)
}

// unschedule removes an entry from the heap or its line. Its ticket stays in the line and becomes invalid.
func (s *Scheduler[J]) unschedule(e *Entry[J]) {
	switch e.state {
	case waiting:
		heap.Remove(&s.waiting, e.index)
	case ready:
		s.ready--
	}
	e.state, e.turn = gone, nil
}

// Forget removes a job. A running job is removed only from the indexes, and its handler continues.
func (s *Scheduler[J]) Forget(e *Entry[J]) {
	if e.state != running {
		s.unschedule(e)
	}
	delete(s.byID, e.ID)
	e.leaves()
	if e.Subject == "" {
		return
	}
	if s.bySubject[e.Subject] == e {
		if e.next == nil {
			delete(s.bySubject, e.Subject)
		} else {
			s.bySubject[e.Subject] = e.next
		}
		return
	}
	for p := s.bySubject[e.Subject]; p != nil; p = p.next {
		if p.next == e {
			p.next = e.next
			return
		}
	}
}

// Finish removes the job with an id, because a transaction has finished it.
func (s *Scheduler[J]) Finish(id string) {
	if ghost := s.ghosts[id]; ghost != nil {
		ghost.heir = nil
	}
	if e := s.byID[id]; e != nil {
		e.settled = true
		s.Forget(e)
	}
}

// Move gives a job a new time. The next run of a running job starts at that time, whatever its handler returns.
func (s *Scheduler[J]) Move(e *Entry[J], due, now time.Duration) {
	switch {
	case e.state == running:
		e.Due, e.settled = due, true
	case e.state != ready || due > now:
		s.unschedule(e)
		e.Due = due
		s.schedule(e, now)
	}
}

// Wake makes the jobs of a subject run now. A job without a subject is woken by its id. Wake reports whether there
// was such a job.
func (s *Scheduler[J]) Wake(subject string, now time.Duration) bool {
	first := s.bySubject[subject]
	if e := s.byID[subject]; first == nil && e != nil && e.Subject == "" {
		first = e
	}
	for e := first; e != nil; e = e.next {
		switch e.state {
		case waiting:
			s.Move(e, now, now)
		case running:
			e.woken = true
		}
	}
	return first != nil
}

// Drop removes all jobs, because the epoch is over. It returns the jobs that were not running. Handlers of running
// jobs continue, but their outcomes are ignored.
func (s *Scheduler[J]) Drop() (left []*Entry[J]) {
	for _, ghost := range s.ghosts {
		ghost.heir = nil
	}
	for _, e := range s.byID {
		e.leaves()
		if e.state == running {
			e.lost = true
			s.ghosts[e.ID] = e
			continue
		}
		s.unschedule(e)
		left = append(left, e)
	}
	s.byID = map[string]*Entry[J]{}
	s.bySubject = map[string]*Entry[J]{}
	s.waiting = nil
	return left
}

// Furthest returns up to n jobs that are due after horizon. It selects those that are due last.
func (s *Scheduler[J]) Furthest(n int, horizon time.Duration) []*Entry[J] {
	var last nearestHeap[J]
	for _, e := range s.waiting {
		if e.Due <= horizon {
			continue
		}
		heap.Push(&last, e)
		if len(last) > n {
			heap.Pop(&last)
		}
	}
	return last
}

// Overdue returns, for each kind, how long its most overdue job has waited to begin.
func (s *Scheduler[J]) Overdue(now time.Duration) map[*Kind[J]]time.Duration {
	late := map[*Kind[J]]time.Duration{}
	for _, k := range s.kinds {
		late[k] = k.overdue(now)
	}
	if at, ok := s.Next(); !ok || at > now {
		return late
	}
	for _, e := range s.waiting { // due, but not moved to their lines yet
		late[e.kind] = max(late[e.kind], now-e.Due)
	}
	return late
}
