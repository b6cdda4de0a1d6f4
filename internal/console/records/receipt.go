package records

import (
	"cmp"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// errNoReceipt is the refusal of a receipt for a payment that has not ended.
var errNoReceipt = problem.New(problem.InProgress, "payment_open", "This payment has not ended yet. A receipt is available when it has.")

// Receipt is a payment on one page to print: amount, type, reference, date and time, the other party, and fees. Section 20(5)
// of Ghana's Payment Systems and Services Act (Act 987) names these six.
func (ps *Pages) Receipt(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	if p.Status.Open() {
		return console.Answer{}, errNoReceipt
	}
	t, err := ps.Tenants.Get(v.Ctx, p.Tenant)
	if err != nil {
		return console.Answer{}, err
	}
	s := story{payment: p, tenant: t.Name, base: v.Base()}
	return console.Answer{Title: "Receipt", Body: receiptPage(v, s, s.receipt(v))}, nil
}

// receipt returns the facts of a receipt.
func (s story) receipt(v *console.Visit) []page.Fact {
	p := s.payment
	party := "Paid to"
	if p.Kind == book.KindCollection || p.Received() {
		party = "Paid by"
	}
	status := words.BadgeOf(p).Word
	if !p.ContradictedAt.IsZero() {
		status += ", contradicted by the provider on " + page.When(p.ContradictedAt)
	}
	facts := []page.Fact{
		{Name: "Amount", Value: page.Money(p.Amount)},
		{Name: "Type", Value: page.Text(words.KindWords[p.Kind] + ", " + words.Channel(p.Channel))},
		{Name: "Status", Value: page.Text(status)},
		{Name: "Reference", Value: page.ID(ReferenceOf(v, p))},
		{Name: "Transaction ID", Value: page.ID(cmp.Or(p.ProviderReference, p.ID))},
	}
	if label := s.upstream(v); label != "" && v.Route.Site == console.Tenants {
		facts = append(facts, page.Fact{Name: label, Value: page.ID(p.UpstreamID)})
	}
	facts = append(facts, page.Fact{Name: "Date and time (UTC)", Value: page.Text(page.When(p.SettledAt))}, page.Fact{Name: party, Value: page.Text(Account(v, p.Account))})
	if name := accountName(v, p); name != "" {
		facts = append(facts, page.Fact{Name: "Name", Value: page.Text(name)})
	}
	facts = append(facts, page.Fact{Name: "Fees", Value: page.Money(p.Charges)})
	if p.Kind == book.KindCollection {
		facts = append(facts, page.Fact{Name: "Credited to the wallet", Value: page.Money(p.Net())})
	}
	return facts
}
