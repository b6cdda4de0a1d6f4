package changes

import (
	"slices"
	"testing"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// The facts of a fee plan have each current and new rate in words, with examples, and unchanged rates once. If only one plan
// has a rule for a service, it is compared with the rate for all channels.
func TestRateFacts_nowAndThen(t *testing.T) {
	t.Parallel()
	was := tenant.DemoPlan()
	bank := tenant.Rule{Product: tenant.Payout, Channel: tenant.ChannelBank, Flat: 12 * money.Cedi}
	got := rateFacts(was, []tenant.Rule{was[0], was[1], bank})
	const usual = "1%, at least GHS 0.10, at most GHS 10.00. GHS 100.00 costs GHS 1.00, GHS 5,000.00 costs GHS 10.00."
	want := []Fact{
		{Name: "Collection, all channels", Value: "As now: " + usual},
		{Name: "Payout, all channels", Value: "As now: " + usual},
		{Name: "Payout, bank account: now", Value: usual},
		{Name: "Payout, bank account: then", Value: "GHS 12.00. GHS 100.00 costs GHS 12.00, GHS 5,000.00 costs GHS 12.00."},
		warning("Payout, bank account: the fee of GHS 100.00 grows more than tenfold."),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for text, then := range map[string][]tenant.Rule{"everything is free": nil, "no rate changes": was, "1 rate changes": {was[0], was[1], bank}, "3 rates change": {was[1]}} {
		if got := changedRates(was, then); got != text {
			t.Errorf("%v: %q, want %q", then, got, text)
		}
	}
}
