package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// The two rails of these tests. The first refuses duplicates distinctly, the second does not.
const (
	rowMTN    = true
	rowHubtel = false
)

// begun is when the payments of these tests were submitted.
const begun moment = 1

// sentOnce returns a payout whose only submission was just answered.
func sentOnce(mayRepeat bool) evidence {
	s := evidence{
		facts{kind: book.KindPayout, status: book.StatusPending, mayRepeat: mayRepeat, visibleAfter: 5 * time.Minute, unpaidAfter: 5 * time.Minute},
		observed{stage: stageMaybeSent, arrived: 1, openedAt: begun, sentAt: begun, lastSubmission: begun},
	}
	if mayRepeat {
		s.visibleAfter, s.unpaidAfter = time.Minute, 0
	}
	return s
}

// after judges reports in their order and returns the last verdict.
func (s evidence) after(words ...report) (evidence, verdict, string) {
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

// columns are the columns of the table of refusals: the provider's answer to a query after a refusal, and the time of
// the answer.
var columns = []struct {
	name  string
	words func(v time.Duration) []report
}{
	{"failed", func(time.Duration) []report { return []report{said(fromQuery, failed, time.Second)} }},
	{"not known before V", func(time.Duration) []report { return []report{said(fromQuery, notFound, time.Second)} }},
	{"not known after V, asked twice", func(v time.Duration) []report {
		return []report{said(fromQuery, notFound, v), said(fromQuery, notFound, v+time.Second)}
	}},
	{"not known after V", func(v time.Duration) []report {
		return []report{said(fromQuery, notFound, time.Second), said(fromQuery, notFound, 2*time.Second), said(fromQuery, notFound, v)}
	}},
	{"pending", func(time.Duration) []report { return []report{said(fromQuery, pending, time.Second)} }},
	{"success", func(time.Duration) []report { return []report{said(fromQuery, success, time.Second)} }},
	{"no answer", func(time.Duration) []report { return []report{said(fromQuery, unknown, time.Second)} }},
	{"speaks of another payment", func(time.Duration) []report {
		return []report{said(fromQuery, provider.Outcome{Reason: provider.ReasonMismatch}, time.Second)}
	}},
}

// Every row and column of the table of refusals has its verdict.
func TestJudge_tableOfRefusals(t *testing.T) {
	const (
		hold, operator, taken, again, paid, refund = verdictKeep, verdictOperator, verdictAcknowledged, verdictRepeat, verdictPaid, verdictRefund
	)
	repeat := func(s evidence) evidence { s.arrived++; return s }
	for _, row := range []struct {
		name     string
		mayPost  bool
		standing func(evidence) evidence
		word     report
		first    verdict   // verdict about the refusal itself
		want     []verdict // verdicts in the order of the columns
	}{
		{"clear", rowMTN, nil, said(fromSubmission, rejected, 0), verdictQuery,
			[]verdict{refund, refund, refund, refund, taken, paid, hold, operator}},
		{"clear", rowHubtel, nil, said(fromSubmission, rejected, 0), verdictQuery,
			[]verdict{refund, refund, refund, refund, taken, paid, hold, operator}},
		{"clear, to a repeated POST", rowMTN, repeat, said(fromSubmission, rejected, 0), verdictQuery,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"clear, to a repeated POST", rowHubtel, repeat, said(fromSubmission, rejected, 0), verdictQuery,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"clear, in recovery", rowHubtel, func(s evidence) evidence { s.recovering = true; return s }, said(fromSubmission, rejected, 0), verdictQuery,
			[]verdict{refund, hold, operator, refund, taken, paid, hold, operator}},
		{"bare", rowMTN, nil, said(fromSubmission, bare, 0), verdictQuery,
			[]verdict{refund, again, again, again, taken, paid, hold, operator}},
		{"bare", rowHubtel, nil, said(fromSubmission, bare, 0), verdictQuery,
			[]verdict{refund, hold, operator, operator, taken, paid, hold, operator}},
		{"turned away for 30 minutes", rowMTN, func(s evidence) evidence { s.allBarred, s.stage = true, stageUnsent; return s },
			said(fromDeadline, unsent, 0), verdictQuery, []verdict{refund, hold, operator, refund, taken, paid, operator, operator}},
		{"turned away for 30 minutes", rowHubtel, func(s evidence) evidence { s.allBarred, s.stage = true, stageUnsent; return s },
			said(fromDeadline, unsent, 0), verdictQuery, []verdict{refund, hold, operator, refund, taken, paid, operator, operator}},
		{"lost answer", rowMTN, nil, said(fromSubmission, unknown, 0), hold,
			[]verdict{refund, again, again, again, taken, paid, hold, operator}},
		{"lost answer", rowHubtel, nil, said(fromSubmission, unknown, 0), hold,
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

// For some providers nobody has measured VisibleAfter. Their not-found answer refunds no money at any age. Only a
// clear refusal of the only POST refunds it. A refusal because of the account's set-up goes to an operator at once.
func TestJudge_visibilityUnmeasured(t *testing.T) {
	unmeasured := func() evidence { s := sentOnce(rowMTN); s.visibleAfter = 0; return s }
	barredLong := func(s evidence) evidence { s.allBarred, s.stage = true, stageUnsent; return s }
	twice := func(s evidence) evidence { s.arrived = 2; return s }
	for name, tt := range map[string]struct {
		standing func(evidence) evidence
		first    report
		want     verdict // verdict about "not known", two days later
	}{
		"clear":              {nil, said(fromSubmission, rejected, 0), verdictRefund},
		"clear, repeated":    {twice, said(fromSubmission, rejected, 0), verdictOperator},
		"bare":               {nil, said(fromSubmission, bare, 0), verdictRepeat},
		"barred":             {barredLong, said(fromDeadline, unsent, 0), verdictOperator},
		"lost answer":        {nil, said(fromSubmission, unknown, 0), verdictRepeat},
		"accepted":           {nil, said(fromSubmission, pending, 0), verdictOperator},
		"accepted, then 404": {func(s evidence) evidence { s.acceptedAt = begun; s.refusal = book.RefusalClear; return s }, said(fromQuery, notFound, 1), verdictOperator},
	} {
		s := unmeasured()
		if tt.standing != nil {
			s = tt.standing(s)
		}
		s, _, _ = judge(s, tt.first)
		var v verdict
		for i := range 8 {
			at := time.Duration(i+1) * 6 * time.Hour
			before := s
			if s, v, _ = judge(s, said(fromQuery, notFound, at)); v == verdictRefund && tt.want != verdictRefund {
				t.Fatalf("%s: refund after %v from %+v", name, at, before)
			}
			if tt.want == verdictRepeat { // the repeated submission is refused again
				s.arrived++
				s, _, _ = judge(s, said(fromSubmission, tt.first.outcome, at))
			}
		}
		if v != tt.want {
			t.Errorf("%s: %d, want %d", name, v, tt.want)
		}
	}
	otp := provider.Outcome{Reason: provider.ReasonSetup, Code: "otp"}
	for _, from := range []source{fromSubmission, fromQuery} {
		if _, v, reason := judge(unmeasured(), said(from, otp, 0)); v != verdictOperator || reason != provider.ReasonSetup {
			t.Errorf("an OTP is wanted: %d, %q", v, reason)
		}
	}
}

// A submission that was not sent is refunded at once, but only if no earlier submission may have arrived.
func TestJudge_unsentIsRefunded(t *testing.T) {
	unposted := provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup}
	barredFirst := func(s evidence) evidence { s.arrived, s.allBarred = 2, true; return s }
	lostFirst := func(s evidence) evidence { s.arrived = 2; return s }
	recovering := func(s evidence) evidence { s.recovering = true; return s }
	nothingSent := func(s evidence) evidence { s.arrived, s.stage = 0, stageUnsent; return s }
	for _, tt := range []struct {
		name     string
		standing func(evidence) evidence
		word     report
		want     verdict
	}{
		{"the adapter refuses", nil, said(fromSubmission, unposted, 0), verdictRefund},
		{"the adapter refuses after a lost answer", lostFirst, said(fromSubmission, unposted, 0), verdictKeep},
		{"the adapter refuses in recovery", recovering, said(fromSubmission, unposted, 0), verdictKeep},
		{"not written", nil, said(fromSubmission, unsent, 0), verdictResend},
		{"not written after 403", barredFirst, said(fromSubmission, unsent, 0), verdictResend},
		{"not written after a lost answer", lostFirst, said(fromSubmission, unsent, 0), verdictKeep},
		{"turned away", nil, said(fromSubmission, barred, 0), verdictResend},
		{"turned away again", barredFirst, said(fromSubmission, barred, 0), verdictResend},
		{"turned away after a lost answer", lostFirst, said(fromSubmission, barred, 0), verdictKeep},
		{"never written for 30 minutes", nothingSent, said(fromDeadline, unsent, 0), verdictRefund},
		{"never written for 30 minutes in recovery", func(s evidence) evidence { return recovering(nothingSent(s)) }, said(fromDeadline, unsent, 0), verdictQuery},
		{"turned away for 30 minutes", barredFirst, said(fromDeadline, unsent, 0), verdictQuery},
		{"an answer about another payment", nil, said(fromSubmission, provider.Outcome{Reason: provider.ReasonMismatch}, 0), verdictOperator},
		{"done at once", nil, said(fromSubmission, success, 0), verdictPaid},
		{"failed at once", nil, said(fromSubmission, failed, 0), verdictQuery},
		{"a duplicate that is recognised", lostFirst, said(fromSubmission, repeated, 0), verdictAcknowledged},
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

// A bare refusal that is repeated counts only under three conditions. The provider refuses duplicates distinctly, a
// minute has passed since the first refusal, and there was no acknowledgement between them.
func TestJudge_bareRefusalRepeated(t *testing.T) {
	lives := func(last time.Duration, between provider.Outcome) verdict {
		s, _, _ := judge(sentOnce(rowMTN), said(fromSubmission, bare, 0))
		for _, at := range []time.Duration{time.Second, 3 * time.Second, 20 * time.Second} {
			var v verdict
			s, v, _ = judge(s, said(fromQuery, between, at))
			if between.NotFound && v != verdictRepeat {
				t.Errorf("not known after %v: %d", at, v)
			}
			s.arrived++
			if s, v, _ = judge(s, said(fromSubmission, bare, at+time.Second)); between.NotFound && v != verdictKeep {
				t.Errorf("refused again after %v: %d, the next POST must come by the schedule", at, v)
			}
		}
		s.arrived++
		s, _, _ = judge(s, said(fromSubmission, bare, last))
		_, v, _ := judge(s, said(fromQuery, notFound, last+time.Second))
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
	elsewhere.refusal, elsewhere.refusedAt, elsewhere.refusedLast, elsewhere.reads = book.RefusalBare, begun, begun.Add(time.Hour), notFoundReads
	if _, v, _ := judge(elsewhere, said(fromQuery, notFound, 2*time.Hour)); v != verdictOperator {
		t.Errorf("refused again where duplicates are not refused distinctly: %d", v)
	}
	if v := lives(time.Minute, pending); v == verdictRefund {
		t.Error("refused again, though it was known in between")
	}
}

// Unpaid may mean open or failed. Only a second Unpaid after a pause therefore fails the payment.
func TestJudge_unpaidTwice(t *testing.T) {
	unpaid := provider.Outcome{Class: provider.Accepted, Unpaid: true}
	question := func(at time.Duration) report { return said(fromQuery, unpaid, at) }
	collection := sentOnce(rowHubtel)
	collection.kind = book.KindCollection
	repeated := collection
	repeated.arrived = 2
	sale := sentOnce(rowHubtel)
	sale.kind = book.KindTopUp
	refused := said(fromSubmission, rejected, 0)
	for _, tt := range []struct {
		name  string
		of    evidence
		words []report
		want  verdict
	}{
		{"a collection", collection, []report{question(time.Minute)}, verdictAcknowledged},
		{"a collection past the provider's time", collection, []report{question(5 * time.Minute)}, verdictAcknowledged},
		{"a collection, nine minutes later", collection, []report{question(6 * time.Minute), question(15 * time.Minute)}, verdictAcknowledged},
		{"a collection, ten minutes later", collection, []report{question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a collection after a clear refusal", collection, []report{refused, question(time.Second)}, verdictAcknowledged},
		{"a collection after a clear refusal, past the provider's time", collection,
			[]report{refused, question(time.Second), question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a collection after a clear refusal of a repeated POST", repeated, []report{refused, question(time.Second)}, verdictAcknowledged},
		{"a sale past the provider's time", sale, []report{question(6 * time.Minute)}, verdictAcknowledged},
		{"a sale, nine minutes later", sale, []report{question(6 * time.Minute), question(15 * time.Minute)}, verdictAcknowledged},
		{"a sale, ten minutes later", sale, []report{question(6 * time.Minute), question(16 * time.Minute)}, verdictRefund},
		{"a sale, known in another word between", sale,
			[]report{question(6 * time.Minute), said(fromQuery, pending, 10*time.Minute), question(16 * time.Minute)}, verdictAcknowledged},
		{"a sale, the first too early to count", sale, []report{question(4 * time.Minute), question(14 * time.Minute)}, verdictAcknowledged},
		{"a sale after a clear refusal", sale, []report{refused, question(time.Second)}, verdictAcknowledged},
	} {
		if _, v, _ := tt.of.after(tt.words...); v != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, v, tt.want)
		}
	}
}

// An operator's decision about an unknown outcome counts after the last submission has ended. For any other status it
// counts at once.
func TestJudge_operatorWaits(t *testing.T) {
	s := sentOnce(rowHubtel)
	waited := s
	waited.waited = true
	for _, tt := range []struct {
		of   evidence
		said provider.Outcome
		want verdict
	}{{s, success, verdictTooSoon}, {s, failed, verdictTooSoon}, {waited, success, verdictPaid}, {waited, failed, verdictRefund}} {
		if _, v, _ := judge(tt.of, said(fromOperator, tt.said, 24*time.Hour)); v != tt.want {
			t.Errorf("%v, waited %v: %d, want %d", tt.said.State, tt.of.waited, v, tt.want)
		}
	}
}

// Every contradiction of the last report is stored. Nothing else changes a final payment.
func TestJudge_finalPayment(t *testing.T) {
	turned := morning
	for _, tt := range []struct {
		name                    string
		row                     book.Payment
		paid, failed, nothingOf verdict
	}{
		{"paid", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess}, verdictUnchanged, verdictReversed, verdictUnchanged},
		{"refunded", book.Payment{Kind: book.KindTopUp, Status: book.StatusFailed}, verdictFoundPaid, verdictUnchanged, verdictUnchanged},
		{"declined", book.Payment{Kind: book.KindCollection, Status: book.StatusDeclined}, verdictPaidLate, verdictUnchanged, verdictUnchanged},
		{"invalid", book.Payment{Kind: book.KindCollection, Status: book.StatusInvalid}, verdictPaidLate, verdictUnchanged, verdictUnchanged},
		{"collected", book.Payment{Kind: book.KindCollection, Status: book.StatusSuccess}, verdictUnchanged, verdictReversed, verdictUnchanged},
		{"paid, taken back", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess, ContradictedAt: turned}, verdictOpposite, verdictUnchanged, verdictUnchanged},
		{"refunded, found paid", book.Payment{Kind: book.KindPayout, Status: book.StatusFailed, ContradictedAt: turned}, verdictUnchanged, verdictOpposite, verdictUnchanged},
		{"paid, taken back, paid", book.Payment{Kind: book.KindPayout, Status: book.StatusSuccess, ContradictedAt: turned, LastReported: "success"},
			verdictUnchanged, verdictOpposite, verdictUnchanged},
		{"refunded, found paid, failed, paid", book.Payment{Kind: book.KindPayout, Status: book.StatusFailed, ContradictedAt: turned, LastReported: "success"},
			verdictUnchanged, verdictOpposite, verdictUnchanged},
	} {
		s := evidenceOf(tt.row, provider.Rail{Name: "hubtel"}, begun)
		for _, word := range []struct {
			said provider.Outcome
			want verdict
		}{{success, tt.paid}, {failed, tt.failed}, {pending, tt.nothingOf}, {notFound, tt.nothingOf}, {unknown, tt.nothingOf}, {rejected, tt.nothingOf}} {
			if _, v, _ := judge(s, said(fromQuery, word.said, 0)); v != word.want {
				t.Errorf("%s, then %v %v: %d, want %d", tt.name, word.said.Class, word.said.State, v, word.want)
			}
		}
	}
}
