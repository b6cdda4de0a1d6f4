package payments

import (
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// Times and counts of judge.
const (
	doubtTime     = time.Minute      // time with an unknown outcome before operators are alerted
	pendingTime   = 30 * time.Minute // time with a pending status before operators are alerted
	unpaidApart   = 10 * time.Minute // pause between the two Unpaid answers that fail a payment
	notFoundReads = 3                // number of not-found answers that count as proof
)

// A source is the origin of a report.
type source uint8

const (
	fromSubmission source = iota // the response to a submission
	fromQuery                    // the response to a status query, of any caller
	fromDeadline                 // the deadline for submissions has passed
	fromOperator                 // an operator's decision about an open payment
)

// A report is new information about a payment.
type report struct {
	from    source
	outcome provider.Outcome
	at      moment
}

// A verdict decides about the money of a payment.
type verdict uint8

const (
	verdictKeep         verdict = iota // no change; poll by schedule
	verdictOperator                    // no change; poll and alert operators
	verdictQuery                       // no change; query before the request is answered
	verdictAcknowledged                // no change; the provider has the payment
	verdictRepeat                      // no change; submit the same reference again now
	verdictResend                      // no change; no submission arrived: submit again later
	verdictTooSoon                     // no change; a submission may be running: the operator must retry later
	verdictPaid                        // success
	verdictRefund                      // failure: the hold is returned
	verdictUnchanged                   // final payment: nothing new
	verdictReversed                    // final payment: success, now reversed
	verdictPaidLate                    // final collection: failed, now paid
	verdictFoundPaid                   // final payment of another kind: refunded, now paid
	verdictOpposite                    // final payment with an earlier contradiction
)

// judge is the only place that decides from a report what may happen to money. It returns the verdict, the reason of
// a refund and the updated evidence. It is a pure function that implements the rules of docs/ledger.md row by row.
func judge(s evidence, w report) (evidence, verdict, string) {
	switch {
	case !s.status.Open():
		return s, s.contradicted(w.outcome), ""
	case w.from == fromOperator:
		return s.decided(w)
	case w.from == fromSubmission:
		return s.submitted(w)
	case w.from == fromDeadline:
		return s.outOfTime(w)
	}
	return s.queried(w)
}

// submitted judges the answer to a submission. A refusal needs confirmation by a status query. Only a submission that
// never left this machine is certainly unsent.
func (s evidence) submitted(w report) (evidence, verdict, string) {
	o := w.outcome
	s.lastSubmission = w.at
	switch {
	case o.Class == provider.Accepted && o.State == provider.Success:
		return s, verdictPaid, ""
	case o.Class == provider.Accepted && o.State == provider.Failed:
		return s.refused(book.RefusalClear, o, w.at)
	case o.Class == provider.Accepted:
		return s.acknowledged(w.at), verdictAcknowledged, ""
	case o.Class == provider.Rejected && o.Unposted:
		s.arrived--
		if s.arrived == 0 && !s.recovering {
			return s, verdictRefund, reasonOf(o)
		}
		return s.doubted(w.at), verdictKeep, ""
	case o.Class == provider.Rejected && o.Clear:
		return s.refused(book.RefusalClear, o, w.at)
	case o.Class == provider.Rejected:
		return s.refused(book.RefusalBare, o, w.at)
	case o.Class == provider.NotSent:
		s.arrived--
		if s.arrived == 0 || s.allBarred {
			s.stage = stageUnsent
			return s, verdictResend, ""
		}
		return s.doubted(w.at), verdictKeep, ""
	case o.Class == provider.Barred && (s.arrived == 1 || s.allBarred):
		s.allBarred, s.stage = true, stageUnsent
		return s, verdictResend, ""
	}
	s.allBarred = false
	s = s.doubted(w.at)
	if needsOperator(o) {
		return s, verdictOperator, o.Reason
	}
	return s, verdictKeep, ""
}

// needsOperator reports whether only an operator can settle the payment. This is so if the answer is about another
// payment, or if our account at the provider is set up wrongly.
func needsOperator(o provider.Outcome) bool {
	return o.Reason == provider.ReasonMismatch || o.Reason == provider.ReasonSetup
}

// refused stores a refusal until a status query confirms it.
func (s evidence) refused(r book.Refusal, o provider.Outcome, at moment) (evidence, verdict, string) {
	s.allBarred = false
	if s.refusal == book.RefusalNone {
		s.refusedAt = at
	}
	again := s.refusal == book.RefusalBare && r == book.RefusalBare
	s.refusal, s.refusalReason, s.refusedLast = r, reasonOf(o), at
	s = s.doubted(at)
	if again { // the next query, and then the next submission, run at their scheduled times
		return s, verdictKeep, ""
	}
	return s, verdictQuery, ""
}

// outOfTime judges a payment whose submissions failed until the deadline.
func (s evidence) outOfTime(w report) (evidence, verdict, string) {
	if s.arrived == 0 && !s.recovering {
		return s, verdictRefund, provider.ReasonUnavailable
	}
	s.allBarred = false
	s.refusal, s.refusalReason, s.refusedAt, s.refusedLast = book.RefusalBarred, provider.ReasonUnavailable, w.at, w.at
	return s.doubted(w.at), verdictQuery, ""
}

// queried judges the answer to a status query.
func (s evidence) queried(w report) (evidence, verdict, string) {
	o := w.outcome
	switch {
	case o.Class == provider.Accepted && o.State == provider.Success:
		return s, verdictPaid, ""
	case o.Class == provider.Accepted && o.State == provider.Failed:
		return s, verdictRefund, reasonOf(o)
	case o.Class == provider.Accepted && o.Unpaid:
		return s.unpaid(w)
	case o.Class == provider.Accepted:
		return s.acknowledged(w.at), verdictAcknowledged, ""
	case o.NotFound:
		return s.notFound(w)
	}
	s = s.doubted(w.at)
	switch {
	case needsOperator(o):
		return s, verdictOperator, o.Reason
	case s.refusal == book.RefusalBarred, s.overdue(w.at):
		return s, verdictOperator, ""
	}
	return s, verdictKeep, ""
}

// notFound judges a provider's answer that the reference is unknown. The answer is never final without an earlier
// refusal. If the rail's visibleAfter was not measured, the age of a submission proves nothing.
func (s evidence) notFound(w report) (evidence, verdict, string) {
	s = s.doubted(w.at)
	s.reads++
	measured := s.visibleAfter > 0
	settled := measured && w.at.Sub(s.lastSubmission) >= s.visibleAfter && s.reads >= notFoundReads
	switch {
	case !s.acceptedAt.IsZero() && s.refusal != book.RefusalNone:
		return s, verdictOperator, "" // the provider had acknowledged the payment before
	case s.refusal == book.RefusalClear && s.arrived == 1 && !s.recovering,
		s.refusal == book.RefusalClear && settled,
		s.refusal == book.RefusalBarred && settled,
		s.refusal == book.RefusalBare && s.mayRepeat && measured && s.refusedLast.Sub(s.refusedAt) >= s.visibleAfter && s.reads >= notFoundReads:
		return s, verdictRefund, s.refusalReason
	case s.mayRepeat && (s.refusal == book.RefusalNone || s.refusal == book.RefusalBare) &&
		// A payment that was accepted just now may not be readable yet.
		(s.stage == stageMaybeSent || measured && w.at.Sub(s.acceptedAt) >= s.visibleAfter):
		return s, verdictRepeat, ""
	case s.refusal == book.RefusalBare && settled, s.refusal == book.RefusalBarred && !measured, s.overdue(w.at):
		return s, verdictOperator, ""
	}
	return s, verdictKeep, ""
}

// unpaid judges a status that a provider reports for both open and failed payments. Two such answers fail the
// payment. The first counts only after unpaidAfter, the provider's own limit, and the second only unpaidApart later.
// A refused submission does not shorten these times, because the payer may still have the prompt.
func (s evidence) unpaid(w report) (evidence, verdict, string) {
	old := s.unpaidAfter > 0 && w.at.Sub(s.sentAt) >= s.unpaidAfter
	since := s.unpaidAt
	s = s.acknowledged(w.at)
	switch {
	case !old:
		return s, verdictAcknowledged, ""
	case since.IsZero():
		since = w.at
	case w.at.Sub(since) < unpaidApart:
	case s.kind == book.KindCollection:
		return s, verdictRefund, provider.ReasonExpired
	default:
		return s, verdictRefund, provider.ReasonRefused
	}
	s.unpaidAt = since
	return s, verdictAcknowledged, ""
}

// decided judges an operator's decision about an open payment. It refuses the decision while a submission may be
// running, because the provider's statement cannot show that submission yet.
func (s evidence) decided(w report) (evidence, verdict, string) {
	switch {
	case !s.waited:
		return s, verdictTooSoon, ""
	case w.outcome.State == provider.Success:
		return s, verdictPaid, ""
	}
	return s, verdictRefund, provider.ReasonRefused
}

// contradicted judges a report about a final payment.
func (s evidence) contradicted(o provider.Outcome) verdict {
	switch {
	case !o.Final() || o.State == s.lastReported:
		return verdictUnchanged
	case s.wasContradicted:
		return verdictOpposite // the amount is or was in suspense
	case s.status == book.StatusSuccess:
		return verdictReversed
	case s.kind == book.KindCollection:
		return verdictPaidLate
	}
	return verdictFoundPaid
}

// acknowledged returns the evidence after the provider confirmed that it has the payment.
func (s evidence) acknowledged(at moment) evidence {
	s.stage, s.doubtAt, s.unpaidAt, s.allBarred = stageSent, 0, 0, false
	s.refusal, s.refusalReason, s.refusedAt, s.refusedLast, s.reads = book.RefusalNone, "", 0, 0, 0
	if s.acceptedAt.IsZero() {
		s.acceptedAt = at
	}
	return s
}

// doubted returns the evidence after an answer that leaves the outcome unknown.
func (s evidence) doubted(at moment) evidence {
	if s.stage == stageUnsent {
		s.stage = stageMaybeSent
	}
	if s.doubtAt.IsZero() && s.stage == stageMaybeSent {
		s.doubtAt = at
	}
	return s
}

// overdue reports whether a payment was open for so long that operators are alerted.
func (o observed) overdue(at moment) bool {
	return !o.doubtAt.IsZero() && at.Sub(o.doubtAt) >= doubtTime || o.stage == stageSent && at.Sub(o.openedAt) >= pendingTime
}

// reasonOf returns the reason of a refusal, or a default if the provider gave none.
func reasonOf(o provider.Outcome) string {
	if o.Reason == "" {
		return provider.ReasonUnknown
	}
	return o.Reason
}

// final returns the settlement of a verdict. Without a final status from the provider, a refund is valid only for the
// submissions that this process knows. The settlement then requires that the row has no others.
func final(pay book.Payment, v verdict, reason string, o provider.Outcome) book.Settlement {
	if v == verdictPaid {
		return book.Settlement{Payment: pay, Event: book.EventSucceeded, Outcome: o}
	}
	s := book.Settlement{Payment: pay, Event: book.EventFailed, Reason: reason, Outcome: o}
	if !o.Final() {
		s.Submissions = pay.Submissions
		if o.Class == provider.Unknown {
			s.Outcome.Class = provider.Rejected // the provider confirmed its refusal
		}
	}
	return s
}
