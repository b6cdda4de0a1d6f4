package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// oneBalance returns the account of a payment at a provider that has only one account.
func oneBalance(book.Payment) string { return provider.AccountDisbursement }

const ledgerHeading = "id,createdAt,reason,model_responsible,model_row,difference,currency,balance\n"

// Paystack's ledger has amounts in pesewas, less the fee, and identifies a payment by Paystack's own id. A transfer and a
// transaction may have the same id.
func TestMatch_paystackLedger(t *testing.T) {
	const source = "test/paystack/disbursement"
	at := func(r *row, rail, upstream string) { r.rail, r.upstream = rail, upstream }
	for name, c := range map[string]struct {
		line string
		want []Kind
	}{
		"the amount":         {"1,2026-11-20T12:01:00.000Z,,Transaction,77,1000,GHS,1000\n", nil},
		"the payout":         {"1,2026-11-20T12:01:00.000Z,,Transfer,77,-500,GHS,500\n", nil},
		"another amount":     {"1,2026-11-20T12:01:00.000Z,,Transaction,77,980,GHS,980\n", []Kind{AmountOff}},
		"an unknown id":      {"1,2026-11-20T12:01:00.000Z,,Transaction,78,1000,GHS,1000\n", []Kind{TheirsOnly}},
		"an id of an amount": {"1,2026-11-20T12:01:00.000Z,77,Transaction,,1000,GHS,1000\n", []Kind{TheirsOnly}},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.account = oneBalance
				f.pay(collected(refA, func(r *row) { at(r, "paystack", "77") }),
					collected(refB, func(r *row) {
						at(r, "paystack", "77")
						r.kind, r.amount, r.id, r.seq = "payout", 500, book.NewID(noon.Add(1)), 2
					}))
				f.must(source, ledgerHeading+c.line)
				f.match()
				f.mustFind(c.want...)
				if got := f.rules(); (got == "provider_id") != (len(c.want) == 0 || c.want[0] != TheirsOnly) {
					t.Errorf("matched by %q", got)
				}
			})
		})
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		if _, err := f.give(source, ledgerHeading+"1,2026-11-20T12:01:00.000Z,,Transaction,77,10.50,GHS,1000\n", Layout{Sign: SignIn}); err == nil || !strings.Contains(fields(err), "whole pesewas") {
			t.Errorf("decimals: %q", fields(err))
		}
	})
}

// The fee row in pawaPay's statement has the id of its deposit, but is not a reversal of the deposit.
func TestMatch_pawapayFee(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.account = oneBalance
		f.pay(collected(refA, func(r *row) { r.rail = "pawapay" }))
		line := func(amount, kind string) string {
			return fmt.Sprintf("2026-11-20 12:01:00,233241234567,%s,%s,GHS,GHA,MTN_MOMO_GHA,%s\n", refA, amount, kind)
		}
		f.must("test/pawapay/disbursement", "Creation Date (UTC),MSISDN,Transaction ID,Amount,Currency,Country,MNO,Type\n"+line("10.00", "Deposit")+line("-0.20", "Fee"))
		f.match()
		e := f.mustFind(TheirsOnly)[0]
		if e.Delta != -20 || !strings.Contains(e.Reason, "mentions the payment") || f.rules() != "reference" {
			t.Errorf("the exception is %+v, matched by %q", e, f.rules())
		}
	})
}
