package tenant

import (
	"testing"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// A fee is displayed as the rule computes it. The example has the amounts that a payment would move.
func TestRate_textAndExample(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		product tenant.Product
		rule    tenant.Rule
		bearer  tenant.FeeBearer
		text    string
		example string
	}{
		{tenant.Collection, tenant.Rule{BasisPoints: 100, Minimum: 10, Maximum: 10 * money.Cedi}, tenant.Merchant, "1%, at least GHS 0.10, at most GHS 10.00", "The payer pays GHS 100.00, you receive GHS 99.00."},
		{tenant.Collection, tenant.Rule{BasisPoints: 195}, tenant.Customer, "1.95%", "The payer pays GHS 101.95, you receive GHS 100.00."},
		{tenant.Payout, tenant.Rule{Flat: 8 * money.Cedi, BasisPoints: 50}, tenant.Merchant, "GHS 8.00 plus 0.5%", "Your wallet pays GHS 108.50, the recipient gets GHS 100.00."},
		{tenant.Payout, tenant.Rule{Minimum: 50}, tenant.Merchant, "at least GHS 0.50", "Your wallet pays GHS 100.50, the recipient gets GHS 100.00."},
		{tenant.Refund, tenant.Rule{Flat: 25}, tenant.Merchant, "GHS 0.25", "Your wallet pays GHS 100.25, the recipient gets GHS 100.00."},
		{tenant.Payout, tenant.Rule{}, tenant.Merchant, "Free", "Your wallet pays GHS 100.00, the recipient gets GHS 100.00."},
	} {
		r := rate{tenant.Service{Product: tt.product}, tt.rule}
		if r.rule.PriceText() != tt.text || r.example(tt.bearer) != tt.example {
			t.Errorf("%+v: %q, %q", tt.rule, r.rule.PriceText(), r.example(tt.bearer))
		}
	}
}
