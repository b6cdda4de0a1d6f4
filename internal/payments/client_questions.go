package payments

import "sync"

// askedKept bounds the memory of questions that clients caused.
const askedKept = 10_000

// clientQuestions are the payments that were asked about for a client within the last
// hintTime.
type clientQuestions struct {
	mu     sync.Mutex
	recent map[string]struct{} // the payments in queue
	queue  []clientQuestion    // oldest first
}

type clientQuestion struct {
	id string
	at moment
}

// may says whether a payment may be asked about for a client now: at most once
// in hintTime, and never while askedKept others were. Each payment enters and
// leaves the queue once, so a flood of different ones costs each call no more
// than a single one does.
func (q *clientQuestions) may(id string, now moment) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && now.Sub(q.queue[0].at) >= hintTime {
		delete(q.recent, q.queue[0].id)
		q.queue = q.queue[1:]
	}
	if _, ok := q.recent[id]; ok || len(q.queue) >= askedKept {
		return false
	}
	if q.recent == nil {
		q.recent = map[string]struct{}{}
	}
	q.recent[id] = struct{}{}
	q.queue = append(q.queue, clientQuestion{id, now})
	return true
}
