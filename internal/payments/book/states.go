package book

import (
	"slices"

	"github.com/makola/makola/internal/provider"
)

// Event is the cause of a transition.
type Event string

// The events.
const (
	EventAccepted  Event = "accepted"
	EventDrawn     Event = "drawn"      // accepted from a batch, whose reserve pays
	EventReserved  Event = "reserved"   // accepted: a top-up that waits until its payer has paid
	EventFunded    Event = "funded"     // the payer paid: the top-up opens
	EventUnpaid    Event = "unpaid"     // the payer did not pay: the top-up ends
	EventMoved     Event = "moved"      // an operator transferred money between two tenants
	EventReceived  Event = "received"   // the receiver's side of such a transfer
	EventSending   Event = "sending"    // about to send a submission that must not be repeated
	EventRepeated  Event = "repeated"   // about to submit the same reference again
	EventRerouted  Event = "rerouted"   // no submission was processed: next attempt on another rail
	EventUnsent    Event = "unsent"     // the provider certainly did not process the flagged submission
	EventRefused   Event = "refused"    // refused by the provider, not yet confirmed by a status query
	EventTaken     Event = "taken"      // refused; a status query then found the payment at the provider
	EventApproved  Event = "approved"   // people of the account approved the payout
	EventAdopted   Event = "adopted"    // in a recovery: the provider has it from before the restore
	EventDoubted   Event = "doubted"    // unknown for too long, or a mismatch: operators are alerted
	EventAsked     Event = "asked"      // the provider asked for a voucher of the payer
	EventWaited    Event = "waited"     // the last submission has ended: an operator may resolve it
	EventSucceeded Event = "succeeded"  // success by provider or operator
	EventFailed    Event = "failed"     // failure by provider or operator
	EventPaidLate  Event = "paid_late"  // a failed collection was paid after all
	EventFoundPaid Event = "found_paid" // failed and refunded, then found paid
	EventReversed  Event = "reversed"   // successful, then reversed by the provider
	EventDisputed  Event = "disputed"   // a refunded collection that its provider reports as reversed
	EventOpposite  Event = "opposite"   // the provider contradicted its own contradiction, or a later report
)

// Place is a ledger account by its role in a payment.
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

// Sum selects the amount that a posting moves.
type Sum string

// The sums. A posting whose sum is zero is left out.
const (
	SumAmount  Sum = "amount"
	SumCharges Sum = "charges"
	SumHeld    Sum = "amount + charges"
	SumNet     Sum = "net amount"
	SumCovered Sum = "net amount, as far as the wallet covers"
	SumRest    Sum = "the rest of the net amount"
)

// Posting is one transfer of a transition. The ledger accepts each (subject, leg) once. Success, failure and an
// operator's decision share the leg final, so only one of them can post.
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

	// Posted in addition to LegFinal if the provider reports its costs.
	LegProviderFee = "provider_fee"
	LegCommission  = "commission"
)

// Transition is one change of state with its postings. If To has several states, the reason of the failure selects
// the state.
type Transition struct {
	Event    Event
	Kinds    []Kind
	From     Status // empty: the payment does not exist yet
	To       []Status
	Postings []Posting
	Callback bool   // the customer gets a webhook
	Note     string // printed in the document
}

// Transitions are all transitions. No other change of state is possible.
var Transitions = []Transition{
	{Event: EventAccepted, Kinds: []Kind{KindPayout}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}, {LegFee, PlaceWallet, PlaceClearing, SumCharges}}, Note: "without a job while it awaits approval"},
	{Event: EventDrawn, Kinds: []Kind{KindPayout}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceReserve, PlaceClearing, SumAmount}, {LegFee, PlaceReserve, PlaceClearing, SumCharges}}, Note: "a row of a batch, in the transaction that links the two"},
	{Event: EventAccepted, Kinds: []Kind{KindTopUp, KindBundle}, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}}},
	{Event: EventAccepted, Kinds: []Kind{KindCollection}, To: []Status{StatusPending}, Note: "moves no money until the payer has paid"},
	{Event: EventReserved, Kinds: []Kind{KindTopUp}, To: []Status{StatusWaiting}, Note: "airtime paid by mobile money, in the transaction of its collection"},
	{Event: EventMoved, Kinds: []Kind{KindPayout}, To: []Status{StatusSuccess}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}, {LegFinal, PlaceClearing, PlaceOther, SumAmount}}, Note: "channel WALLET"},
	{Event: EventReceived, Kinds: []Kind{KindPayout}, To: []Status{StatusSuccess}, Note: "the receiver's side, in the same transaction; moves no money"},

	{Event: EventFunded, Kinds: []Kind{KindTopUp}, From: StatusWaiting, To: []Status{StatusPending}, Postings: []Posting{
		{LegHold, PlaceWallet, PlaceClearing, SumAmount}}, Note: "in the transaction in which its collection succeeds"},
	{Event: EventUnpaid, Kinds: []Kind{KindTopUp}, From: StatusWaiting, To: []Status{StatusFailed}, Callback: true,
		Note: "in the transaction in which its collection fails"},

	{Event: EventApproved, Kinds: []Kind{KindPayout}, From: StatusPending, To: []Status{StatusPending}, Note: "by people of the account; the job is created"},
	{Event: EventSending, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "on rails without a distinct answer for a duplicate, and before a late first submission"},
	{Event: EventUnsent, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the flag before the submission is cleared"},
	{Event: EventRepeated, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "number of submissions + 1"},
	{Event: EventRerouted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "number of attempts + 1"},
	{Event: EventRefused, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the row stores the refusal; no money moves"},
	{Event: EventTaken, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the refusal is removed"},
	{Event: EventAdopted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "the provider has it already; it is not sent"},
	{Event: EventDoubted, Kinds: sent, From: StatusPending, To: []Status{StatusPending}, Note: "no money moves"},
	{Event: EventAsked, Kinds: []Kind{KindCollection}, From: StatusPending, To: []Status{StatusPending}, Note: "the provider asked for a voucher of the payer"},
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
		Note: "instead of reversed, if refunds are open or successful, unless the rail itself refunded the whole amount; alarm; an operator decides"},
	{Event: EventOpposite, Kinds: sent, From: StatusSuccess, To: []Status{StatusSuccess}, Note: "alarm; stored for the operator who decides"},
	{Event: EventOpposite, Kinds: []Kind{KindPayout, KindTopUp, KindBundle}, From: StatusFailed, To: []Status{StatusFailed},
		Note: "alarm; stored for the operator who decides"},
}

var (
	sent   = []Kind{KindCollection, KindPayout, KindTopUp, KindBundle}
	credit = []Posting{{LegFinal, PlaceFloat, PlaceWallet, SumNet}, {LegFinalFee, PlaceFloat, PlaceFees, SumCharges}}
)

// transitionFor returns the transition of an event from a status. ok is false if there is none.
func transitionFor(k Kind, from Status, e Event) (Transition, bool) {
	for i := range Transitions {
		a := &Transitions[i]
		if a.Event == e && a.From == from && slices.Contains(a.Kinds, k) {
			return *a, true
		}
	}
	return Transition{}, false
}

// failure returns the final status of a payment that fails with this reason.
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

// childEvent returns the event of the top-up whose collection became final.
func childEvent(collection Status) Event {
	if collection == StatusSuccess {
		return EventFunded
	}
	return EventUnpaid
}
