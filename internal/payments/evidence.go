package payments

import (
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// evidence is the complete input of judge for one payment.
type evidence struct {
	facts
	observed
}

// facts are read from the row and the rail for one verdict. They are never reused for another verdict, because the
// row may change.
type facts struct {
	kind   book.Kind
	status book.Status
	// lastReported is the provider's state of a final payment. It is the state of the payment's status, or of the
	// provider's latest contradiction. wasContradicted is set if the provider contradicted the status.
	lastReported    provider.State
	wasContradicted bool
	waited          bool // the process that follows the payment saw the last submission end

	mayRepeat    bool          // the provider refuses a duplicate reference with a distinct answer
	visibleAfter time.Duration // of the rail; zero: not measured
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

// observed has a process's observations of the current attempt. After a takeover, the new process rebuilds them from
// the row. All observations that the row does not have are then unknown, and all ages start again.
type observed struct {
	arrived        int    // submissions that may have arrived, including the one that was just answered
	allBarred      bool   // each of these submissions was answered 401, 403 or 429
	stage          stage  // progress of the attempt
	openedAt       moment // when this node started to follow it
	sentAt         moment // when this node last submitted the payment, or read its submission from the row
	lastSubmission moment // when the last submission may have left
	acceptedAt     moment // when the provider first acknowledged it
	doubtAt        moment // since when the outcome is unknown
	unpaidAt       moment // first Unpaid after unpaidAfter
	voucherAsked   bool   // the provider asked for a voucher

	refusal       book.Refusal
	refusalReason string
	refusedAt     moment // first unconfirmed refusal
	refusedLast   moment // last unconfirmed refusal
	reads         int    // not-found answers since the provider last acknowledged the payment
}

// A stage is the progress of the current attempt.
type stage uint8

const (
	stageUnsent    stage = iota // no submission arrived: submit
	stageMaybeSent              // another process may have sent it: query first, and submit only if repeatable
	stageSent                   // the provider acknowledged it: query
)

// submitTime is the maximum duration of a submission. leaveTime is the maximum time between the write that allows a
// submission and its start.
const (
	submitTime = 30 * time.Second
	leaveTime  = 30 * time.Second
)

// onItsWay is the longest time between the reading of a row and the end of a submission that it allowed. It
// holds for submissions of every process.
const onItsWay = leaveTime + submitTime + clock.Skew

// evidenceOf returns the evidence that a row alone gives about a payment. read is when the row was read.
func evidenceOf(row book.Payment, rail provider.Rail, read moment) evidence {
	return evidence{factsOf(row, rail), observedOf(row, rail, read)}
}

// observedOf returns the observations that a row alone supports. The row does not show whether a process has made the
// submission that it allows. All ages start when the row is read, because other processes wrote its times with other
// clocks.
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
		// On such a rail SendingAt is stored before every submission, and cleared if the submission failed.
		o.stage, o.allBarred = stageUnsent, row.Classed && row.Class == provider.Barred
		if !o.allBarred {
			o.arrived = 0
		}
	}
	return o
}

// mayRepeat reports whether the rail answers a duplicate of the payment's request with a distinct refusal. If so,
// the request may be sent again safely.
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
	if !pay.SendingAt.IsZero() && !mayRepeat(rail, pay) { // the payment may have waited long for its provider
		return pay.SendingAt
	}
	return pay.CreatedAt
}
