// Package groupcommit commits requests in groups. While a Committer runs one batch, new requests wait for the next
// batch. A single request runs at once; there is no timer that delays it. A batch that fails runs again. If it fails
// again, it is halved until the failing request runs alone and gets its error. Requests with the key of that request
// (its tenant) then run alone for a while. Group commits only save time. Correctness must not depend on them: each
// request must be correct when it runs alone.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Verdict is the result of one request.
type Verdict[Res any] struct {
	Value Res
	Err   error
}

// Options configure a Committer. Zero values select the defaults.
type Options struct {
	MaxRequests int           // maximum number of requests in one batch; default 256
	MaxRows     int           // maximum number of rows in one batch; default 2000. A larger request runs alone
	Timeout     time.Duration // maximum time of one batch; default 60 s
	MaxBulkRows int           // maximum number of rows in one batch of DoBulk; default MaxRows
	// Systemic reports whether an error concerns no single request, such as a lost database. All requests of the
	// batch get it, and the batch is not split.
	Systemic func(error) bool
	// Unsure is the error of a request whose ctx ends while its batch runs. The batch continues. If Unsure is nil,
	// the request waits for its result, however long that takes.
	Unsure error
}

// ErrClosed is the error of requests after Close.
var ErrClosed = errors.New("groupcommit: closed")

const (
	// aloneFor is the number of requests of a key that must succeed alone, after one has failed, before they join
	// batches again.
	aloneFor = 8
	// alonesKept is the maximum number of keys whose requests run alone.
	alonesKept = 1024
	// bulkTurn: one of this number of batches is bulk work while other requests wait.
	bulkTurn = 8
)

// Committer runs batches one at a time. It is safe for concurrent use.
type Committer[Req, Res any] struct {
	options Options
	run     func(context.Context, []Req) ([]Verdict[Res], error)

	mu      sync.Mutex
	queue   []*request[Req, Res]
	working bool
	closed  bool
	idle    chan struct{} // closed when a closed Committer has no requests left
	alone   map[string]int
	turns   int // batches of other work since the last batch of bulk work
}

type request[Req, Res any] struct {
	key  string
	rows int
	bulk bool
	req  Req
	done chan Verdict[Res]
}

// New returns a Committer. run is called with at least one request and must return one verdict for each, in order. If
// run returns an error, the batch must have had no effect, or run must recognize its earlier work when it runs again.
func New[Req, Res any](o Options, run func(context.Context, []Req) ([]Verdict[Res], error)) *Committer[Req, Res] {
	if o.MaxRequests <= 0 {
		o.MaxRequests = 256
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 2000
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.MaxBulkRows <= 0 {
		o.MaxBulkRows = o.MaxRows
	}
	if o.Systemic == nil {
		o.Systemic = func(error) bool { return false }
	}
	return &Committer[Req, Res]{options: o, run: run, idle: make(chan struct{}), alone: map[string]int{}}
}

// Do runs r in a batch and returns its result. key identifies the request's owner. rows is the number of rows that
// the request writes. If ctx ends before the batch begins, the request is removed. Once the batch runs, Do waits for
// the result, or returns Options.Unsure if ctx ends.
func (l *Committer[Req, Res]) Do(ctx context.Context, key string, rows int, r Req) (Res, error) {
	return l.Queue(ctx, key, rows, r)()
}

// DoBulk is Do for bulk work, which no client waits for. It runs in separate batches of at most MaxBulkRows rows. While
// other requests wait, one of eight batches is bulk work.
func (l *Committer[Req, Res]) DoBulk(ctx context.Context, key string, rows int, r Req) (Res, error) {
	return l.queueAs(ctx, true, key, rows, r)()
}

// Queue is Do in two steps. When Queue returns, r is queued behind earlier requests. wait returns its verdict, and is
// called once.
func (l *Committer[Req, Res]) Queue(ctx context.Context, key string, rows int, r Req) (wait func() (Res, error)) {
	return l.queueAs(ctx, false, key, rows, r)
}

func (l *Committer[Req, Res]) queueAs(ctx context.Context, bulk bool, key string, rows int, r Req) (wait func() (Res, error)) {
	none := func(err error) func() (Res, error) {
		return func() (res Res, _ error) { return res, err }
	}
	if err := ctx.Err(); err != nil {
		return none(err)
	}
	q := &request[Req, Res]{key: key, rows: rows, bulk: bulk, req: r, done: make(chan Verdict[Res], 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return none(ErrClosed)
	}
	l.queue = append(l.queue, q)
	if !l.working {
		l.working = true
		go l.work()
	}
	return func() (Res, error) { return l.wait(ctx, q) }
}

func (l *Committer[Req, Res]) wait(ctx context.Context, q *request[Req, Res]) (none Res, _ error) {
	select {
	case v := <-q.done:
		return v.Value, v.Err
	case <-ctx.Done():
	}
	if l.withdraw(q) {
		return none, ctx.Err()
	}
	if l.options.Unsure != nil {
		select {
		case v := <-q.done:
			return v.Value, v.Err
		default:
			return none, l.options.Unsure
		}
	}
	v := <-q.done
	return v.Value, v.Err
}

// Waiting returns the number of requests that wait for their batch.
func (l *Committer[Req, Res]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// Close refuses new requests and waits for the queued and running ones.
func (l *Committer[Req, Res]) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if !l.working {
			close(l.idle)
		}
	}
	l.mu.Unlock()
	<-l.idle
}

func (l *Committer[Req, Res]) withdraw(q *request[Req, Res]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.queue {
		if w == q {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			return true
		}
	}
	return false
}

// work runs batches until no request waits.
func (l *Committer[Req, Res]) work() {
	for {
		l.mu.Lock()
		batch := l.gatherLocked()
		if len(batch) == 0 {
			l.working = false
			if l.closed {
				close(l.idle)
			}
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.settle(batch)
	}
}

// gatherLocked removes and returns the next batch: waiting requests in order, up to the limits. A request of a key
// that must run alone forms a batch of its own when it is first. Otherwise it keeps waiting.
func (l *Committer[Req, Res]) gatherLocked() []*request[Req, Res] {
	if len(l.queue) == 0 {
		return nil
	}
	bulk, most := l.turnLocked(), l.options.MaxRows
	if bulk {
		most = l.options.MaxBulkRows
	}
	n := slices.IndexFunc(l.queue, func(q *request[Req, Res]) bool { return q.bulk == bulk })
	if first := l.queue[n]; l.alone[first.key] > 0 {
		l.queue = slices.Delete(l.queue, n, n+1)
		return []*request[Req, Res]{first}
	}
	batch := make([]*request[Req, Res], 0, min(len(l.queue), l.options.MaxRequests))
	left := l.queue[:0:0]
	rows := 0
	for i, q := range l.queue {
		full := len(batch) >= l.options.MaxRequests || q.bulk == bulk && len(batch) > 0 && rows+q.rows > most
		if full {
			left = append(left, l.queue[i:]...)
			break
		}
		if q.bulk != bulk || l.alone[q.key] > 0 {
			left = append(left, q)
			continue
		}
		batch = append(batch, q)
		rows += q.rows
	}
	l.queue = left
	return batch
}

// turnLocked reports whether the next batch is of bulk work.
func (l *Committer[Req, Res]) turnLocked() bool {
	others := slices.ContainsFunc(l.queue, func(q *request[Req, Res]) bool { return !q.bulk })
	waits := slices.ContainsFunc(l.queue, func(q *request[Req, Res]) bool { return q.bulk })
	if !others || waits && l.turns >= bulkTurn-1 {
		l.turns = 0
		return true
	}
	if waits {
		l.turns++
	}
	return false
}

// settle runs a batch and answers every request of it.
func (l *Committer[Req, Res]) settle(batch []*request[Req, Res]) {
	verdicts, err := l.try(batch)
	if err != nil && !l.options.Systemic(err) {
		verdicts, err = l.try(batch)
	}
	switch {
	case err == nil:
		for i, q := range batch {
			q.done <- verdicts[i]
		}
		if len(batch) == 1 {
			l.heal(batch[0].key)
		}
	case len(batch) == 1:
		if !l.options.Systemic(err) {
			l.poison(batch[0].key)
		}
		batch[0].done <- Verdict[Res]{Err: err}
	case l.options.Systemic(err):
		for _, q := range batch {
			q.done <- Verdict[Res]{Err: err}
		}
	default:
		half := len(batch) / 2
		l.settle(batch[:half])
		l.settle(batch[half:])
	}
}

// try runs a batch once. It converts a panic to an error, so that the request that causes the panic is found by
// halving, too.
func (l *Committer[Req, Res]) try(batch []*request[Req, Res]) (verdicts []Verdict[Res], err error) {
	defer func() {
		if p := recover(); p != nil {
			verdicts, err = nil, fmt.Errorf("groupcommit: panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Timeout)
	defer cancel()
	requests := make([]Req, len(batch))
	for i, q := range batch {
		requests[i] = q.req
	}
	verdicts, err = l.run(ctx, requests)
	if err == nil && len(verdicts) != len(batch) {
		err = fmt.Errorf("groupcommit: %d verdicts for %d requests", len(verdicts), len(batch))
	}
	return verdicts, err
}

func (l *Committer[Req, Res]) poison(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.alone) >= alonesKept {
		clear(l.alone)
	}
	l.alone[key] = aloneFor
}

func (l *Committer[Req, Res]) heal(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.alone[key]; n > 1 {
		l.alone[key] = n - 1
	} else if n == 1 {
		delete(l.alone, key)
	}
}
