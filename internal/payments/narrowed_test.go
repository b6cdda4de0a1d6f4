package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

// A list is filtered by amount and by unknown outcome over several pages. The error for bad bounds names their field.
func TestNarrowed_byAmountAndOutcome(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(pending))
		for cedis := range 6 {
			p := h.payout()
			p.Amount = money.Pesewas(cedis+1) * money.Cedi
			if _, _, err := n.Payout(t.Context(), h.caller(), p); err != nil {
				t.Fatal(err)
			}
		}
		lost := h.payout()
		h.first.script(always(unknown), always(unknown))
		if _, _, err := n.Payout(t.Context(), h.caller(), lost); err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Minute) // operators are alerted after this time
		amounts := func(f book.Filter, before string) (list []money.Pesewas, more string) {
			t.Helper()
			f.Kind = book.KindPayout
			found, err := n.Narrowed(t.Context(), h.tenant.ID, f, before)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range found.Payments {
				list = append(list, p.Amount/money.Cedi)
			}
			return list, found.More
		}
		middle := book.Filter{Size: 2, Narrowing: book.Narrowing{Least: 2 * money.Cedi, Most: 5 * money.Cedi}}
		first, more := amounts(middle, "")
		if len(first) != 2 || first[0] != 5 || first[1] != 4 || more == "" {
			t.Fatalf("the first page has %v, more %q", first, more)
		}
		if last, more := amounts(middle, more); len(last) != 2 || last[0] != 3 || last[1] != 2 || more != "" {
			t.Errorf("the last page has %v, more %q", last, more)
		}
		if list, _ := amounts(book.Filter{Size: 9, Narrowing: book.Narrowing{Unknown: true}}, ""); len(list) != 1 || list[0] != lost.Amount/money.Cedi {
			t.Errorf("unknown are %v", list)
		}
		found, err := n.Latest(t.Context(), book.LatestFilter{Narrowing: book.Narrowing{Unknown: true}})
		if err != nil || len(found.Payments) != 1 || found.Payments[0].Reference != lost.Reference {
			t.Errorf("unknown of all accounts are %+v (%v)", found.Payments, err)
		}
		if _, err := n.Narrowed(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Narrowing: book.Narrowing{Least: 2, Most: 1}}, ""); err == nil {
			t.Error("bounds in the wrong order were taken")
		}
	})
}
