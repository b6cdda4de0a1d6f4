package messaging

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

const (
	// recordWithin is how long an answer waits for others before a step records it.
	recordWithin = time.Second
	// landedShare to one is the proportion of answered to unanswered messages that is worth a step at once.
	landedShare = 3
	// tornFor is how long the rest of a message is offered of which an operator took a part.
	tornFor = time.Minute
)

// submitter is what all flights of a node share.
type submitter struct {
	clock    *clock.Clock
	receipts *receiptBook
	metrics  metrics
	validity time.Duration
	groups   atomic.Uint32 // numbers that join the segments of a message
}

func newSubmitter(d Deps, receipts *receiptBook, counters metrics) *submitter {
	u := &submitter{clock: d.Clock, receipts: receipts, metrics: counters, validity: d.Validity}
	u.groups.Store(rand.Uint32()) //nolint:gosec // not a secret
	return u
}

// flight is what one owner of a chunk has at the operator: messages that are marked and whose ends are not recorded,
// at most sliceSize of them. They come back one by one, so that one without an answer holds up no other.
type flight struct {
	by      *submitter
	sender  provider.SMSSender
	w       *work
	encoded smstext.Message
	ctx     context.Context // its end keeps back what was not handed over
	end     context.CancelFunc

	mu       sync.Mutex
	out      map[int64]message // by number: marked, not collected
	landed   []result          // of these, what is answered
	offering int               // calls of launch whose messages are not all handed over
	offerAt  time.Duration     // when what was not taken is offered again
	failed   error             // a panic of the rail
	more     chan struct{}     // something has changed that collect waits for
}

func (u *submitter) newFlight(ctx context.Context, sender provider.SMSSender, w *work) *flight {
	f := &flight{by: u, sender: sender, w: w, encoded: smstext.Encode(w.text), out: map[int64]message{}, more: make(chan struct{}, 1)}
	f.ctx, f.end = context.WithCancel(ctx)
	return f
}

// size is how many messages are marked and not collected.
func (f *flight) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.out)
}

// markedAt is when the oldest was marked that has no row; zero: all have one.
func (f *flight) markedAt() (oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range f.out {
		if !msg.stored && (oldest.IsZero() || msg.SubmittedAt.Before(oldest)) {
			oldest = msg.SubmittedAt
		}
	}
	return oldest
}

// launch hands messages to the operator without waiting. One is never offered after its time: then it has failed.
func (f *flight) launch(messages []message) {
	begun, from := f.by.clock.Reading()
	f.by.receipts.early.submitted(begun)
	shots := make([]*shot, 0, len(messages))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range messages {
		f.out[msg.No] = msg
		switch {
		case f.w.expired(begun):
			f.landed = append(f.landed, failed(msg, "expired before it could be sent"))
		case begun.Sub(msg.SubmittedAt) >= resubmitFor:
			f.landed = append(f.landed, failed(msg, "no operator took it in time"))
		default:
			s := &shot{message: msg, group: uint16(f.by.groups.Add(1)), begun: begun, from: from, outcomes: make([]provider.Outcome, len(f.encoded.Segments))} //nolint:gosec // comes round
			for p := range s.outcomes {
				s.outcomes[p].Class = provider.NotSent
			}
			shots = append(shots, s)
		}
	}
	f.offering++
	go func() {
		defer f.guard()
		for _, s := range shots {
			f.offer(s)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.offering--
		f.wake()
	}()
}

// guard is deferred: what a panic leaves is in the rows, and the next owner reads them.
func (f *flight) guard() {
	if p := recover(); p != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		f.wake()
	}
}

// wake has collect look again. It is called under the lock.
func (f *flight) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// offer submits every segment of a message that was not sent yet. It waits for the operator's window, and for no answer.
func (f *flight) offer(s *shot) {
	var waiting []int
	for p, o := range s.outcomes {
		if o.Class == provider.NotSent {
			waiting = append(waiting, p)
		}
	}
	left := len(waiting) // guarded by f.mu, as the outcomes are
	for _, p := range waiting {
		segment := provider.Segment{From: f.w.campaign.Sender, To: msisdn.MSISDN(s.message.Recipient), Encoding: f.encoded.Encoding,
			Octets: f.encoded.Segments[p], Part: p + 1, Parts: len(f.encoded.Segments), Group: s.group, WantsReceipt: true}
		done := func(o provider.Outcome) {
			f.mu.Lock()
			defer f.mu.Unlock()
			s.outcomes[p], s.answered = o, f.by.clock.Now()
			if o.Class == provider.NotSent {
				s.pause = min(max(s.pause, o.RetryAfter, leastRetry), mostRetry)
			}
			if left--; left == 0 {
				f.answered(s)
			}
		}
		now := f.by.clock.Now()
		switch {
		case f.ctx.Err() != nil:
			done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: f.ctx.Err().Error()})
			continue
		case f.w.expired(now): // while it waited for the window
			done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "expired before it could be sent"})
			continue
		}
		if segment.Validity = f.by.validity; !f.w.until.IsZero() {
			segment.Validity = max(f.w.until.Sub(now).Truncate(time.Second), time.Second)
		}
		f.sender.Submit(f.ctx, segment, done)
	}
}

// answered takes a message back, or has its rest offered again: a message of which a part was written cannot be queued
// as a whole. It is called under the lock.
func (f *flight) answered(s *shot) {
	if s.torn() && passed(f.by.clock) <= s.from+tornFor && f.ctx.Err() == nil && !f.w.expired(f.by.clock.Now()) {
		pause := s.pause
		s.pause = 0
		go func() {
			defer f.guard()
			_ = f.by.clock.Sleep(f.ctx, pause) // at its end the offer is refused
			f.offer(s)
		}()
		return
	}
	r := judge(s)
	if r.message.Status == StatusQueued {
		f.offerAt = max(f.offerAt, passed(f.by.clock)+s.pause)
	}
	f.landed = append(f.landed, r)
	if n := len(f.landed); n == 1 || n == len(f.out) || f.worth() {
		f.wake()
	}
}

// worth says that so much has been answered that the rest is not waited for.
func (f *flight) worth() bool {
	return f.offering == 0 && len(f.landed) >= landedShare*(len(f.out)-len(f.landed))
}

// collect waits until answers are worth a step, and takes them; it comes back with none after most, where that is not
// 0. All of the flight have answered when size is 0 afterwards.
func (f *flight) collect(most time.Duration) ([]result, error) {
	var due, record <-chan struct{}
	if most > 0 {
		timer := f.by.clock.Timer(most)
		defer timer.Stop()
		due = timer.C
	}
	for over := false; ; {
		f.mu.Lock()
		switch n := len(f.landed); {
		case f.failed != nil:
			defer f.mu.Unlock()
			return nil, f.failed
		case over, n == len(f.out), n > 0 && f.worth():
			defer f.mu.Unlock()
			return f.take(), nil
		case n > 0 && record == nil:
			timer := f.by.clock.Timer(recordWithin)
			defer timer.Stop()
			record = timer.C
		}
		f.mu.Unlock()
		select {
		case <-f.more:
		case <-record:
			over = true
		case <-due:
			over = true
		}
	}
}

// take gives what is answered, under the lock.
func (f *flight) take() []result {
	results := f.landed
	f.landed = nil
	for _, r := range results {
		delete(f.out, r.message.No)
	}
	f.w.offerAt = max(f.w.offerAt, f.offerAt)
	f.by.metrics.submitted(results, f.encoded.Encoding)
	return results
}
