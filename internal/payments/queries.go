package payments

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/trace"
)

// answersSomething reports whether a provider answered a query in any way.
func answersSomething(o provider.Outcome) bool {
	return o.Class == provider.Accepted || o.NotFound || o.Reason == provider.ReasonMismatch
}

const (
	queryTimeout = 3 * time.Second // maximum time of a provider's answer to a query
	hintTime     = 2 * time.Second // minimum time between early queries of one payment by callbacks or clients
)

// about returns a context with the payment's trace, for calls to its provider.
func about(ctx context.Context, pay book.Payment) context.Context {
	return trace.With(provider.About(ctx, pay.ID), pay.Details.Trace)
}

// status queries the payment's rail for its status. It returns Unknown with ReasonMismatch if the answer is about
// another payment. Cancelling ctx has no effect on the payment. queryTimeout starts after the wait in the rail's
// line.
func (q *queries) status(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	leave, err := q.enter(ctx, rail)
	if err != nil {
		return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "too many status queries are running"}
	}
	defer leave()
	ctx, cancel := context.WithTimeout(about(ctx, pay), queryTimeout)
	defer cancel()
	o := queryStatus(ctx, rail, pay)
	if o.Class != provider.Accepted {
		o.Class = provider.Unknown // a failed query proves nothing about the payment
	} else if provider.Mismatch(o, provider.Expect{Reference: pay.AttemptReference, Amount: pay.Gross(), Party: pay.Account}) {
		o = provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message, UpstreamID: o.UpstreamID}
	}
	q.metrics.queried(pay, answersSomething(o))
	return o
}

// queryStatus makes the call.
func queryStatus(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	r := provider.StatusRequest{
		ProviderReference: pay.AttemptReference, Amount: pay.Gross(),
		MSISDN: pay.MSISDN(), Collected: pay.Details.Collected, SentAt: sentSince(pay, rail),
	}
	if pay.Channel == book.ChannelBank {
		r.Account = pay.Account
	}
	switch {
	case pay.Kind == book.KindCollection && rail.Collector != nil:
		return rail.Collector.CollectStatus(ctx, r)
	case pay.RefundWay == book.RefundByRail && rail.Refunder != nil:
		return rail.Refunder.RefundStatus(ctx, r)
	case pay.RefundWay != book.RefundByRail && pay.Kind == book.KindPayout && rail.Disburser != nil:
		return rail.Disburser.DisburseStatus(ctx, r)
	case pay.Kind == book.KindTopUp && rail.TopUpper != nil:
		return rail.TopUpper.TopUpStatus(ctx, r)
	case pay.Kind == book.KindBundle && rail.Bundles != nil:
		return rail.Bundles.BundleStatus(ctx, r)
	}
	return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "the provider has no status query for this"}
}

// A railKind is one status interface of a provider. A provider has one for each kind of payment.
type railKind struct {
	rail, mode string
	kind       book.Kind
}

func railKindOf(p book.Payment) railKind {
	if p.RefundWay == book.RefundByRail {
		return railKind{p.Rail, p.Mode, "refund"}
	}
	return railKind{p.Rail, p.Mode, p.Kind}
}

// queriesPerRail is the maximum number of concurrent queries of a node to one rail. It leaves capacity for
// submissions when a rail does not answer.
const queriesPerRail = 128

// queries makes the status queries of every caller. It limits concurrent queries by rail, and tracks the open
// payments whose rail does not answer.
type queries struct {
	metrics metrics

	mu    sync.Mutex
	rails map[book.RailName]chan struct{}
	// silent has the open payments of this node whose last query was not answered.
	silent map[railKind]map[string]struct{}
}

// enter waits for a place among the concurrent queries of a rail. leave returns the place.
func (q *queries) enter(ctx context.Context, r provider.Rail) (leave func(), err error) {
	name := book.RailName{Provider: r.Name, Mode: r.Mode}
	q.mu.Lock()
	if q.rails == nil {
		q.rails = map[book.RailName]chan struct{}{}
	}
	line := q.rails[name]
	if line == nil {
		line = make(chan struct{}, queriesPerRail)
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

// record stores whether a query about an open payment was answered. After the first answer of a rail that was silent,
// it returns the payments that wait for an answer.
func (q *queries) record(of railKind, id string, answer bool) (waiting []string) {
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

// forget removes a payment that this node no longer follows.
func (q *queries) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, there := range q.silent {
		delete(there, id)
	}
}

// unanswered returns the number of open payments that wait for an answer, by rail.
func (q *queries) unanswered() map[book.RailName]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := map[book.RailName]int{}
	for of, there := range q.silent {
		count[book.RailName{Provider: of.rail, Mode: of.mode}] += len(there)
	}
	return count
}

// maxClientQueries limits the number of payments that clientQueries remembers.
const maxClientQueries = 10_000

// clientQueries are the payments queried for clients within the last hintTime.
type clientQueries struct {
	mu     sync.Mutex
	recent map[string]struct{} // the payments in queue
	queue  []clientQuery       // oldest first
}

type clientQuery struct {
	id string
	at moment
}

// allow reports whether a payment may be queried for a client now. A payment may be queried once in hintTime, and
// only while fewer than maxClientQueries are recent. Each payment enters and leaves the queue once. So the cost of a
// call is constant even in a flood of requests.
func (q *clientQueries) allow(id string, now moment) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && now.Sub(q.queue[0].at) >= hintTime {
		delete(q.recent, q.queue[0].id)
		q.queue = q.queue[1:]
	}
	if _, ok := q.recent[id]; ok || len(q.queue) >= maxClientQueries {
		return false
	}
	if q.recent == nil {
		q.recent = map[string]struct{}{}
	}
	q.recent[id] = struct{}{}
	q.queue = append(q.queue, clientQuery{id, now})
	return true
}
