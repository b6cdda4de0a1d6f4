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
	// answeredShare to one is the proportion of answered to unanswered messages that is worth a step at once.
	answeredShare = 3
	// restFor is how long the rest of a message is offered of which an operator took a part.
	restFor = time.Minute
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
	submitter *submitter
	sender    provider.SMSSender
	w         *work
	encoded   smstext.Message
	ctx       context.Context // its end keeps back what was not handed over
	end       context.CancelFunc

	mu         sync.Mutex
	unrecorded map[int64]message // by number: marked, not collected
	answered   []result          // of these, what is answered
	submitting int               // calls of launch whose messages are not all handed over
	offerAt    time.Duration     // when what was not taken is offered again
	failed     error             // a panic of the rail
	changed    chan struct{}     // something has changed that collect waits for
}

func (u *submitter) newFlight(ctx context.Context, sender provider.SMSSender, w *work) *flight {
	f := &flight{submitter: u, sender: sender, w: w, encoded: smstext.Encode(w.text), unrecorded: map[int64]message{}, changed: make(chan struct{}, 1)}
	f.ctx, f.end = context.WithCancel(ctx)
	return f
}

// size is how many messages are marked and not collected.
func (f *flight) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.unrecorded)
}

// markedAt is when the oldest was marked that has no row; zero: all have one.
func (f *flight) markedAt() (oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range f.unrecorded {
		if !msg.stored && (oldest.IsZero() || msg.SubmittedAt.Before(oldest)) {
			oldest = msg.SubmittedAt
		}
	}
	return oldest
}

// submit hands messages to the operator without waiting. One is never offered after its time: then it has failed.
func (f *flight) submit(messages []message) {
	begun, from := f.submitter.clock.Reading()
	f.submitter.receipts.times.submitted(begun)
	shots := make([]*submission, 0, len(messages))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range messages {
		f.unrecorded[msg.No] = msg
		switch {
		case f.w.expired(begun):
			f.answered = append(f.answered, failed(msg, "expired before it could be sent"))
		case begun.Sub(msg.SubmittedAt) >= resubmitFor:
			f.answered = append(f.answered, failed(msg, "no operator took it in time"))
		default:
			s := &submission{message: msg, group: uint16(f.submitter.groups.Add(1)), begun: begun, begunPassed: from, outcomes: make([]provider.Outcome, len(f.encoded.Segments))} //nolint:gosec // comes round
			for p := range s.outcomes {
				s.outcomes[p].Class = provider.NotSent
			}
			shots = append(shots, s)
		}
	}
	f.submitting++
	go func() {
		defer f.recoverPanic()
		for _, s := range shots {
			f.submitSegments(s)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.submitting--
		f.signalLocked()
	}()
}

// recoverPanic is deferred: what a panic leaves is in the rows, and the next owner reads them.
func (f *flight) recoverPanic() {
	if p := recover(); p != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		f.signalLocked()
	}
}

// signalLocked has collect look again. It is called under the lock.
func (f *flight) signalLocked() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// submitSegments submits every segment of a message that was not sent yet. It waits for the operator's window, and for no answer.
func (f *flight) submitSegments(s *submission) {
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
			s.outcomes[p], s.answered = o, f.submitter.clock.Now()
			if o.Class == provider.NotSent {
				s.pause = min(max(s.pause, o.RetryAfter, leastRetry), mostRetry)
			}
			if left--; left == 0 {
				f.completeLocked(s)
			}
		}
		now := f.submitter.clock.Now()
		switch {
		case f.ctx.Err() != nil:
			done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: f.ctx.Err().Error()})
			continue
		case f.w.expired(now): // while it waited for the window
			done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "expired before it could be sent"})
			continue
		}
		if segment.Validity = f.submitter.validity; !f.w.until.IsZero() {
			segment.Validity = max(f.w.until.Sub(now).Truncate(time.Second), time.Second)
		}
		f.sender.Submit(f.ctx, segment, done)
	}
}

// completeLocked takes a message back, or has its rest offered again: a message of which a part was written cannot be queued
// as a whole. It is called under the lock.
func (f *flight) completeLocked(s *submission) {
	if s.partlyWritten() && passed(f.submitter.clock) <= s.begunPassed+restFor && f.ctx.Err() == nil && !f.w.expired(f.submitter.clock.Now()) {
		pause := s.pause
		s.pause = 0
		go func() {
			defer f.recoverPanic()
			_ = f.submitter.clock.Sleep(f.ctx, pause) // at its end the offer is refused
			f.submitSegments(s)
		}()
		return
	}
	r := judge(s)
	if r.message.Status == StatusQueued {
		f.offerAt = max(f.offerAt, passed(f.submitter.clock)+s.pause)
	}
	f.answered = append(f.answered, r)
	if n := len(f.answered); n == 1 || n == len(f.unrecorded) || f.worthAStepLocked() {
		f.signalLocked()
	}
}

// worthAStepLocked says that so much has been answered that the rest is not waited for.
func (f *flight) worthAStepLocked() bool {
	return f.submitting == 0 && len(f.answered) >= answeredShare*(len(f.unrecorded)-len(f.answered))
}

// collect waits until answers are worth a step, and takes them; it comes back with none after most, where that is not
// 0. All of the flight have answered when size is 0 afterwards.
func (f *flight) collect(most time.Duration) ([]result, error) {
	var due, record <-chan struct{}
	if most > 0 {
		timer := f.submitter.clock.Timer(most)
		defer timer.Stop()
		due = timer.C
	}
	for over := false; ; {
		f.mu.Lock()
		switch n := len(f.answered); {
		case f.failed != nil:
			defer f.mu.Unlock()
			return nil, f.failed
		case over, n == len(f.unrecorded), n > 0 && f.worthAStepLocked():
			defer f.mu.Unlock()
			return f.takeLocked(), nil
		case n > 0 && record == nil:
			timer := f.submitter.clock.Timer(recordWithin)
			defer timer.Stop()
			record = timer.C
		}
		f.mu.Unlock()
		select {
		case <-f.changed:
		case <-record:
			over = true
		case <-due:
			over = true
		}
	}
}

// takeLocked gives what is answered, under the lock.
func (f *flight) takeLocked() []result {
	results := f.answered
	f.answered = nil
	for _, r := range results {
		delete(f.unrecorded, r.message.No)
	}
	f.w.offerAt = max(f.w.offerAt, f.offerAt)
	f.submitter.metrics.submitted(results, f.encoded.Encoding)
	return results
}
