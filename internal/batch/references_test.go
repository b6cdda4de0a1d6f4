package batch

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A reference in two drafts of an account is shown in both. If both are sent, it is paid once, and the money of the
// other row goes back.
func TestDraft_referenceOfAnotherDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		before := n.wallet()
		first, err := n.upload("Suppliers", "number,network,amount,reference\n0241234567,MTN,10,invoice-2026-001\n0241234568,MTN,20,invoice-2026-002\n")
		if err != nil {
			t.Fatal(err)
		}
		second, err := n.upload("More suppliers", "number,network,amount,reference\n0241234569,MTN,5,invoice-2026-003\n0241234570,MTN,30,invoice-2026-001\n")
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range map[string]Warning{
			first.ID:  {1, fieldReference, "is the reference of row 2 of the batch More suppliers, too: only one of them is paid"},
			second.ID: {2, fieldReference, "is the reference of row 1 of the batch Suppliers, too: only one of them is paid"},
		} {
			list, err := n.Warnings(t.Context(), first.Tenant, of, 1)
			if err != nil || len(list) != 1 || list[0] != want {
				t.Errorf("%+v (%v), want %+v", list, err, want)
			}
		}
		for _, b := range []Batch{first, second} {
			if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil {
				t.Fatal(err)
			}
			if err := n.start(b); err != nil {
				t.Fatal(err)
			}
		}
		n.pass(time.Minute)
		if made, _ := n.f.bank.sum(); made != 3 || n.is(first.ID).Accepted+n.is(second.ID).Accepted != 3 {
			t.Errorf("%d payouts were made", made)
		}
		if spent := before - n.wallet(); spent != n.spent(first)+n.spent(second) {
			t.Errorf("the wallet gave %s", spent)
		}
		if list, err := n.Warnings(t.Context(), first.Tenant, first.ID, 1); err != nil || len(list) > 0 {
			t.Errorf("%+v after the end (%v)", list, err)
		}
		n.sound()
	})
}
