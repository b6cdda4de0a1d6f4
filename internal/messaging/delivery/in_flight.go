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
	// recordWithin is how long an answer waits for others before a step records it.
	recordWithin = time.Second
	// answeredShare is how many answered messages for each unanswered one make a step at once.
	answeredShare = 3
	// restFor is how long the other segments of a message are offered after an operator accepted some.
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
	u.groups.Store(rand.Uint32()) // not a secret
	return u
}

// flight is the messages in flight of one chunk: claimed, at most sliceSize, without a recorded end. Their answers
// come one by one, so that a missing answer delays no other message.
type flight struct {
	submitter *submitter
	sender    provider.SMSSender
	w         *work
	encoded   smstext.Message
	stopped   func() bool     // an operator stopped the campaign
	ctx       context.Context // when it ends, segments that were not submitted are not sent
	end       context.CancelFunc
	unsent    context.Context // when it ends, messages of which no segment was submitted are not sent
	recall    context.CancelFunc

	mu         sync.Mutex
	unrecorded map[int64]message // by number: claimed and not collected
	answered   []result          // results of those that are answered
	submitting int               // calls of submit that are not done
	offerAt    time.Duration     // time of the next offer on the monotonic clock
	failed     error             // after a panic of the rail
	changed    chan struct{}     // wakes collect
}

func (u *submitter) newFlight(ctx context.Context, sender provider.SMSSender, w *work) *flight {
	f := &flight{submitter: u, sender: sender, w: w, encoded: smstext.Encode(w.text), unrecorded: map[int64]message{}, changed: make(chan struct{}, 1)}
	f.ctx, f.end = context.WithCancel(ctx)
	f.unsent, f.recall = context.WithCancel(f.ctx)
	return f
}

// size returns the number of claimed messages that are not collected.
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

// submit submits messages without waiting for answers. A message past its time is not submitted and has failed.
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
		case begun.Sub(msg.SubmittedAt) >= resubmitFor:
			f.answered = append(f.answered, failed(msg, "no operator took it in time"))
		default:
			s := &submission{message: msg, group: uint16(f.submitter.groups.Add(1)), begun: begun, begunPassed: from, segments: len(f.encoded.Segments)} // comes round
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

// recoverPanic is deferred. It fails the flight, so that the next owner reads the rows.
func (f *flight) recoverPanic() {
	if p := recover(); p != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		f.signalLocked()
	}
}

// signalLocked wakes collect.
func (f *flight) signalLocked() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// submitSegments submits the segments of a message that were not sent yet. It waits for room in the operator's
// window, and for no answer. A stop recalls whole messages only: one that has begun to leave is completed.
func (f *flight) submitSegments(s *submission) {
	f.divide(s)
	var waiting []int
	for p, o := range s.outcomes {
		if o.Class == provider.NotSent {
			waiting = append(waiting, p)
		}
	}
	left := len(waiting) // guarded by f.mu, as the outcomes are
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

// divide decides whether a message of which nothing was sent goes as a whole or in segments.
func (f *flight) divide(s *submission) {
	if s.divided {
		return // a part of it has left, and the rest follows in the same way
	}
	whole := f.sender.Whole(f.w.campaign.Sender, msisdn.MSISDN(s.message.Recipient))
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.divided, s.whole = true, whole; whole {
		s.outcomes = s.outcomes[:1]
	}
}

// segment returns a part of a message, or the whole message if it is not divided here.
func (f *flight) segment(s *submission, p int) provider.Segment {
	out := provider.Segment{From: f.w.campaign.Sender, To: msisdn.MSISDN(s.message.Recipient), Part: p + 1, Parts: len(s.outcomes), WantsReceipt: true}
	if s.whole {
		out.Text = f.w.text
		return out
	}
	out.Encoding, out.Octets, out.Group = f.encoded.Encoding, f.encoded.Segments[p], s.group
	return out
}

// begin takes a segment for one on its way until its outcome is known, and reports whether it is the only one.
func (f *flight) begin(s *submission, p int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := slices.ContainsFunc(s.outcomes, func(o provider.Outcome) bool { return o.Class != provider.NotSent })
	s.outcomes[p].Class = provider.Unknown
	return !gone
}

// givenUp returns the reason why a segment is no longer sent, or "".
func (f *flight) givenUp(ctx context.Context, now time.Time) string {
	switch {
	case f.ctx.Err() != nil:
		return f.ctx.Err().Error()
	case f.w.expired(now): // while it waited for the window
		return "expired before it could be sent"
	case ctx.Err() != nil:
		return whyStopped
	}
	return ""
}

// checkStop recalls unsubmitted messages if the campaign was stopped. The step that claimed a message has checked
// already, so this checks again only after freshness.
func (f *flight) checkStop(marked time.Duration) {
	if passed(f.submitter.clock)-marked >= freshness && f.stopped() {
		f.recall()
	}
}

// checkStopWaiting is checkStop for messages that wait in the operator's window or for its rate. At a low rate these
// are most of a flight.
func (f *flight) checkStopWaiting() {
	f.mu.Lock()
	waits := f.submitting > 0
	f.mu.Unlock()
	if waits && f.stopped() {
		f.recall()
	}
}

// completeLocked adds a message to the answered ones, or submits its unsent segments again. A partly written message
// cannot be queued as a whole.
func (f *flight) completeLocked(s *submission) {
	if s.partlyWritten() && passed(f.submitter.clock) <= s.begunPassed+restFor && f.ctx.Err() == nil && !f.w.expired(f.submitter.clock.Now()) {
		pause := s.pause
		s.pause = 0
		go func() {
			defer f.recoverPanic()
			_ = f.submitter.clock.Sleep(f.ctx, pause) // when f.ctx ends, submitSegments sends nothing
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

// worthAStepLocked reports whether enough messages are answered to record them now.
func (f *flight) worthAStepLocked() bool {
	return f.submitting == 0 && len(f.answered) >= answeredShare*(len(f.unrecorded)-len(f.answered))
}

// collect waits until enough messages are answered for a step, at the longest most unless that is 0, and returns the
// results that there are. The flight is complete when size is 0 afterwards.
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
	f.submitter.metrics.submitted(results, f.encoded.Encoding)
	return results
}
