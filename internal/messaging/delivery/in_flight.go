package delivery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

const (
	// recordWithin is the maximum time that a response waits for other responses before a step stores it.
	recordWithin = time.Second
	// answeredShare is the number of answered messages per unanswered one at which a step is committed at once.
	answeredShare = 3
	// restFor is how long the remaining segments of a message are submitted again after some were accepted.
	restFor = time.Minute
)

// submitter is the state that all flights of a node share.
type submitter struct {
	clock    *clock.Clock
	receipts *receiptBook
	metrics  metrics
	validity time.Duration
	groups   atomic.Uint32 // last number that links the segments of a message
}

func newSubmitter(d Deps, receipts *receiptBook, counters metrics) *submitter {
	u := &submitter{clock: d.Clock, receipts: receipts, metrics: counters, validity: d.Validity}
	u.groups.Store(rand.Uint32()) // need not be unpredictable
	return u
}

// flight has the messages in flight of one chunk: at most sliceSize messages that are claimed and have no stored
// result. Responses are handled one by one, so that a missing response delays no other message.
type flight struct {
	submitter *submitter
	sender    provider.SMSSender
	w         *work
	encoded   smstext.Message // of a text that all recipients get
	stopped   func() bool     // reports whether an operator has stopped the campaign
	ctx       context.Context // when it ends, segments that were not submitted are given up
	end       context.CancelFunc
	unsent    context.Context // when it ends, messages of which no segment was submitted are given up
	recall    context.CancelFunc

	mu         sync.Mutex
	unrecorded map[int64]message // claimed and not collected messages, by number
	answered   []result          // results of the answered messages
	submitting int               // running calls of submit
	offerAt    time.Duration     // time of the next offer on the monotonic clock
	failed     error             // after a panic of the rail
	optedOut   map[msisdn.MSISDN]bool
	changed    chan struct{} // wakes collect
}

func (u *submitter) newFlight(ctx context.Context, sender provider.SMSSender, w *work) *flight {
	f := &flight{submitter: u, sender: sender, w: w, encoded: smstext.Encode(w.text), unrecorded: map[int64]message{}, changed: make(chan struct{}, 1)}
	f.ctx, f.end = context.WithCancel(ctx)
	f.unsent, f.recall = context.WithCancel(f.ctx)
	return f
}

// size returns the number of claimed messages that were not collected.
func (f *flight) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.unrecorded)
}

// claimedAt returns the claim time of the oldest message without a row. It is zero if all have one.
func (f *flight) claimedAt() (oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range f.unrecorded {
		if !msg.stored && (oldest.IsZero() || msg.SubmittedAt.Before(oldest)) {
			oldest = msg.SubmittedAt
		}
	}
	return oldest
}

// submit submits messages without waiting for responses. A message that is too old fails without being submitted.
func (f *flight) submit(messages []message) {
	begun, from := f.submitter.clock.Reading()
	f.submitter.receipts.times.submitted(begun)
	submissions := make([]*submission, 0, len(messages))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, msg := range messages {
		f.unrecorded[msg.No] = msg
		switch {
		case f.w.expired(begun):
			f.answered = append(f.answered, failed(msg, "expired before it could be sent"))
		case f.optedOut[msisdn.MSISDN(msg.Recipient)]:
			f.answered = append(f.answered, failed(msg, whyOptedOut))
		case begun.Sub(msg.SubmittedAt) >= resubmitFor:
			f.answered = append(f.answered, failed(msg, "no operator accepted it in time"))
		default:
			s := &submission{message: msg, group: uint16(f.submitter.groups.Add(1)), begun: begun, begunPassed: from, encoded: f.encodedOf(msg)} // the number may repeat after 65,536 messages
			s.segments = len(s.encoded.Segments)
			s.outcomes = make([]provider.Outcome, s.segments)
			for p := range s.outcomes {
				s.outcomes[p].Class = provider.NotSent
			}
			submissions = append(submissions, s)
		}
	}
	f.submitting++
	go func() {
		defer f.recoverPanic()
		for _, s := range submissions {
			f.submitSegments(s)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.submitting--
		f.signalLocked()
	}()
}

// encodedOf returns the segments of a message.
func (f *flight) encodedOf(msg message) smstext.Message {
	if f.w.chunk.Texts == nil {
		return f.encoded
	}
	return smstext.Encode(f.w.textOf(msg.No))
}

// recoverPanic must be deferred. After a panic the flight fails, so that the next owner reads the rows.
func (f *flight) recoverPanic() {
	if p := recover(); p != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		f.signalLocked()
	}
}

// signalLocked signals collect.
func (f *flight) signalLocked() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// submitSegments submits the segments of a message that were not sent yet. It waits for room in the operator's
// window, but not for responses. A stop gives up only whole messages: a message whose first segment was submitted is
// completed.
func (f *flight) submitSegments(s *submission) {
	f.divide(s)
	var waiting []int
	for p, o := range s.outcomes {
		if o.Class == provider.NotSent {
			waiting = append(waiting, p)
		}
	}
	left := len(waiting) // guarded by f.mu, like the outcomes
	for _, p := range waiting {
		segment := f.segment(s, p)
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
		now, ctx := f.submitter.clock.Now(), f.ctx
		if f.begin(s, p) {
			ctx = f.unsent
			f.checkStop(s.begunPassed)
		}
		if why := f.givenUp(ctx, now); why != "" {
			done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: why})
			continue
		}
		if segment.Validity = f.submitter.validity; !f.w.until.IsZero() {
			segment.Validity = max(f.w.until.Sub(now).Truncate(time.Second), time.Second)
		}
		f.sender.Submit(ctx, segment, done)
	}
}

// divide decides whether a message of which nothing was sent is submitted as a whole or in segments.
func (f *flight) divide(s *submission) {
	if s.divided {
		return // a part was sent, and the rest must be sent in the same way
	}
	whole := f.sender.Whole(f.w.campaign.Sender, msisdn.MSISDN(s.message.Recipient))
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.divided, s.whole = true, whole; whole {
		s.outcomes = s.outcomes[:1]
	}
}

// segment returns a part of a message, or the whole message if the provider splits it.
func (f *flight) segment(s *submission, p int) provider.Segment {
	out := provider.Segment{From: f.w.campaign.Sender, To: msisdn.MSISDN(s.message.Recipient), Part: p + 1, Parts: len(s.outcomes), WantsReceipt: true}
	if s.whole {
		out.Text = f.w.textOf(s.message.No)
		return out
	}
	out.Encoding, out.Octets, out.Group = s.encoded.Encoding, s.encoded.Segments[p], s.group
	return out
}

// begin marks a segment as sent until its outcome is known. It reports whether no other segment of the message was
// sent.
func (f *flight) begin(s *submission, p int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := slices.ContainsFunc(s.outcomes, func(o provider.Outcome) bool { return o.Class != provider.NotSent })
	s.outcomes[p].Class = provider.Unknown
	return !gone
}

// givenUp returns the reason why a segment must not be sent any more, or "".
func (f *flight) givenUp(ctx context.Context, now time.Time) string {
	switch {
	case f.ctx.Err() != nil:
		return f.ctx.Err().Error()
	case f.w.expired(now): // the message expired while it waited for the window
		return "expired before it could be sent"
	case ctx.Err() != nil:
		return whyStopped
	}
	return ""
}

// checkStop gives up unsubmitted messages if the campaign was stopped. The step that claimed a message has already
// checked, so checkStop checks only if that is longer ago than freshness.
func (f *flight) checkStop(marked time.Duration) {
	if passed(f.submitter.clock)-marked >= freshness && f.stopped() {
		f.recall()
	}
}

// checkStopWaiting is checkStop for messages that wait for the operator's window or rate. With a low rate, these are
// most messages of a flight.
func (f *flight) checkStopWaiting() {
	f.mu.Lock()
	waits := f.submitting > 0
	f.mu.Unlock()
	if waits && f.stopped() {
		f.recall()
	}
}

// completeLocked adds a message to the answered ones. If only a part of the message was sent, it submits the unsent
// segments again, because such a message cannot be queued as a whole.
func (f *flight) completeLocked(s *submission) {
	if s.partlyWritten() && passed(f.submitter.clock) <= s.begunPassed+restFor && f.ctx.Err() == nil && !f.w.expired(f.submitter.clock.Now()) {
		pause := s.pause
		s.pause = 0
		go func() {
			defer f.recoverPanic()
			_ = f.submitter.clock.Sleep(f.ctx, pause) // if f.ctx ended, submitSegments sends nothing
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

// worthAStepLocked reports whether enough messages are answered to store their results now.
func (f *flight) worthAStepLocked() bool {
	return f.submitting == 0 && len(f.answered) >= answeredShare*(len(f.unrecorded)-len(f.answered))
}

// collect waits until enough messages are answered for a step, and returns their results. If most is not 0, it waits
// at most that long. The flight is complete if size is 0 afterwards.
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

// takeLocked removes and returns the results of answered messages.
func (f *flight) takeLocked() []result {
	results := f.answered
	f.answered = nil
	for _, r := range results {
		delete(f.unrecorded, r.message.No)
	}
	f.w.offerAt = max(f.w.offerAt, f.offerAt)
	f.submitter.metrics.submitted(results, f.w.campaign.Encoding)
	return results
}
