package book

import (
	"slices"

	"github.com/makola/makola/internal/provider"
)

// Event is what moves a payment.
type Event string

// The events.
const (
	EventAccepted  Event = "accepted"
	EventDrawn     Event = "drawn"      // accepted from a batch, whose reserve pays
	EventReserved  Event = "reserved"   // a top-up waits for its payer
	EventFunded    Event = "funded"     // the payer paid: the top-up opens
	EventUnpaid    Event = "unpaid"     // the payer did not pay: the top-up ends
	EventMoved     Event = "moved"      // an operator moved money between two tenants
	EventReceived  Event = "received"   // the same, in the list of the one who got it
	EventSending   Event = "sending"    // about to submit what must never be submitted twice
	EventRepeated  Event = "repeated"   // about to submit the same reference once more
	EventRerouted  Event = "rerouted"   // every submission was proven unsent: another rail, another attempt
	EventUnsent    Event = "unsent"     // the marked submission is proven not to have been processed
	EventRefused   Event = "refused"    // the provider refused it, and has not confirmed that when asked
	EventTaken     Event = "taken"      // refused at first, and now the provider says that it has it
	EventApproved  Event = "approved"   // the account's own people let a payout go that waited for them
	EventAdopted   Event = "adopted"    // in a recovery: a provider has it since the time that was lost
	EventDoubted   Event = "doubted"    // unknown for too long, or an answer did not match: operators are called
	EventWaited    Event = "waited"     // its follower has seen the last submission end: an operator may decide
	EventSucceeded Event = "succeeded"  // the provider, or an operator, says that it was done
	EventFailed    Event = "failed"     // the provider, or an operator, says that it was not
	EventPaidLate  Event = "paid_late"  // a collection that had ended was paid after all
	EventFoundPaid Event = "found_paid" // failed and refunded, then found paid
	EventReversed  Event = "reversed"   // done, then taken back by the provider
	EventDisputed  Event = "disputed"   // a refunded collection that its provider reports as reversed
	EventOpposite  Event = "opposite"   // the provider contradicts its own contradiction, or what came after
)

// Place is a ledger account named by its part in a payment.
type Place string

// The places of a posting.
const (
	PlaceWallet     Place = "wallet:<tenant>"
	PlaceOther      Place = "wallet:<other tenant>"
	PlaceReserve    Place = "reserve/<tenant>"
	PlaceClearing   Place = "clearing"
	PlaceFloat      Place = "float/<provider>/<account>"
	PlaceFees       Place = "fees"
	PlaceSuspense   Place = "suspense"
	PlaceReceivable Place = "receivable/<tenant>"
)

// Sum is which amount of the payment a posting moves.
type Sum string

// The sums. One that comes to zero posts nothing.
const (
	SumAmount  Sum = "amount"
	SumCharges Sum = "charges"
	SumHeld    Sum = "amount + charges"
	SumNet     Sum = "net amount"
	SumCovered Sum = "net amount, as far as the wallet covers"
	SumRest    Sum = "the rest of the net amount"
)

// Posting is one transfer of an arrow. The ledger takes each (subject, leg)
// once: success, failure and an operator's word share the leg final.
type Posting struct {
	Leg      string
	From, To Place
	Sum      Sum
}

// The legs.
const (
	LegHold             = "hold"
	LegFee              = "fee"
	LegFinal            = "final"
	LegFinalFee         = "final_fee"
	LegContradicted     = "turned"
	LegContradictedFee  = "turned_fee"
	LegContradictedRest = "turned_rest"

	// Beside final, where the provider says what it took or gave.
	LegProviderFee = "provider_fee"
	LegCommission  = "commission"
)

// Arrow is one transition from a state to another: who may take it, and what it posts.
// To lists more than one state where the reason decides.
type Arrow struct {
	Event    Event
	Kinds    []Kind
	From     Status // empty: the payment does not exist yet
	To       []Status
	Postings []Posting
	Callback bool   // the customer hears of it
	Note     string // for the document
}

// Arrows is the whole of it: what is not here cannot happen.
var Arrows = []Arrow{
	{Event: EventAccepted, Kinds: []Kind{KindPayout}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}, {LegFee, PlaceWallet, PlaceClearing, SumCharges}}, Note: "where it must be approved it waits, without a job"},
	{Event: EventDrawn, Kinds: []Kind{KindPayout}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceReserve, PlaceClearing, SumAmount}, {LegFee, PlaceReserve, PlaceClearing, SumCharges}}, Note: "a row of a batch, in the transaction that links the two"},
	{Event: EventAccepted, Kinds: []Kind{KindTopUp, KindBundle}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}}},
	{Event: EventAccepted, Kinds: []Kind{KindCollection}, To: []Status{StatusPending}, Note: "nothing moves before the payer has paid"},
	{Event: EventReserved, Kinds: []Kind{KindTopUp}, To: []Status{StatusWaiting}, Note: "airtime paid by mobile money, in the transaction of its collection"},
	{Event: EventMoved, Kinds: []Kind{KindPayout}, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}, {LegFinal, PlaceClearing, PlaceOther, SumAmount}}, Note: "channel WALLET"},
	{Event: EventReceived, Kinds: []Kind{KindPayout}, To: []Status{StatusSuccess}, Note: "the other tenant's side, in the same transaction; nothing moves by it"},

	{Event: EventFunded, Kinds: []Kind{KindTopUp}, From: StatusWaiting, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}}, Note: "in the transaction in which its collection succeeds"},
	{Event: EventUnpaid, Kinds: []Kind{KindTopUp}, From: StatusWaiting, To: []Status{StatusFailed}, Callback: true,
		Note: "in the transaction in which its collection fails"},

	{Event: EventApproved, Kinds: []Kind{KindPayout}, From: StatusPending, To: []Status{StatusPending}, Note: "a payout that waited for its account's own people; its job begins"},
	{Event: EventSending, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "on rails that cannot refuse a duplicate distinctly, and before a first submission that comes late"},
	{Event: EventUnsent, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the mark is taken back"},
	{Event: EventRepeated, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "posts + 1"},
	{Event: EventRerouted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "attempt + 1"},
	{Event: EventRefused, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the refusal stands on the row; the money stays where it is"},
	{Event: EventTaken, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the refusal is gone"},
	{Event: EventAdopted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "at the provider that has it; it is not sent"},
	{Event: EventDoubted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the money stays where it is"},
	{Event: EventWaited, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "two minutes passed since the last submission: an operator may decide"},

	{Event: EventSucceeded, Kinds: []Kind{KindPayout}, From: StatusPending, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegFinal, PlaceClearing, PlaceFloat, SumAmount}, {LegFinalFee, PlaceClearing, PlaceFees, SumCharges}}, Callback: true},
	{Event: EventSucceeded, Kinds: []Kind{KindTopUp, KindBundle}, From: StatusPending, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegFinal, PlaceClearing, PlaceFloat, SumAmount}}, Callback: true},
	{Event: EventSucceeded, Kinds: []Kind{KindCollection}, From: StatusPending, To: []Status{StatusSuccess}, Postings: credit, Callback: true},

	{Event: EventFailed, Kinds: []Kind{KindPayout, KindTopUp, KindBundle}, From: StatusPending, To: []Status{StatusFailed}, Postings: []Posting{
		{LegFinal, PlaceClearing, PlaceWallet, SumHeld}}, Callback: true, Note: "also a payout that was not approved"},
	{Event: EventFailed, Kinds: []Kind{KindCollection}, From: StatusPending, To: []Status{StatusFailed, StatusDeclined, StatusInvalid}, Callback: true},

	{Event: EventPaidLate, Kinds: []Kind{KindCollection}, From: StatusFailed, To: []Status{StatusSuccess}, Postings: credit, Callback: true, Note: "buys nothing"},
	{Event: EventPaidLate, Kinds: []Kind{KindCollection}, From: StatusDeclined, To: []Status{StatusSuccess}, Postings: credit, Callback: true, Note: "buys nothing"},
	{Event: EventPaidLate, Kinds: []Kind{KindCollection}, From: StatusInvalid, To: []Status{StatusSuccess}, Postings: credit, Callback: true, Note: "buys nothing"},

	{Event: EventFoundPaid, Kinds: []Kind{KindPayout, KindTopUp, KindBundle}, From: StatusFailed, To: []Status{StatusFailed}, Postings: []Posting{
		{LegContradicted, PlaceSuspense, PlaceFloat, SumAmount}}, Note: "alarm; an operator decides"},
	{Event: EventReversed, Kinds: []Kind{KindPayout, KindTopUp, KindBundle}, From: StatusSuccess, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegContradicted, PlaceFloat, PlaceSuspense, SumAmount}}, Note: "alarm; an operator decides"},
	{Event: EventReversed, Kinds: []Kind{KindCollection}, From: StatusSuccess, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegContradicted, PlaceWallet, PlaceFloat, SumCovered}, {LegContradictedRest, PlaceReceivable, PlaceFloat, SumRest},
		{LegContradictedFee, PlaceFees, PlaceFloat, SumCharges}}, Note: "alarm; the tenant's payouts are stopped"},
	{Event: EventDisputed, Kinds: []Kind{KindCollection}, From: StatusSuccess, To: []Status{StatusSuccess},
		Note: "in the place of reversed where refunds are open or done, unless the rail's own refunds are the whole; alarm; an operator decides"},
	{Event: EventOpposite, Kinds: sent, From: StatusSuccess, To: []Status{StatusSuccess}, Note: "alarm; kept for the operator who decides"},
	{Event: EventOpposite, Kinds: []Kind{KindPayout, KindTopUp, KindBundle}, From: StatusFailed, To: []Status{StatusFailed},
		Note: "alarm; kept for the operator who decides"},
}

var (
	sent   = []Kind{KindCollection, KindPayout, KindTopUp, KindBundle}
	credit = []Posting{{LegFinal, PlaceFloat, PlaceWallet, SumNet}, {LegFinalFee, PlaceFloat, PlaceFees, SumCharges}}
)

// arrow finds the arrow that event takes a payment along. Without one the
// event cannot happen to it.
func arrow(k Kind, from Status, e Event) (Arrow, bool) {
	for i := range Arrows {
		a := &Arrows[i]
		if a.Event == e && a.From == from && slices.Contains(a.Kinds, k) {
			return *a, true
		}
	}
	return Arrow{}, false
}

// failure is the state in which a refusal with this reason ends a payment.
func failure(k Kind, reason string) Status {
	switch {
	case k != KindCollection:
		return StatusFailed
	case provider.Declined(reason):
		return StatusDeclined
	case provider.Invalid(reason):
		return StatusInvalid
	}
	return StatusFailed
}

// childEvent is what becomes of the top-up of a collection that has ended.
func childEvent(collection Status) Event {
	if collection == StatusSuccess {
		return EventFunded
	}
	return EventUnpaid
}
