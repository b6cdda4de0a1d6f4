package payments

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// answersSomething says whether a provider answered a question, whatever it
// said.
func answersSomething(o provider.Outcome) bool {
	return o.Class == provider.Accepted || o.NotFound || o.Reason == provider.ReasonMismatch
}

const (
	askTime  = 3 * time.Second // what a provider may take to answer a question
	hintTime = 2 * time.Second // how often a callback, or a client, brings a question about one payment forward at most
)

// ask asks the payment's rail what became of it. An answer that speaks of
// another payment comes back as Unknown with ReasonMismatch. A question that is
// cut short does no harm: ctx bounds it, and askTime from the moment at which it
// has its place in the line.
func (q *questions) ask(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	leave, err := q.enter(ctx, rail)
	if err != nil {
		return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "no place in the line of questions in time"}
	}
	defer leave()
	ctx, cancel := context.WithTimeout(provider.About(ctx, pay.ID), askTime)
	defer cancel()
	o := question(ctx, rail, pay)
	if o.Class != provider.Accepted {
		o.Class = provider.Unknown // a question proves nothing about the payment
	} else if provider.Mismatch(o, provider.Expect{Reference: pay.AttemptReference, Amount: pay.Gross(), Party: pay.Account}) {
		o = provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message, UpstreamID: o.UpstreamID}
	}
	q.metrics.asked(pay, answersSomething(o))
	return o
}

// question makes the call.
func question(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	r := provider.StatusRequest{
		ProviderReference: pay.AttemptReference, Amount: pay.Gross(),
		MSISDN: pay.MSISDN(), SentAt: sentSince(pay, rail),
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
	return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "the rail cannot be asked about this"}
}

// A railKind is what answers or is silent together: a provider has a status
// interface for each kind of payment.
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

// asksPerRail is how many questions of one rail a node asks at once. Those that the
// rail does not answer leave room for what is to be sent.
const asksPerRail = 128

// questions asks rails for the status of payments, of every caller. It bounds how many questions one rail has at once, and
// keeps which open payments wait for a rail that is silent.
type questions struct {
	metrics metrics

	mu    sync.Mutex
	rails map[book.RailName]chan struct{}
	// silent has the open payments of this node whose last question got no
	// answer.
	silent map[railKind]map[string]struct{}
}

// enter takes a place in the line of a rail's questions; leave gives it back.
func (q *questions) enter(ctx context.Context, r provider.Rail) (leave func(), err error) {
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
func (q *questions) heard(of railKind, id string, answer bool) (waiting []string) {
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
func (q *questions) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, there := range q.silent {
		delete(there, id)
	}
}

// unanswered counts the open payments that wait for an answer, by rail.
func (q *questions) unanswered() map[book.RailName]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := map[book.RailName]int{}
	for of, there := range q.silent {
		count[book.RailName{Provider: of.rail, Mode: of.mode}] += len(there)
	}
	return count
}

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
