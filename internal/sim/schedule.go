package sim

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
)

// scheduler runs later events with one heap, one goroutine and one timer, for any number of movements. Times are
// rounded to a Grid of 10 ms. The scheduler of a busy book therefore wakes up at most a hundred times a second, not
// once for each movement.
type scheduler struct {
	clock *clock.Clock
	mu    sync.Mutex
	waits waits
	seq   uint64
	busy  bool
	still *sync.Cond // signalled when nothing is due
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

// Grid is the step to which distant times are rounded.
const Grid = 10 * time.Millisecond

type waiting struct {
	due time.Time
	seq uint64
	do  func()
}

func newScheduler(c *clock.Clock) *scheduler {
	q := &scheduler{clock: c, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	q.still = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// after runs do after d has passed, and never before the caller releases its locks. Events with the same due time run
// in the order in which they were added.
func (q *scheduler) after(d time.Duration, do func()) { q.at(q.clock.Now().Add(d), do) }

func (q *scheduler) at(due time.Time, do func()) {
	if due.Sub(q.clock.Now()) > 10*Grid {
		due = due.Truncate(Grid)
	}
	q.mu.Lock()
	q.seq++
	heap.Push(&q.waits, waiting{due, q.seq, do})
	first := q.waits[0].seq == q.seq
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

func (q *scheduler) run() {
	defer close(q.done)
	for {
		due, next := q.take()
		for _, do := range due {
			do()
		}
		if len(due) > 0 {
			continue
		}
		var timer *clock.Timer
		var fired <-chan struct{}
		if !next.IsZero() {
			timer = q.clock.TimerAt(next)
			fired = timer.C
		}
		select {
		case <-fired:
		case <-q.wake:
		case <-q.stop:
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-q.stop:
			return
		default:
		}
	}
}

// take removes and returns the due events, or returns the time of the next event.
func (q *scheduler) take() (due []func(), next time.Time) {
	now := q.clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waits) > 0 && !q.waits[0].due.After(now) {
		due = append(due, heap.Pop(&q.waits).(waiting).do)
	}
	q.busy = len(due) > 0
	if !q.busy {
		q.still.Broadcast()
	}
	if len(q.waits) > 0 {
		next = q.waits[0].due
	}
	return due, next
}

func (q *scheduler) idleLocked() bool {
	return !q.busy && (len(q.waits) == 0 || q.waits[0].due.After(q.clock.Now()))
}

// Idle reports whether nothing is due.
func (q *scheduler) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idleLocked()
}

// Quiet waits until nothing is due.
func (q *scheduler) Quiet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.still.Broadcast()
	})()
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.idleLocked() && ctx.Err() == nil {
		q.still.Wait()
	}
	return ctx.Err()
}

// Close stops the scheduler and drops its events.
func (q *scheduler) Close() {
	close(q.stop)
	<-q.done
}

// waits is a heap of events by due time, and then by the order in which they were added.
type waits []waiting

func (h waits) Len() int { return len(h) }
func (h waits) Less(i, j int) bool {
	return h[i].due.Before(h[j].due) || h[i].due.Equal(h[j].due) && h[i].seq < h[j].seq
}
func (h waits) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *waits) Push(x any)   { *h = append(*h, x.(waiting)) }
func (h *waits) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = waiting{}
	*h = (*h)[:last]
	return w
}
