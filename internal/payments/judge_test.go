package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// The rails of the judge's tests: one that refuses duplicates distinctly, one
// that does not.
const (
	rowMTN    = true
	rowHubtel = false
)

// begun is the moment at which the payments of the judge's tests were submitted.
const begun moment = 1

// sentOnce is a payout whose only POST was just answered.
func sentOnce(mayRepeat bool) standing {
	s := standing{
		facts{kind: book.KindPayout, status: book.StatusPending, mayRepeat: mayRepeat, visibleAfter: 5 * time.Minute, unpaidAfter: 5 * time.Minute},
		observed{stage: stageUnsure, arrived: 1, openedAt: begun, sentAt: begun, lastPost: begun},
	}
	if mayRepeat {
		s.visibleAfter, s.unpaidAfter = time.Minute, 0
	}
	return s
}

// after has words judged one after the other and answers the last verdict.
func (s standing) after(words ...report) (standing, verdict, string) {
	var v verdict
	var reason string
	for _, w := range words {
		s, v, reason = judge(s, w)
	}
	return s, v, reason
}

func said(from source, o provider.Outcome, at time.Duration) report {
	return report{from, o, begun.Add(at)}
}

// The columns of the table of refusals: what the provider answers when it is
// asked about a refusal, and when.
var columns = []struct {
	name  string
	words func(v time.Duration) []report
}{
	{"failed", func(time.Duration) []report { return []report{said(fromQuestion, failed, time.Second)} }},
	{"not known before V", func(time.Duration) []report { return []report{said(fromQuestion, notFound, time.Second)} }},
	{"not known after V, asked twice", func(v time.Duration) []report {
		return []report{said(fromQuestion, notFound, v), said(fromQuestion, notFound, v+time.Second)}
	}},
	{"not known after V", func(v time.Duration) []report {
		return []report{said(fromQuestion, notFound, time.Second), said(fromQuestion, notFound, 2*time.Second), said(fromQuestion, notFound, v)}
	}},
	{"pending", func(time.Duration) []report { return []report{said(fromQuestion, pending, time.Second)} }},
	{"success", func(time.Duration) []report { return []report{said(fromQuestion, success, time.Second)} }},
	{"no answer", func(time.Duration) []report { return []report{said(fromQuestion, unknown, time.Second)} }},
	{"speaks of another payment", func(time.Duration) []report {
		return []report{said(fromQuestion, provider.Outcome{Reason: provider.ReasonMismatch}, time.Second)}
	}},
}

// TestTableOfRefusals goes through every row and column of the table of refusals.
func TestTableOfRefusals(t *testing.T) {
	const (
		hold, operator, taken, again, paid, refund = verdictHold, verdictOperator, verdictTaken, verdictRepeat, verdictPaid, verdictRefund
	)
	repeat := func(s standing) standing { s.arrived++; return s }
	for _, row := range []struct {
		name     string
		mayPost  bool
		standing func(standing) standing
		word     report
		first    verdict   // of the refusal itself
		want     []verdict // in the order of columns
	}{
		{"clear", rowMTN, nil, said(fromPost, rejected, 0), verdictAsk,
			[]verdict{refund, refund, refund, refund, taken, paid, hold, operator}},
		{"clear", rowHubtel, nil, said(fromPost, rejected, 0), verdictAsk,
			[]verdict{refund, refund, refund, refund, taken, paid, hold, operator}},
		{"clear, to a repeated POST", rowMTN, repeat, said(fromPost, rejected, 0), verdictAsk,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"clear, to a repeated POST", rowHubtel, repeat, said(fromPost, rejected, 0), verdictAsk,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"clear, in recovery", rowHubtel, func(s standing) standing { s.recovering = true; return s }, said(fromPost, rejected, 0), verdictAsk,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"bare", rowMTN, nil, said(fromPost, bare, 0), verdictAsk,
			[]verdict{refund, again, again, again, taken, paid, hold, operator}},
		{"bare", rowHubtel, nil, said(fromPost, bare, 0), verdictAsk,
			[]verdict{refund, hold, operator, operator, taken, paid, hold, operator}},
		{"turned away for 30 minutes", rowMTN, func(s standing) standing { s.turnedAway, s.stage = true, stageUnsent; return s },
			said(fromTime, unsent, 0), verdictAsk, []verdict{refund, hold, operator, refund, taken, paid, operator, operator}},
		{"turned away for 30 minutes", rowHubtel, func(s standing) standing { s.turnedAway, s.stage = true, stageUnsent; return s },
			said(fromTime, unsent, 0), verdictAsk, []verdict{refund, hold, operator, refund, taken, paid, operator, operator}},
		{"lost answer", rowMTN, nil, said(fromPost, unknown, 0), hold,
			[]verdict{refund, again, again, again, taken, paid, hold, operator}},
		{"lost answer", rowHubtel, nil, said(fromPost, unknown, 0), hold,
			[]verdict{refund, hold, operator, operator, taken, paid, hold, operator}},
	} {
		for i, column := range columns {
			s := sentOnce(row.mayPost)
			if row.standing != nil {
				s = row.standing(s)
			}
			after, v, _ := s.after(row.word)
			if v != row.first {
				t.Errorf("%s (may repeat: %v): %d, want %d", row.name, row.mayPost, v, row.first)
			}
			_, v, _ = after.after(column.words(s.visibleAfter)...)
			if v != row.want[i] {
				t.Errorf("%s (may repeat: %v), then %s: %d, want %d", row.name, row.mayPost, column.name, v, row.want[i])
			}
		}
	}
}

// TestProofNeedsNoQuestion: what was never posted, and what our socket never
// wrote, goes back at once, but only while no earlier POST may have arrived.
func TestProofNeedsNoQuestion(t *testing.T) {
	unposted := provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup}
	barredFirst := func(s standing) standing { s.arrived, s.turnedAway = 2, true; return s }
	lostFirst := func(s standing) standing { s.arrived = 2; return s }
	recovering := func(s standing) standing { s.recovering = true; return s }
	nothingSent := func(s standing) standing { s.arrived, s.stage = 0, stageUnsent; return s }
	for _, tt := range []struct {
		name     string
		standing func(standing) standing
		word     report
		want     verdict
	}{
		{"the adapter refuses", nil, said(fromPost, unposted, 0), verdictRefund},
		{"the adapter refuses after a lost answer", lostFirst, said(fromPost, unposted, 0), verdictHold},
		{"the adapter refuses in recovery", recovering, said(fromPost, unposted, 0), verdictHold},
		{"not written", nil, said(fromPost, unsent, 0), verdictResend},
		{"not written after 403", barredFirst, said(fromPost, unsent, 0), verdictResend},
		{"not written after a lost answer", lostFirst, said(fromPost, unsent, 0), verdictHold},
		{"turned away", nil, said(fromPost, turnedOff, 0), verdictResend},
		{"turned away again", barredFirst, said(fromPost, turnedOff, 0), verdictResend},
		{"turned away after a lost answer", lostFirst, said(fromPost, turnedOff, 0), verdictHold},
		{"never written for 30 minutes", nothingSent, said(fromTime, unsent, 0), verdictRefund},
		{"never written for 30 minutes in recovery", func(s standing) standing { return recovering(nothingSent(s)) }, said(fromTime, unsent, 0), verdictAsk},
		{"turned away for 30 minutes", barredFirst, said(fromTime, unsent, 0), verdictAsk},
		{"an answer about another payment", nil, said(fromPost, provider.Outcome{Reason: provider.ReasonMismatch}, 0), verdictOperator},
		{"done at once", nil, said(fromPost, success, 0), verdictPaid},
		{"failed at once", nil, said(fromPost, failed, 0), verdictAsk},
		{"a duplicate that is recognised", lostFirst, said(fromPost, repeated, 0), verdictTaken},
	} {
		for _, mayRepeat := range []bool{rowMTN, rowHubtel} {
			s := sentOnce(mayRepeat)
			if tt.standing != nil {
				s = tt.standing(s)
			}
			if _, v, _ := s.after(tt.word); v != tt.want {
				t.Errorf("%s (may repeat: %v): %d, want %d", tt.name, mayRepeat, v, tt.want)
			}
		}
	}
}

// TestABareRefusalIsBelievedWhenItComesAgain: only where the provider refuses
// duplicates distinctly, a minute after the first, and not known in between.
func TestABareRefusalIsBelievedWhenItComesAgain(t *testing.T) {
	lives := func(last time.Duration, between provider.Outcome) verdict {
		s, _, _ := judge(sentOnce(rowMTN), said(fromPost, bare, 0))
		for _, at := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
			var v verdict
			s, v, _ = judge(s, said(fromQuestion, between, at))
			if between.NotFound && v != verdictRepeat {
				t.Errorf("not known after %v: %d", at, v)
			}
			s.arrived++
			if s, v, _ = judge(s, said(fromPost, bare, at+time.Second)); between.NotFound && v != verdictHold {
				t.Errorf("refused again after %v: %d, the next POST must come by the schedule", at, v)
			}
		}
		s.arrived++
		s, _, _ = judge(s, said(fromPost, bare, last))
		_, v, _ := judge(s, said(fromQuestion, notFound, last+time.Second))
		return v
	}
	if v := lives(59*time.Second, notFound); v != verdictRepeat {
		t.Errorf("refused again too soon: %d", v)
	}
	if v := lives(time.Minute, notFound); v != verdictRefund {
		t.Errorf("refused again a minute later: %d", v)
	}
	if v := lives(time.Minute, unknown); v != verdictRepeat {
		t.Errorf("refused again, asked in vain in between: %d", v)
	}
	elsewhere := sentOnce(rowHubtel)
	elsewhere.refusal, elsewhere.refusedAt, elsewhere.refusedLast, elsewhere.reads = book.RefusalBare, begun, begun.Add(time.Hour), knownReads
	if _, v, _ := judge(elsewhere, said(fromQuestion, notFound, 2*time.Hour)); v != verdictOperator {
		t.Errorf("refused again where duplicates are not refused distinctly: %d", v)
	}
	if v := lives(time.Minute, pending); v == verdictRefund {
		t.Error("refused again, though it was known in between")
	}
}

// TestUnpaidIsAWordForOpenAndForFailed: a word for what is open and for what has failed.
func TestUnpaidIsAWordForOpenAndForFailed(t *testing.T) {
	unpaid := provider.Outcome{Class: provider.Accepted, Unpaid: true}
	question := func(at time.Duration) report { return said(fromQuestion, unpaid, at) }
	collection := sentOnce(rowHubtel)
	collection.kind = book.KindCollection
	repeated := collection
	repeated.arrived = 2
	sale := sentOnce(rowHubtel)
	sale.kind = book.KindTopUp
	refused := said(fromPost, rejected, 0)
	for _, tt := range []struct {
		name  string
		of    standing
		words []report
		want  verdict
	}{
		{"a collection", collection, []report{question(time.Minute)}, verdictTaken},
		{"a collection past the provider's time", collection, []report{question(5 * time.Minute)}, verdictTaken},
		{"a collection, nine minutes later", collection, []report{question(6 * time.Minute), question(15 * time.Minute)}, verdictTaken},
		{"a collection, ten minutes later", collection, []report{question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a collection after a clear refusal", collection, []report{refused, question(time.Second)}, verdictTaken},
		{"a collection after a clear refusal, past the provider's time", collection,
			[]report{refused, question(time.Second), question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a collection after a clear refusal of a repeated POST", repeated, []report{refused, question(time.Second)}, verdictTaken},
		{"a sale past the provider's time", sale, []report{question(6 * time.Minute)}, verdictTaken},
		{"a sale, nine minutes later", sale, []report{question(6 * time.Minute), question(15 * time.Minute)}, verdictTaken},
		{"a sale, ten minutes later", sale, []report{question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a sale, known in another word between", sale,
			[]report{question(6 * time.Minute), said(fromQuestion, pending, 10*time.Minute), question(16 * time.Minute)}, verdictTaken},
		{"a sale, the first too early to count", sale, []report{question(4 * time.Minute), question(14 * time.Minute)}, verdictTaken},
		{"a sale after a clear refusal", sale, []report{refused, question(time.Second)}, verdictTaken},
	} {
		if _, v, _ := tt.of.after(tt.words...); v != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, v, tt.want)
		}
	}
}

// TestOperatorsWord_waits: an operator decides when the process that follows the payment has seen its last submission
// end, and any other status counts at once.
func TestOperatorsWord_waits(t *testing.T) {
	s := sentOnce(rowHubtel)
	waited := s
	waited.waited = true
	for _, tt := range []struct {
		of   standing
		said provider.Outcome
		want verdict
	}{{s, success, verdictTooSoon}, {s, failed, verdictTooSoon}, {waited, success, verdictPaid}, {waited, failed, verdictRefund}} {
		if _, v, _ := judge(tt.of, said(fromOperator, tt.said, 24*time.Hour)); v != tt.want {
			t.Errorf("%v, waited %v: %d, want %d", tt.said.State, tt.of.waited, v, tt.want)
		}
	}
}

// TestWordsAboutAFinalPayment: what contradicts the last word is kept, however
// many there are; nothing else changes a final payment.
func TestWordsAboutAFinalPayment(t *testing.T) {
	turned := morning
	for _, tt := range []struct {
		name                    string
		row                     book.Payment
		paid, failed, nothingOf verdict
	}{
		{"paid", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess}, verdictNothing, verdictReversed, verdictNothing},
		{"refunded", book.Payment{Kind: book.KindTopUp, Status: book.StatusFailed}, verdictFoundPaid, verdictNothing, verdictNothing},
		{"declined", book.Payment{Kind: book.KindCollection, Status: book.StatusDeclined}, verdictPaidLate, verdictNothing, verdictNothing},
		{"invalid", book.Payment{Kind: book.KindCollection, Status: book.StatusInvalid}, verdictPaidLate, verdictNothing, verdictNothing},
		{"collected", book.Payment{Kind: book.KindCollection, Status: book.StatusSuccess}, verdictNothing, verdictReversed, verdictNothing},
		{"paid, taken back", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess, ContradictedAt: turned}, verdictOpposite, verdictNothing, verdictNothing},
		{"refunded, found paid", book.Payment{Kind: book.KindPayout, Status: book.StatusFailed, ContradictedAt: turned}, verdictNothing, verdictOpposite, verdictNothing},
		{"paid, taken back, paid", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess, ContradictedAt: turned, LastWord: "success"},
			verdictNothing, verdictOpposite, verdictNothing},
		{"refunded, found paid, failed, paid", book.Payment{Kind: book.KindPayout, Status: book.StatusFailed, ContradictedAt: turned, LastWord: "success"},
			verdictNothing, verdictOpposite, verdictNothing},
	} {
		s := standingOf(tt.row, provider.Rail{Name: "hubtel"}, begun)
		for _, word := range []struct {
			said provider.Outcome
			want verdict
		}{{success, tt.paid}, {failed, tt.failed}, {pending, tt.nothingOf}, {notFound, tt.nothingOf}, {unknown, tt.nothingOf}, {rejected, tt.nothingOf}} {
			if _, v, _ := judge(s, said(fromQuestion, word.said, 0)); v != word.want {
				t.Errorf("%s, then %v %v: %d, want %d", tt.name, word.said.Class, word.said.State, v, word.want)
			}
		}
	}
}
