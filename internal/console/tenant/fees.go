package tenant

import (
	"fmt"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/tenant"
)

// exampleAmount is the amount of the example on the page of fees.
const exampleAmount = 100 * money.Cedi

// rate is the fee of one service.
type rate struct {
	tenant.Service
	rule tenant.Rule
}

var rateColumns = []console.Column[rate]{
	console.Text("Service", "", func(r rate) string { return r.String() }),
	console.Text("Fee", "", func(r rate) string { return r.rule.PriceText() }),
}

// example describes who pays how much for exampleAmount.
func (r rate) example(bearer tenant.FeeBearer) string {
	fee := r.rule.Fee(exampleAmount)
	switch {
	case r.Product == tenant.Payout, r.Product == tenant.Refund:
		return fmt.Sprintf("Your wallet pays %s, the recipient gets %s.", page.Cedis(exampleAmount+fee), page.Cedis(exampleAmount))
	case bearer == tenant.Customer:
		return fmt.Sprintf("The payer pays %s, you receive %s.", page.Cedis(exampleAmount+fee), page.Cedis(exampleAmount))
	}
	return fmt.Sprintf("The payer pays %s, you receive %s.", page.Cedis(exampleAmount), page.Cedis(exampleAmount-fee))
}

// fees shows the fees of each product on each channel, with an example.
func (ps *Pages) fees(v *console.Visit) (console.Answer, error) {
	rules, _, err := ps.Tenants.FeePlan(v.Ctx, v.Tenant.ID, v.Now())
	if err != nil {
		return console.Answer{}, err
	}
	var rates []rate
	for _, s := range tenant.Services() {
		if s.Channel != tenant.AnyChannel {
			rates = append(rates, rate{s, tenant.RuleOf(rules, s.Product, s.Channel)})
		}
	}
	example := console.Text("Example: "+page.Cedis(exampleAmount), "", func(r rate) string { return r.example(v.Tenant.FeeBearer) }).Laid(console.Under)
	grid := console.Grid(append(rateColumns[:len(rateColumns):len(rateColumns)], example), rates, nil)
	return console.Answer{Title: "Fees", Body: feesPage(grid)}, nil
}
