package payments

import (
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// The times of the judge.
const (
	doubtTime   = time.Minute      // how long a payment is unknown before operators are called
	pendingTime = 30 * time.Minute // how long it is pending before they are
	unpaidApart = 10 * time.Minute // pause between the two Unpaid answers that end a payment
	knownReads  = 3                // questions that the provider must not have known before that counts
)

// A source is whose word a word is.
type source uint8

const (
	fromPost     source = iota // the answer to a submission
	fromQuestion               // the answer to a status question, of any caller
	fromTime                   // the time in which a submission may be tried is over
	fromOperator               // an operator's word about an open payment
)

// A report is what was said about a payment.
type report struct {
	from    source
	outcome provider.Outcome
	at      moment
}

// A verdict is what may happen to the money of a payment.
type verdict uint8

const (
	verdictHold      verdict = iota // it stays; the provider is asked by the schedule
	verdictOperator                 // it stays; the provider is asked, and operators are called
	verdictAsk                      // it stays; the provider is asked before anybody is answered
	verdictTaken                    // it stays; the provider has the payment
	verdictRepeat                   // it stays; the same reference is submitted again now
	verdictResend                   // it stays; nothing says that a submission arrived: submit again later
	verdictTooSoon                  // it stays; a submission may be under way: an operator's word must wait
	verdictPaid                     // the payment is done
	verdictRefund                   // the payment is not done: what was held goes back
	verdictNothing                  // a final payment: the word says what is known
	verdictReversed                 // a final payment: done, and now taken back
	verdictPaidLate                 // a final collection: ended, and now paid
	verdictFoundPaid                // a final payment of another kind: refunded, and now paid
	verdictOpposite                 // a final payment whose provider has contradicted itself before
)

// judge is the only place where a word turns into what may happen to money. It
// answers the verdict, with the reason of a refund, and what is known from then
// on. It is a pure function: the rules of docs/ledger.md, row by row.
func judge(s standing, w report) (standing, verdict, string) {
	switch {
	case !s.status.Open():
		return s, s.contradicted(w.outcome), ""
	case w.from == fromOperator:
		return s.decided(w)
	case w.from == fromPost:
		return s.answered(w)
	case w.from == fromTime:
		return s.outOfTime(w)
	}
	return s.told(w)
}

// answered judges the answer to a submission. A refusal is a word: it is asked about
// before it counts. Only what was never posted, and what our socket never wrote,
// is proof.
func (s standing) answered(w report) (standing, verdict, string) {
	o := w.outcome
	s.lastPost = w.at
	switch {
	case o.Class == provider.Accepted && o.State == provider.Success:
		return s, verdictPaid, ""
	case o.Class == provider.Accepted && o.State == provider.Failed:
		return s.refused(book.RefusalClear, o, w.at)
	case o.Class == provider.Accepted:
		return s.acknowledged(w.at), verdictTaken, ""
	case o.Class == provider.Rejected && o.Unposted:
		s.arrived--
		if s.arrived == 0 && !s.recovering {
			return s, verdictRefund, reasonOf(o)
		}
		return s.doubted(w.at), verdictHold, ""
	case o.Class == provider.Rejected && o.Clear:
		return s.refused(book.RefusalClear, o, w.at)
	case o.Class == provider.Rejected:
		return s.refused(book.RefusalBare, o, w.at)
	case o.Class == provider.NotSent:
		s.arrived--
		if s.arrived == 0 || s.turnedAway {
			s.stage = stageUnsent
			return s, verdictResend, ""
		}
		return s.doubted(w.at), verdictHold, ""
	case o.Class == provider.Barred && (s.arrived == 1 || s.turnedAway):
		s.turnedAway, s.stage = true, stageUnsent
		return s, verdictResend, ""
	}
	s.turnedAway = false
	s = s.doubted(w.at)
	if o.Reason == provider.ReasonMismatch {
		return s, verdictOperator, o.Reason
	}
	return s, verdictHold, ""
}

// refused keeps a refusal until the provider has been asked about it.
func (s standing) refused(r book.Refusal, o provider.Outcome, at moment) (standing, verdict, string) {
	s.turnedAway = false
	if s.refusal == book.RefusalNone {
		s.refusedAt = at
	}
	again := s.refusal == book.RefusalBare && r == book.RefusalBare
	s.refusal, s.refusalReason, s.refusedLast = r, reasonOf(o), at
	s = s.doubted(at)
	if again { // the next question, and with it the next submission, comes by the schedule
		return s, verdictHold, ""
	}
	return s, verdictAsk, ""
}

// outOfTime ends the time in which a submission that did not get through is tried.
func (s standing) outOfTime(w report) (standing, verdict, string) {
	if s.arrived == 0 && !s.recovering {
		return s, verdictRefund, provider.ReasonUnavailable
	}
	s.turnedAway = false
	s.refusal, s.refusalReason, s.refusedAt, s.refusedLast = book.RefusalBarred, provider.ReasonUnavailable, w.at, w.at
	return s.doubted(w.at), verdictAsk, ""
}

// told judges the answer to a status question.
func (s standing) told(w report) (standing, verdict, string) {
	o := w.outcome
	switch {
	case o.Class == provider.Accepted && o.State == provider.Success:
		return s, verdictPaid, ""
	case o.Class == provider.Accepted && o.State == provider.Failed:
		return s, verdictRefund, reasonOf(o)
	case o.Class == provider.Accepted && o.Unpaid:
		return s.unpaid(w)
	case o.Class == provider.Accepted:
		return s.acknowledged(w.at), verdictTaken, ""
	case o.NotFound:
		return s.unheard(w)
	}
	s = s.doubted(w.at)
	switch {
	case o.Reason == provider.ReasonMismatch:
		return s, verdictOperator, o.Reason
	case s.refusal == book.RefusalBarred, s.overdue(w.at):
		return s, verdictOperator, ""
	}
	return s, verdictHold, ""
}

// unheard judges that the provider does not know the reference. For what was
// never refused that is never final.
func (s standing) unheard(w report) (standing, verdict, string) {
	s = s.doubted(w.at)
	s.reads++
	settled := w.at.Sub(s.lastPost) >= s.visibleAfter && s.reads >= knownReads
	switch {
	case !s.acceptedAt.IsZero() && s.refusal != book.RefusalNone:
		return s, verdictOperator, "" // it said before that it has it
	case s.refusal == book.RefusalClear && s.arrived == 1 && !s.recovering,
		s.refusal == book.RefusalClear && settled,
		s.refusal == book.RefusalBarred && settled,
		s.refusal == book.RefusalBare && s.mayRepeat && s.refusedLast.Sub(s.refusedAt) >= s.visibleAfter && s.reads >= knownReads:
		return s, verdictRefund, s.refusalReason
	case s.mayRepeat && (s.refusal == book.RefusalNone || s.refusal == book.RefusalBare) &&
		// A payment that was accepted a moment ago may not be readable yet.
		(s.stage == stageUnsure || w.at.Sub(s.acceptedAt) >= s.visibleAfter):
		return s, verdictRepeat, ""
	case s.refusal == book.RefusalBare && settled, s.overdue(w.at):
		return s, verdictOperator, ""
	}
	return s, verdictHold, ""
}

// unpaid judges a status that a provider reports of open and of failed payments. A refusal of the submission does not
// shorten the wait: the payer may still have the prompt. The payment ends with the second Unpaid, unpaidApart after
// one that was past the provider's own time.
func (s standing) unpaid(w report) (standing, verdict, string) {
	old := s.unpaidAfter > 0 && w.at.Sub(s.sentAt) >= s.unpaidAfter
	since := s.unpaidAt
	s = s.acknowledged(w.at)
	switch {
	case !old:
		return s, verdictTaken, ""
	case since.IsZero():
		since = w.at
	case w.at.Sub(since) < unpaidApart:
	case s.kind == book.KindCollection:
		return s, verdictRefund, provider.ReasonExpired
	default:
		return s, verdictRefund, provider.ReasonRefused
	}
	s.unpaidAt = since
	return s, verdictTaken, ""
}

// decided judges an operator's word about an open payment: the statement that
// it goes by cannot have yet what is on its way at this moment.
func (s standing) decided(w report) (standing, verdict, string) {
	switch {
	case !s.waited:
		return s, verdictTooSoon, ""
	case w.outcome.State == provider.Success:
		return s, verdictPaid, ""
	}
	return s, verdictRefund, provider.ReasonRefused
}

// contradicted judges a word about a final payment.
func (s standing) contradicted(o provider.Outcome) verdict {
	switch {
	case !o.Final() || o.State == s.said:
		return verdictNothing
	case s.wasContradicted:
		return verdictOpposite // it stands in suspense, or stood there
	case s.status == book.StatusSuccess:
		return verdictReversed
	case s.kind == book.KindCollection:
		return verdictPaidLate
	}
	return verdictFoundPaid
}

// acknowledged notes that the provider has the payment.
func (s standing) acknowledged(at moment) standing {
	s.stage, s.doubtAt, s.unpaidAt, s.turnedAway = stageSent, 0, 0, false
	s.refusal, s.refusalReason, s.refusedAt, s.refusedLast, s.reads = book.RefusalNone, "", 0, 0, 0
	if s.acceptedAt.IsZero() {
		s.acceptedAt = at
	}
	return s
}

// doubted notes that the outcome of the payment is unknown.
func (s standing) doubted(at moment) standing {
	if s.stage == stageUnsent {
		s.stage = stageUnsure
	}
	if s.doubtAt.IsZero() && s.stage == stageUnsure {
		s.doubtAt = at
	}
	return s
}

// overdue says that a payment was open for so long that operators are called.
func (o observed) overdue(at moment) bool {
	return !o.doubtAt.IsZero() && at.Sub(o.doubtAt) >= doubtTime || o.stage == stageSent && at.Sub(o.openedAt) >= pendingTime
}

// reasonOf is the reason of a refusal; a provider that gives none has one, too.
func reasonOf(o provider.Outcome) string {
	if o.Reason == "" {
		return provider.ReasonUnknown
	}
	return o.Reason
}

// final is the settlement that a verdict asks for. A refund on anything but the
// provider's last word is about the submissions that are known: the row must have no
// other.
func final(pay book.Payment, v verdict, reason string, o provider.Outcome) book.Settlement {
	if v == verdictPaid {
		return book.Settlement{Payment: pay, Event: book.EventSucceeded, Outcome: o}
	}
	s := book.Settlement{Payment: pay, Event: book.EventFailed, Reason: reason, Outcome: o}
	if !o.Final() {
		s.Posts = pay.Posts
		if o.Class == provider.Unknown {
			s.Outcome.Class = provider.Rejected // as its refusal said, which the provider has confirmed
		}
	}
	return s
}
