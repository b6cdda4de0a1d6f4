package payments

import (
	"context"
	"sync"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A railKind is what answers or is silent together: a provider has a status
// interface for each kind of payment.
type railKind struct {
	rail, mode string
	kind       book.Kind
}

func railKindOf(p book.Payment) railKind { return railKind{p.Rail, p.Mode, p.Kind} }

// asksPerRail is how many questions of one rail a node asks at once. Those that the
// rail does not answer leave room for what is to be sent.
const asksPerRail = 128

// questionLines bound how many status questions one rail is asked at once,
// of every caller, and know which open payments wait for a rail that is silent.
type questionLines struct {
	mu    sync.Mutex
	rails map[book.RailName]chan struct{}
	// silent has the open payments of this node whose last question got no
	// answer.
	silent map[railKind]map[string]struct{}
}

// enter takes a place in the line of a rail's questions; leave gives it back.
func (q *questionLines) enter(ctx context.Context, r provider.Rail) (leave func(), err error) {
	name := book.RailName{Provider: r.Name, Mode: r.Mode}
	q.mu.Lock()
	if q.rails == nil {
		q.rails = map[book.RailName]chan struct{}{}
	}
	line := q.rails[name]
	if line == nil {
		line = make(chan struct{}, asksPerRail)
		q.rails[name] = line
	}
	q.mu.Unlock()
	select {
	case line <- struct{}{}:
		return func() { <-line }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// heard notes whether a question about an open payment was answered. The first
// answer after silence gives the payments that wait for one.
func (q *questionLines) heard(of railKind, id string, answer bool) (waiting []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	there := q.silent[of]
	if answer {
		delete(there, id)
		for other := range there {
			waiting = append(waiting, other)
		}
		delete(q.silent, of)
		return waiting
	}
	if there == nil {
		if q.silent == nil {
			q.silent = map[railKind]map[string]struct{}{}
		}
		there = map[string]struct{}{}
		q.silent[of] = there
	}
	there[id] = struct{}{}
	return nil
}

// forget drops a payment that this node does not follow any more.
func (q *questionLines) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, there := range q.silent {
		delete(there, id)
	}
}

// unanswered counts the open payments that wait for an answer, by rail.
func (q *questionLines) unanswered() map[book.RailName]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := map[book.RailName]int{}
	for of, there := range q.silent {
		count[book.RailName{Provider: of.rail, Mode: of.mode}] += len(there)
	}
	return count
}
