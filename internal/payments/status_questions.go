package payments

import (
	"context"
	"sync"
	"time"

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

// answersSomething says whether a provider answered a question, whatever it
// said.
func answersSomething(o provider.Outcome) bool {
	return o.Class == provider.Accepted || o.NotFound || o.Reason == provider.ReasonMismatch
}

// ask asks the payment's rail what became of it. An answer that speaks of
// another payment comes back as Unknown with ReasonMismatch. A question that is
// cut short does no harm: ctx bounds it, and askTime from the moment at which it
// has its place in the line.
func (p *Payments) ask(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	leave, err := p.questions.enter(ctx, rail)
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
	p.metrics.asked(pay, answersSomething(o))
	return o
}

// question makes the call.
func question(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	r := provider.StatusRequest{
		ProviderReference: pay.AttemptReference, UpstreamID: pay.UpstreamID, Amount: pay.Gross(),
		MSISDN: pay.MSISDN(), SentAt: sentSince(pay, rail),
	}
	if pay.Channel == book.ChannelBank {
		r.Account = pay.Account
	}
	switch {
	case pay.Kind == book.KindCollection && rail.Collector != nil:
		return rail.Collector.CollectStatus(ctx, r)
	case pay.Kind == book.KindPayout && rail.Disburser != nil:
		return rail.Disburser.DisburseStatus(ctx, r)
	case pay.Kind == book.KindTopUp && rail.TopUpper != nil:
		return rail.TopUpper.TopUpStatus(ctx, r)
	case pay.Kind == book.KindBundle && rail.Bundles != nil:
		return rail.Bundles.BundleStatus(ctx, r)
	}
	return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "the rail cannot be asked about this"}
}

// sentSince is when a payment may first have left for its rail.
func sentSince(pay book.Payment, rail provider.Rail) time.Time {
	if !pay.SendingAt.IsZero() && !rail.MayRepeat { // it may have waited long for its provider
		return pay.SendingAt
	}
	return pay.CreatedAt
}

// requery asks for an open payment on behalf of a client that waits (checkstatus),
// at most once in two seconds for one payment and within ctx, and settles what
// the judge says is final. It answers the row as it is afterwards, or as it was.
func (p *Payments) requery(ctx context.Context, pay book.Payment) (book.Payment, error) {
	if pay.Status != book.StatusPending || !p.live.asked.may(pay.ID, p.clock.Now()) {
		return pay, nil
	}
	rail, ok := p.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return pay, nil
	}
	o := p.ask(ctx, rail, pay)
	s := standingOf(pay, rail)
	s.recovering = p.firstOfRecovery(ctx, rail)
	_, v, reason := judge(s, report{fromQuestion, o, p.clock.Now()})
	if v != verdictPaid && v != verdictRefund {
		return pay, nil
	}
	done, err := p.book.Settle(ctx, final(pay, v, reason, o))
	if err != nil {
		return pay, err
	}
	return done.Payment, nil
}
