package payments

import (
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// evidence is the complete input of judge about a payment.
type evidence struct {
	facts
	observed
}

// facts come from the row and the rail at the time of a verdict. They are never reused for another one.
type facts struct {
	kind   book.Kind
	status book.Status
	// lastReported is the state of a final payment: of its status, or of the provider's latest contradiction.
	// wasContradicted means that there was one.
	lastReported    provider.State
	wasContradicted bool
	waited          bool // the follower saw the last submission end

	mayRepeat    bool          // the provider refuses a duplicate reference distinctly
	visibleAfter time.Duration // of the rail; zero: nobody has measured it
	unpaidAfter  time.Duration // of the rail
	recovering   bool          // the database was restored less than the rail's SearchableAfter ago
}

// factsOf returns the facts of a row and its rail outside a recovery.
func factsOf(row book.Payment, rail provider.Rail) facts {
	return facts{
		kind: row.Kind, status: row.Status, lastReported: row.ProviderState(), wasContradicted: !row.ContradictedAt.IsZero(), waited: row.Waited(),
		mayRepeat: mayRepeat(rail, row), visibleAfter: rail.VisibleAfter, unpaidAfter: rail.UnpaidAfter,
	}
}

// observed are a process's observations of the current attempt. A takeover rebuilds them from the row: everything
// else is then unknown, and all ages start again.
type observed struct {
	arrived        int    // submissions that may have arrived, including the one just answered
	allBarred      bool   // each was answered 401, 403 or 429
	stage          stage  // progress of the attempt
	openedAt       moment // when this node started to follow it
	sentAt         moment // when this node submitted it last, or read its submission
	lastSubmission moment // when the last submission may have left
	acceptedAt     moment // when the provider first acknowledged it
	doubtAt        moment // since when the outcome is unknown
	unpaidAt       moment // first Unpaid after unpaidAfter

	refusal       book.Refusal
	refusalReason string
	refusedAt     moment // first unconfirmed refusal
	refusedLast   moment // last unconfirmed refusal
	reads         int    // not-found answers since it was last acknowledged
}

// A stage is the progress of the current attempt.
type stage uint8

const (
	stageUnsent    stage = iota // no submission arrived: submit
	stageMaybeSent              // another process may have sent it: query first, and submit only if repeatable
	stageSent                   // the provider acknowledged it: query
)

// submitTime is the maximum time of a submission. leaveTime is how long after the stored permission a submission may
// start.
const (
	submitTime = 30 * time.Second
	leaveTime  = 30 * time.Second
)

// onItsWay is how long after its row was read a submission of any process may be running.
const onItsWay = leaveTime + submitTime + clock.Skew

// evidenceOf returns the evidence about a payment from its row alone, read at this moment.
func evidenceOf(row book.Payment, rail provider.Rail, read moment) evidence {
	return evidence{factsOf(row, rail), observedOf(row, rail, read)}
}

// observedOf returns the observations that a row alone supports. Submissions may have been made without a trace in
// it. All ages start at the reading, because the row has times of other processes.
func observedOf(row book.Payment, rail provider.Rail, read moment) observed {
	o := observed{
		stage: stageMaybeSent, arrived: row.Submissions - row.Unsent, openedAt: read, sentAt: read,
		lastSubmission: read.Add(leaveTime + submitTime),
		refusal:        row.Refusal, refusalReason: row.RefusalReason,
	}
	if row.Refusal != book.RefusalNone {
		o.refusedAt, o.refusedLast = read, read
	}
	if !mayRepeat(rail, row) && row.SendingAt.IsZero() && row.Refusal == book.RefusalNone {
		// Every submission on such a rail is flagged first, and the flag is cleared if the submission failed.
		o.stage, o.allBarred = stageUnsent, row.Classed && row.Class == provider.Barred
		if !o.allBarred {
			o.arrived = 0
		}
	}
	return o
}

// mayRepeat reports whether the rail refuses a duplicate of the payment's request distinctly.
func mayRepeat(rail provider.Rail, p book.Payment) bool { return requestIn(p, rail.MayRepeat) }

// requestIn reports whether the payment's request is one of a set.
func requestIn(p book.Payment, set provider.Requests) bool {
	switch {
	case p.Kind == book.KindCollection:
		return set.Collect
	case p.RefundWay == book.RefundByRail:
		return set.Refund
	case p.Kind == book.KindPayout:
		return set.Disburse
	}
	return set.Sell
}

// sentSince returns the earliest time at which a payment may have left for its rail.
func sentSince(pay book.Payment, rail provider.Rail) time.Time {
	if !pay.SendingAt.IsZero() && !mayRepeat(rail, pay) { // it may have waited long for its provider
		return pay.SendingAt
	}
	return pay.CreatedAt
}
