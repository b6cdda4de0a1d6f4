package reconcile

import (
	"fmt"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// Rule names the reason why a line and a payment are the same movement. Values are stored and never change.
type Rule string

// The rules, the strongest first.
const (
	RuleProviderID Rule = "provider_id" // the provider's id of the payment
	RuleReference  Rule = "reference"   // our ProviderReference is in the column for it
	RuleSettlement Rule = "settlement"  // the lines of one settlement add up to it
	RuleSimilar    Rule = "similar"     // amount, party and time agree, and no other line or payment has them
	RuleNarrative  Rule = "narrative"   // our reference in a text, and amount, direction and time agree
	RulePerson     Rule = "person"
)

// Leg is the movement of a payment that a line shows. Values are stored and never change.
type Leg string

// The legs.
const (
	LegMovement   Leg = "movement"
	LegReversal   Leg = "reversal"
	LegSettlement Leg = "settlement"
)

// Kind is the kind of difference between a statement and our payments. Values are stored and never change.
type Kind string

// The kinds of exceptions.
const (
	TheirsOnly Kind = "theirs_only" // a line without a payment
	OursOnly   Kind = "ours_only"   // a payment that a statement without gaps does not have
	AmountOff  Kind = "amount"
	FeeOff     Kind = "fee"
	StateOff   Kind = "state" // the line says paid and our books do not, or the reverse
	Twice      Kind = "twice" // two lines for one payment
)

// Kinds returns the kinds of exceptions.
func Kinds() []Kind { return []Kind{TheirsOnly, OursOnly, AmountOff, FeeOff, StateOff, Twice} }

// ours is a payment with the members that matching needs.
type ours struct {
	ID        string
	AtRail    string // provider to which the reference was sent
	Current   bool   // the attempt is the payment's last one
	Amount    money.Pesewas
	In        bool // the movement is money that comes in
	Open      bool
	Paid      bool // our books contain the movement at the provider
	Upstream  string
	Party     string
	From      time.Time // the money cannot have moved before this time
	Until     time.Time // the money may have moved until this time
	Fee       money.Pesewas
	Reversal  bool           // a line of its reversal is matched
	Moved     *money.Pesewas // change of the balance by the line of the movement, for a payment with a reversal; nil: unknown
	Movement  string
	Reversing string // the lines that are matched
	Denied    string // the failed line that has the exception of a paid payment
}

// early is how far a provider's clock may be behind ours.
const early = 5 * time.Minute

// oursOf returns a payment for matching.
func oursOf(p book.Payment) ours {
	until := p.SettledAt
	if last := p.SubmittableSince(); last.After(until) {
		until = last
	}
	if until.IsZero() {
		until = p.CreatedAt
	}
	return ours{ID: p.ID, AtRail: p.Rail, Current: true, Amount: p.Gross(), In: p.Kind == book.KindCollection, Open: p.Status.Open(), Paid: !p.Status.Open() && p.ProviderState() == provider.Success,
		Upstream: p.UpstreamID, Party: p.Account, From: p.CreatedAt.Add(-early), Until: until}
}

// signed returns the amount with the sign that a line has.
func (o ours) signed() money.Pesewas {
	if o.In {
		return o.Amount
	}
	return -o.Amount
}

// held returns the amount of the movement in our books, less the provider's fee, with the sign that a line has.
func (o ours) held() money.Pesewas { return o.signed() - o.Fee }

// expected returns the amount that a line of the payment's movement has by our books.
func (o ours) expected(l Line) money.Pesewas {
	if l.net {
		return o.held()
	}
	return o.signed()
}

// mostFee is the largest plausible fee of a small payout. For other payments it is a tenth of the amount.
const mostFee = 10 * money.Cedi

// has reports whether a line has the amount of the payment's movement. The fee of a payment that is not paid here is
// unknown, so an amount less a plausible fee is also its amount.
func (o ours) has(l Line) bool {
	if fee := o.signed() - l.Amount; l.net && !o.Paid && fee >= 0 {
		return fee <= o.Amount/10 || !o.In && fee <= mostFee
	}
	return l.Amount == o.expected(l)
}

// leg returns the movement of a payment that a line shows. A line in the other direction shows its reversal.
func (o ours) leg(l Line) Leg {
	if (l.Amount > 0) == o.In {
		return LegMovement
	}
	return LegReversal
}

// agrees reports whether amount, direction and time of a line are those of the payment.
func (o ours) agrees(l Line, lag time.Duration) bool {
	return l.Amount == o.signed() && !l.At.Before(o.From) && !l.At.After(o.Until.Add(lag))
}

// taken returns the line that is matched with the leg. It is empty if there is none.
func (o ours) taken(leg Leg) string {
	if leg == LegReversal {
		return o.Reversing
	}
	return o.Movement
}

// Difference is one way in which the two sides of a match differ.
type Difference struct {
	Kind   Kind
	Amount money.Pesewas // by how much
	Delta  money.Pesewas // how much more money the statement has than our books because of it; below zero: less
	Reason string
}

// verdict is the result for a line.
type verdict struct {
	payment     string
	leg         Leg
	rule        Rule // rule of the match; empty: no match
	differences []Difference
	line        string   // that has the differences; empty: the one decided about
	also        []string // lines that the verdict is about, too
	givenUp     bool     // the line is of an attempt that was given up
}

// byReference decides about a line that names a payment by our reference or by the provider's id.
func byReference(l Line, o ours, rule Rule, lag time.Duration, now time.Time) verdict {
	v := verdict{payment: o.ID, leg: o.leg(l)}
	switch {
	case l.Status == StatusPending:
		return verdict{}
	case l.Status == StatusFailed:
		if o.Paid && o.Current && o.Movement == "" && v.leg == LegMovement && (o.Denied == "" || o.Denied == l.ID) {
			v.differences = []Difference{{StateOff, o.Amount, -o.held(), "The payment failed according to the provider's statement, but succeeded here."}}
		}
		return v
	case !o.Current:
		v.differences = []Difference{abandoned(l.Amount, l.change())}
		return v
	}
	if other := o.taken(v.leg); other != "" && other != l.ID {
		v.differences = []Difference{{Twice, magnitude(l.Amount), l.change(), "The statement has a second line for the payment. " + paid(v.leg, o)}}
		return v
	}
	v.rule = rule
	v.differences = compare(l, o, v.leg, lag, now)
	return v
}

// abandoned returns the exception of an attempt that was given up and whose lines have moved an amount. Our books have
// nothing of it, and the payment's own movement is that of another attempt, so its lines match no payment.
func abandoned(amount, change money.Pesewas) Difference {
	return Difference{StateOff, magnitude(amount), change, "The provider paid an attempt that was given up for another provider. The payment may have been paid twice."}
}

func paid(leg Leg, o ours) string {
	if leg == LegReversal {
		return "It was reversed twice."
	}
	if o.In {
		return "The payer may have paid twice."
	}
	return "It may have been paid twice."
}

// compare returns the differences between a line that moved money and its payment. If the books do not have the
// payment's movement, the difference is the whole line.
func compare(l Line, o ours, leg Leg, lag time.Duration, now time.Time) (list []Difference) {
	state := ""
	switch {
	case leg == LegReversal && o.Paid && magnitude(l.Amount) < o.Amount:
		state = fmt.Sprintf("The provider took back %s of the payment, and it is successful here with %s.", cedis(magnitude(l.Amount)), cedis(o.Amount))
	case leg == LegReversal && o.Paid:
		state = "The provider reversed the payment, but it is successful here."
	case leg == LegReversal || o.Reversal && !o.Paid:
	case o.Open && now.Sub(l.At) > lag:
		state = "The payment was made according to the provider's statement, but its outcome is unknown here."
	case !o.Open && !o.Paid:
		state = "The payment was made according to the provider's statement, but failed here."
	}
	expected := o.expected(l)
	if off := l.Amount - expected; leg == LegMovement && !o.has(l) {
		d := Difference{AmountOff, magnitude(off), 0, fmt.Sprintf("The statement has %s, and the payment has %s.", cedis(magnitude(l.Amount)), cedis(magnitude(expected)))}
		if o.Paid { // otherwise a difference of state has all of the line
			d.Delta = off
		}
		list = append(list, d)
	}
	if leg == LegReversal && !o.Paid {
		list = append(list, takenBack(l, o)...)
	}
	if off := l.Fee - o.Fee; off != 0 && l.FeeKnown && leg == LegMovement {
		d := Difference{FeeOff, magnitude(off), 0, fmt.Sprintf("The statement has a fee of %s, and %s is booked.", cedis(l.Fee), cedis(o.Fee))}
		if o.Paid {
			d.Delta = -off
		}
		list = append(list, d)
	}
	if state != "" {
		list = append(list, Difference{StateOff, o.Amount, l.change(), state})
	}
	return list
}

// takenBack returns the difference between a reversal and the movement that it reverses. Our books have both or neither, so the two
// lines must add up to zero.
func takenBack(l Line, o ours) []Difference {
	if o.Movement == "" {
		return []Difference{{AmountOff, magnitude(l.change()), l.change(), fmt.Sprintf("The provider took back %s of a movement that the statements do not have.", cedis(magnitude(l.change())))}}
	}
	moved := o.held()
	if o.Moved != nil {
		moved = *o.Moved
	}
	off := l.change() + moved
	if off == 0 {
		return nil
	}
	return []Difference{{AmountOff, magnitude(off), off, fmt.Sprintf("The provider took back %s of a movement of %s.", cedis(magnitude(l.change())), cedis(magnitude(moved)))}}
}

func cedis(amount money.Pesewas) string { return "GHS " + money.Grouped(amount.String()) }

// bySimilar decides about a line by the payments with the same amount, direction and party within the lag. rivals is
// the number of unmatched lines that could be the same payment.
func bySimilar(l Line, candidates []ours, rivals int, lag time.Duration) (o ours, ok bool) {
	found := 0
	for _, c := range candidates {
		if c.Movement == "" && c.Party != "" && c.Party == l.Party && c.agrees(l, lag) {
			o, found = c, found+1
		}
	}
	return o, found == 1 && rivals == 1
}

// byNarrative decides about a line whose text mentions payments. Payers write narratives, so a mention matches only
// if exactly one payment agrees in amount, direction and time. Otherwise the text is a suggestion.
func byNarrative(l Line, mentions []ours, lag time.Duration) (o ours, ok bool, suggestion string) {
	found := 0
	for _, m := range mentions {
		suggestion = " The text mentions the payment " + m.ID + "."
		if m.Movement == "" && m.agrees(l, lag) {
			o, found = m, found+1
		}
	}
	return o, found == 1, suggestion
}

// unknown returns the exception of a line without a payment.
func unknown(l Line, suggestion string) []Difference {
	reason := "No payment of ours has this line."
	switch {
	case isReversal(l.Type):
		reason = "The provider reversed a movement, and no payment of ours has this line."
	case l.Amount < 0:
		reason = "Money left the account, and no payment of ours has this line."
	case l.Amount > 0:
		reason = "Money came in, and no payment of ours has this line."
	}
	return []Difference{{TheirsOnly, magnitude(l.Amount), l.change(), reason + suggestion}}
}

// missing returns the exception of a payment that is absent from a statement without gaps.
func missing(o ours) Difference {
	reason, delta := "The payment succeeded here, but is missing in the provider's statement.", -o.held()
	if o.Open {
		delta = 0
		reason = "The outcome of the payment is unknown here, and the payment is missing in the provider's statement. It was probably not paid."
	}
	return Difference{OursOnly, o.Amount, delta, reason}
}
