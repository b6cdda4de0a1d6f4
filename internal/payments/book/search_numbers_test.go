package book

import "testing"

// A reference is recognized, in every spelling, if it contains the payment's account or any mobile number.
func TestReferenceHoldsNumber_everySpelling(t *testing.T) {
	for reference, holds := range map[string]bool{
		"0241234567": true, "pay-0241234567": true, "233241234567": true, "x00233241234567y": true, "241234567": true,
		"024-123-4567": true, "024 123 4567": true, "a0551112222b": true, "055.111.2222": true,
		"invoice-2026-0017": false, "20261126230117": false, "payout-20261126-230117": false, "": false, "A1": false, "551112222": false,
	} {
		p := Payment{Reference: reference, Account: "233241234567"}
		if p.ReferenceHoldsNumber() != holds {
			t.Errorf("%q: %v", reference, !holds)
		}
	}
	if p := (Payment{Reference: "acct 1020304050607", Account: "1020304050607"}); !p.ReferenceHoldsNumber() {
		t.Error("a bank account in the reference is not recognized")
	}
	if p := (Payment{Reference: "order 7"}); p.ReferenceHoldsNumber() {
		t.Error("a payment without an account matches a number")
	}
}
