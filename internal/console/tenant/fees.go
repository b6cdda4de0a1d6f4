package tenant

import (
	"fmt"
	"strings"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/tenant"
)

// exampleAmount is the amount for which the page of fees prints an example.
const exampleAmount = 100 * money.Cedi

// rate is the fee of one product on one channel.
type rate struct {
	product tenant.Product
	channel string
	tenant.Rule
}

var rateColumns = []console.Column[rate]{
	console.Text("Product", "", func(r rate) string { return productWords[r.product] }),
	console.Text("Channel", "", func(r rate) string { return r.channelWord() }),
	console.Text("Fee", "", func(r rate) string { return r.text() }),
}

var productWords = map[tenant.Product]string{tenant.Collection: "Collection", tenant.Payout: "Payout", tenant.Refund: "Refund"}

func (r rate) channelWord() string {
	if r.channel == tenant.ChannelBank {
		return "Bank account"
	}
	return words.NetworkWords[msisdn.Network(r.channel)]
}

// text writes the fee: 1%, at least GHS 0.10, at most GHS 10.00.
func (r rate) text() string {
	var parts []string
	if r.Flat > 0 {
		parts = append(parts, page.Cedis(r.Flat))
	}
	if r.BasisPoints > 0 {
		percent := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%02d", r.BasisPoints/100, r.BasisPoints%100), "0"), ".")
		parts = append(parts, percent+"%")
	}
	if len(parts) == 0 && r.Minimum == 0 {
		return "Free"
	}
	text := strings.Join(parts, " plus ")
	if r.Minimum > 0 {
		text += ", at least " + page.Cedis(r.Minimum)
	}
	if r.Maximum > 0 {
		text += ", at most " + page.Cedis(r.Maximum)
	}
	return strings.TrimPrefix(text, ", ")
}

// example describes who pays how much for exampleAmount.
func (r rate) example(bearer tenant.FeeBearer) string {
	fee := r.Fee(exampleAmount)
	switch {
	case r.product == tenant.Payout, r.product == tenant.Refund:
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
	for _, product := range tenant.Products() {
		for _, n := range msisdn.Networks() {
			rates = append(rates, rate{product, string(n), tenant.RuleOf(rules, product, string(n))})
		}
		if product == tenant.Payout {
			rates = append(rates, rate{product, tenant.ChannelBank, tenant.RuleOf(rules, product, tenant.ChannelBank)})
		}
	}
	example := console.Text("Example: "+page.Cedis(exampleAmount), "", func(r rate) string { return r.example(v.Tenant.FeeBearer) }).Laid(console.Under)
	grid := console.Grid(append(rateColumns[:len(rateColumns):len(rateColumns)], example), rates, nil)
	return console.Answer{Title: "Fees", Body: feesPage(grid)}, nil
}
