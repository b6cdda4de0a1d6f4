package recovery

import (
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// TestAFileOfClaimsIsReadWholeOrNotAtAll.
func TestAFileOfClaimsIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const good = "kind,reference,amount,party,channel,bank_id\npayout,order-0000001,10.50,0244000001,MTN\n" +
		"collection,order-0000002,3,233201234567,vdf,\npayout,order-0000003,1.00,0011223344,BANK,bank-1\n"
	want := []Claim{
		{Tenant: "t", Actor: "ama", Kind: "payout", Reference: "order-0000001", Amount: 1050, Channel: "MTN", Party: "233244000001"},
		{Tenant: "t", Actor: "ama", Kind: "collection", Reference: "order-0000002", Amount: 300, Channel: "TELECEL", Party: "233201234567"},
		{Tenant: "t", Actor: "ama", Kind: "payout", Reference: "order-0000003", Amount: 100, Channel: "BANK", Party: "0011223344", Bank: "bank-1"},
	}
	if got, err := ReadClaims(strings.NewReader(good), "t", "ama"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for bad, says := range map[string]string{
		"payout,r,10": "columns", "bundle,r,1,0244000001,MTN": "kind", "payout,,1,0244000001,MTN": "reference", "payout,r,-1,0244000001,MTN": "amount",
		"payout,r,x,0244000001,MTN": "amount", "payout,r,1,12,MTN": "party", "payout,r,1,0244000001,GLO": "channel", "collection,r,1,0011,BANK,b": "bank",
		"payout,r,1,0011,BANK": "bank", "payout,r,1,0244000001,MTN,b": "party", "\"payout": "Line 2",
	} {
		if _, err := ReadClaims(strings.NewReader("payout,order-0000001,10.50,0244000001,MTN\n"+bad+"\n"), "t", "ama"); !problem.Is(err, problem.Malformed) ||
			!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "Line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
