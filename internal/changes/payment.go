package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// The kinds of changes of payments. KindResolve ends a payment of unknown outcome according to the provider's
// statement. KindContradict reverses such a resolution. KindDecide moves the amount of a contradicted payment out of
// suspense.
const (
	KindResolve    = "payout.resolve"
	KindContradict = "payout.contradict"
	KindDecide     = "payout.decide"
)

// seen is a payment as the requester of a change saw it. Its members and their order are hashed, so they never change.
type seen struct {
	ID           string        `json:"id"`
	Tenant       string        `json:"tenant"`
	Amount       money.Pesewas `json:"pesewas"`
	Status       string        `json:"status"`
	Provider     string        `json:"provider"`
	Attempt      int           `json:"attempt"`
	Posts        int           `json:"posts"`
	Contradicted bool          `json:"contradicted"`
	LastWord     string        `json:"last_word"`
}

func seenOf(p book.Payment) seen {
	return seen{p.ID, p.Tenant, p.Amount, string(p.Status), p.Rail, p.Attempt, p.Submissions, !p.ContradictedAt.IsZero(), p.LastReported}
}

// unchanged refuses a payment that has changed since the requester saw it, because a statement proves nothing about a
// later submission. It runs under the row's lock.
func (a *Changes) unchanged(tx *db.Tx, s seen) (book.Payment, error) {
	p, err := a.Payments.Locked(tx, s.ID)
	if err == nil && seenOf(p) != s {
		err = errChanged("The payment")
	}
	return p, err
}

// onPayment returns the kind of a change of a payment. The member "payment" of its payload is the payment as the
// requester saw it.
func onPayment[P any](name, title string, apply func(ctx context.Context, request Request, p P, finish Finish) error) Kind {
	return Kind{Name: name, Title: title, Rule: Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}, Apply: func(ctx context.Context, request *Request, finish Finish) error {
		p, err := payloadOf[P](*request)
		if err != nil {
			return err
		}
		// copies: a group commit may still use these values after this function has returned
		return apply(context.WithoutCancel(ctx), *request, p, finish)
	}}
}

// Fields of payments.
var (
	paymentField = Field{Name: "payment", Label: "Payment", Hint: "The id of the payment, or the provider's reference.", Max: 64, Required: true}
	endingField  = Field{Name: "ending", Label: "Outcome on the statement", Options: []string{endedPaid, endedUnpaid}, Max: 6, Required: true}
)

// draftPayment drafts a change of a payment. sentence gets a description of the payment.
func (a *Changes) draftPayment(ctx context.Context, p book.Payment, sentence string, payload any) (Draft, error) {
	t, err := a.Tenants.Get(ctx, p.Tenant)
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, roles.Installation, t)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Tenant: t.ID, Amount: p.Amount, Payload: payload}
	d.Sentence = strings.ReplaceAll(sentence, "{payment}", fmt.Sprintf("the %s %s of %s", p.Kind, reference(p), title))
	return d, nil
}

// sent finds the request that a form has already made. It runs before the payment is compared with the form,
// because that request may have changed the payment.
func sent[P comparable](ctx context.Context, a *Changes, o Order, kind string, same func(P) bool) (Request, bool) {
	request, err := a.Get(ctx, o.By.Place, o.ID)
	var p P
	if err != nil || request.Requester != o.By.id() || request.Kind != kind || request.Reason != strings.TrimSpace(o.Reason) || json.Unmarshal(request.Payload, &p) != nil {
		return Request{}, false
	}
	return request, same(p)
}

// WaitingAbout lists the waiting requests about a payment.
func (a *Changes) WaitingAbout(ctx context.Context, p book.Payment) (about []Request, err error) {
	list, err := a.Store.List(ctx, Filter{Tenant: p.Tenant, State: Waiting, Limit: waitingAtOnce})
	for _, request := range list {
		var payload struct{ Payment seen }
		if json.Unmarshal(request.Payload, &payload) == nil && payload.Payment.ID == p.ID {
			about = append(about, request)
		}
	}
	return about, err
}

// Statement is the line of a provider's statement about a payment. The amounts are in pesewas, and nil if the
// statement has none. They are used only for a payment that succeeded.
type Statement struct {
	Paid            bool
	Fee, Commission *money.Pesewas // provider's fee, and our commission
}

// resolution is the payload of a request to resolve a payment of unknown outcome, as the requester saw it.
type resolution struct {
	Payment    seen          `json:"payment"`
	Paid       bool          `json:"paid"`
	Costs      bool          `json:"costs"` // the two amounts below are known
	Fee        money.Pesewas `json:"fee"`
	Commission money.Pesewas `json:"commission"`
}

// asks reports whether two resolutions request the same change. It ignores the state that their requesters
// saw.
func (r resolution) asks(o resolution) bool {
	r.Payment, o.Payment = seen{ID: r.Payment.ID}, seen{ID: o.Payment.ID}
	return r == o
}

// Resolve requests the end of an open payment according to its provider's statement. id is the id of the form.
// payment is our id or the provider's reference.
func (a *Changes) Resolve(ctx context.Context, by By, id, payment string, s Statement, reason string) (Request, error) {
	v := Values{"payment": payment, "ending": endingOf(s.Paid)}
	for name, n := range map[string]*money.Pesewas{"provider_fee": s.Fee, "commission": s.Commission} {
		if n != nil {
			v[name] = n.String()
		}
	}
	return a.Do(ctx, by, KindResolve, id, v, reason)
}

// The values of the field for the statement's outcome.
const (
	endedPaid   = "paid"
	endedUnpaid = "unpaid"
)

func endingOf(paid bool) string {
	if paid {
		return endedPaid
	}
	return endedUnpaid
}

// resolutionOf reads the outcome and amounts of a provider's statement.
func resolutionOf(v Values) (r resolution, err error) {
	r = resolution{Paid: v["ending"] == endedPaid}
	for name, to := range map[string]*money.Pesewas{"provider_fee": &r.Fee, "commission": &r.Commission} {
		if v[name] == "" {
			continue
		}
		if *to, err = v.notNegative(name); err == nil && !r.Paid {
			err = problem.Field(name, "belongs to a payment that was paid")
		}
		if err != nil {
			return r, err
		}
		r.Costs = true
	}
	return r, nil
}

func (a *Changes) lookResolve(ctx context.Context, o Order) (Draft, error) {
	r, err := resolutionOf(o.Values)
	if err != nil {
		return Draft{}, err
	}
	p, err := a.Payments.Find(ctx, o.Values["payment"])
	if err != nil {
		return Draft{}, err
	}
	r.Payment = seenOf(p)
	if request, was := sent(ctx, a, o, KindResolve, r.asks); was {
		return Draft{Again: &request}, nil
	}
	if err := a.Payments.Resolvable(p, r.Paid); err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Resolve {payment} as %s from the statement of %s: %s", paidWord(r.Paid), p.Rail, worth(p, p.Amount))
	switch {
	case r.Costs:
		sentence += fmt.Sprintf("; provider's fee %s, commission %s", worth(p, r.Fee), worth(p, r.Commission))
	case !r.Paid && p.Held() > 0:
		sentence += fmt.Sprintf("; %s go back to the wallet", worth(p, p.Held()))
	}
	return a.draftPayment(ctx, p, sentence, r)
}

func paidWord(paid bool) string {
	if paid {
		return "paid"
	}
	return "not paid"
}

func (a *Changes) resolveKind() Kind {
	return onPayment(KindResolve, "Outcome of a payment from the provider's statement", func(ctx context.Context, request Request, r resolution, finish Finish) (err error) {
		also := func(tx *db.Tx) error {
			p, err := a.unchanged(tx, r.Payment)
			if err != nil {
				return err
			}
			changes := []audit.Change{{What: "status", Before: p.PublicStatus(), After: map[bool]string{true: string(book.StatusSuccess), false: string(book.StatusFailed)}[r.Paid]}}
			if r.Costs {
				changes = append(changes, audit.Change{What: "provider's fee", After: worth(p, r.Fee)}, audit.Change{What: "commission", After: worth(p, r.Commission)})
			}
			return finish(tx, changes)
		}
		if r.Costs {
			_, err = a.Payments.ResolvePaid(ctx, r.Payment.ID, r.Fee, r.Commission, request.Reason, request.Actor, also)
		} else {
			_, err = a.Payments.Resolve(ctx, r.Payment.ID, r.Paid, request.Reason, request.Actor, also)
		}
		return err
	}).by(a.lookResolve, paymentField, endingField, Field{Name: "provider_fee", Label: "Fee of the provider", Hint: "Enter an amount in cedis, if the payment was paid.", Max: 20},
		Field{Name: "commission", Label: "Commission from the provider", Hint: "Enter an amount in cedis, if the payment was paid.", Max: 20}).showing(a.checkPayment)
}

// contradiction is the payload of a request to reverse a resolution, as the requester saw it.
type contradiction struct {
	Payment seen `json:"payment"`
	Paid    bool `json:"paid"` // the true outcome
}

// Contradict requests the reversal of an operator's resolution of a payment. paid is the true outcome. Decide handles
// an amount that remains in suspense or is missing there.
func (a *Changes) Contradict(ctx context.Context, by By, id, payment string, paid bool, reason string) (Request, error) {
	return a.Do(ctx, by, KindContradict, id, Values{"payment": payment, "ending": endingOf(paid)}, reason)
}

func (a *Changes) lookContradict(ctx context.Context, o Order) (Draft, error) {
	p, err := a.Payments.Find(ctx, o.Values["payment"])
	if err != nil {
		return Draft{}, err
	}
	c := contradiction{seenOf(p), o.Values["ending"] == endedPaid}
	if request, was := sent(ctx, a, o, KindContradict, func(before contradiction) bool { return before.Payment.ID == p.ID && before.Paid == c.Paid }); was {
		return Draft{Again: &request}, nil
	}
	if c.Payment.Contradicted {
		return Draft{}, payments.ErrContradicted()
	}
	return a.draftPayment(ctx, p, fmt.Sprintf("Reverse the outcome of {payment}, which was resolved as %s: %s", paidWord(!c.Paid), worth(p, p.Amount)), c)
}

func (a *Changes) contradictKind() Kind {
	return onPayment(KindContradict, "Reversal of an outcome from a statement", func(ctx context.Context, request Request, c contradiction, finish Finish) error {
		_, err := a.Payments.Contradict(ctx, c.Payment.ID, c.Paid, request.Reason, request.Actor, func(tx *db.Tx) error {
			if _, err := a.unchanged(tx, c.Payment); err != nil {
				return err
			}
			return finish(tx, []audit.Change{{What: "outcome", Before: paidWord(!c.Paid), After: paidWord(c.Paid)}})
		})
		return err
	}).by(a.lookContradict, paymentField, endingField).showing(a.checkPayment)
}

// Side is the party that receives the amount of a contradicted payment in suspense, or pays the missing amount.
type Side string

// The sides. Provider means that the provider has returned to its first status. The amount then goes back to the
// float.
const (
	Customer Side = "customer"
	House    Side = "house"
	Provider Side = "provider"
)

// decision is the payload of a request to move a contradicted payment's amount out of suspense, as the requester saw
// it.
type decision struct {
	Payment seen `json:"payment"`
	For     Side `json:"for"`
}

// Decide requests that the amount of a contradicted payment leave suspense.
func (a *Changes) Decide(ctx context.Context, by By, id, payment string, side Side, reason string) (Request, error) {
	return a.Do(ctx, by, KindDecide, id, Values{"payment": payment, "for": string(side)}, reason)
}

func (a *Changes) lookDecide(ctx context.Context, o Order) (Draft, error) {
	side := Side(o.Values["for"])
	p, err := a.Payments.Find(ctx, o.Values["payment"])
	if err != nil {
		return Draft{}, err
	}
	d := decision{seenOf(p), side}
	if request, was := sent(ctx, a, o, KindDecide, func(before decision) bool { return before.Payment.ID == p.ID && before.For == side }); was {
		return Draft{Again: &request}, nil
	}
	sentence := fmt.Sprintf("Move %s of {payment} from suspense to the %s", worth(p, p.Amount), side)
	switch {
	case !d.Payment.Contradicted, p.Kind == book.KindCollection && side != Provider:
		return Draft{}, problem.New(problem.Invalid, "nothing_in_suspense", "This payment has no money in suspense")
	case p.Kind == book.KindCollection:
		sentence = fmt.Sprintf("Credit %s of {payment} to the wallet again: its provider reversed the payment, and later reported it as paid", worth(p, p.Net()))
	case p.Status == book.StatusFailed:
		sentence = fmt.Sprintf("Take %s, which {payment} lacks in suspense, from the %s", worth(p, p.Amount), side)
	}
	return a.draftPayment(ctx, p, sentence, d)
}

// decided returns the audit entry of a decision.
func decided(p book.Payment, side Side) audit.Change {
	switch {
	case p.Kind == book.KindCollection:
		return audit.Change{What: "reversed amount", Before: worth(p, p.Net()), After: "credited again"}
	case p.Status == book.StatusFailed:
		return audit.Change{What: "missing in suspense", Before: worth(p, p.Amount), After: "paid by the " + string(side)}
	}
	return audit.Change{What: "in suspense", Before: worth(p, p.Amount), After: "with the " + string(side)}
}

func (a *Changes) decideKind() Kind {
	return onPayment(KindDecide, "Decision about suspense", func(ctx context.Context, request Request, d decision, finish Finish) error {
		also := func(tx *db.Tx) error {
			p, err := a.unchanged(tx, d.Payment)
			if err != nil {
				return err
			}
			return finish(tx, []audit.Change{decided(p, d.For)})
		}
		if d.For == Provider {
			return a.Payments.Uphold(ctx, d.Payment.ID, request.Reason, request.Actor, also)
		}
		return a.Payments.Decide(ctx, d.Payment.ID, d.For == Customer, request.Reason, request.Actor, also)
	}).by(a.lookDecide, paymentField, Field{Name: "for", Label: "For", Options: []string{string(Customer), string(House), string(Provider)}, Max: 8, Required: true}).showing(a.checkPayment)
}

// youngPayment is the age below which ending a payment by a statement causes a warning. A statement of the same day may not have
// the payment yet.
const youngPayment = time.Hour

// asSeen finds a payment. It refuses a payment that has changed since the requester saw it.
func (a *Changes) asSeen(ctx context.Context, p seen) (book.Payment, error) {
	pay, err := a.Payments.Find(ctx, p.ID)
	if err == nil && seenOf(pay) != p {
		err = errChanged("The payment")
	}
	return pay, err
}

// checkPayment returns facts about the payment of a request. It refuses a payment that has changed since the
// requester saw it.
func (a *Changes) checkPayment(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[struct {
		Payment seen `json:"payment"`
		Paid    bool `json:"paid"`
	}](r)
	if err != nil {
		return nil, err
	}
	pay, err := a.asSeen(ctx, p.Payment)
	if err != nil {
		return nil, err
	}
	list := paymentFacts(pay)
	t, err := a.Tenants.Get(ctx, pay.Tenant)
	if err != nil {
		return nil, err
	}
	has, err := a.Ledger.Balance(ctx, t.Wallet())
	if err != nil {
		return nil, err
	}
	list = append(list, Fact{Name: "In the wallet now", Value: pay.Money().Text(has)})
	if r.Kind != KindResolve {
		return list, nil
	}
	if !p.Paid && pay.Held() > 0 {
		list = append(list, Fact{Name: "Returned to the wallet by this change", Value: worth(pay, pay.Held())},
			warning("The money goes back to the wallet and can be paid out again. If the provider did pay, it is paid twice."))
	}
	if a.Store.now().Sub(pay.CreatedAt) < youngPayment {
		list = append(list, warning("The payment is less than an hour old. The provider's statement may not have it yet."))
	}
	if pay.UpstreamID != "" && !p.Paid {
		list = append(list, warning("The provider has an id for this payment, so the provider received the request."))
	}
	return list, nil
}

// paymentFacts returns facts about a payment, without complete numbers or names.
func paymentFacts(p book.Payment) []Fact {
	list := []Fact{{Name: "Payment", Value: fmt.Sprintf("%s, reference %s", p.Kind, reference(p)), Of: ofPayment(p.ID)},
		{Name: "Amount", Value: worth(p, p.Amount)}, {Name: "Charges", Value: worth(p, p.Charges)}, {Name: "Number", Value: masked(p)},
		{Name: "Status", Value: p.PublicStatus()}, {Name: "Begun", Value: at(p.CreatedAt)},
		{Name: "Provider", Value: cmp.Or(p.Rail, "none"), Of: ofProvider(p.Rail)}, {Name: "Submitted", Value: strconv.Itoa(p.Submissions) + " times, attempt " + strconv.Itoa(p.Attempt)}}
	if p.Rail == "" {
		list[6].Of = ""
	}
	if p.Refusal != "" {
		list = append(list, Fact{Name: "Refused by the provider", Value: cmp.Or(p.RefusalReason, string(p.Refusal))})
	}
	if !p.ContradictedAt.IsZero() {
		list = append(list, Fact{Name: "Contradicted", Value: at(p.ContradictedAt)}, Fact{Name: "Last status of the provider", Value: cmp.Or(p.LastReported, "the opposite of ours")})
	}
	if p.Note != "" {
		list = append(list, Fact{Name: "Reason of the operator", Value: p.Note})
	}
	return list
}
