package payments

import (
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

func TestLatest_pagesByKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.second.script(always(unknown), always(notFound))
		other := n.newTenant(10_000 * money.Cedi)
		var all []string // newest first
		for i := range 5 {
			r := h.payout()
			caller := h.caller()
			if i%2 == 1 {
				caller = idempotency.Caller{Tenant: other.ID, Key: "key-2"}
			}
			pay, _, err := n.Payout(t.Context(), caller, r)
			if err != nil {
				t.Fatal(err)
			}
			all = slices.Insert(all, 0, pay.ID)
			n.pass(time.Second)
		}
		var seen []string
		for before, more := "", true; more; more = before != "" {
			found, err := n.Latest(t.Context(), book.LatestFilter{Before: before, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			seen, before = append(seen, ids(found.Payments)...), found.More
		}
		if !slices.Equal(seen, all) {
			t.Errorf("pages give %v, not %v", seen, all)
		}
		for name, c := range map[string]struct {
			n    book.LatestFilter
			want []string
		}{
			"tenant": {book.LatestFilter{Tenant: other.ID}, []string{all[1], all[3]}}, "kind": {book.LatestFilter{Kind: book.KindCollection}, nil},
			"pending": {book.LatestFilter{Status: "pending"}, all}, "success": {book.LatestFilter{Status: "success"}, nil}, "rail": {book.LatestFilter{Rail: "nothing"}, nil},
			"early": {book.LatestFilter{To: h.clock.Now().Add(-time.Hour)}, nil}, "late": {book.LatestFilter{From: h.clock.Now().Add(time.Hour)}, nil},
			"today": {book.LatestFilter{From: h.clock.Now().Add(-time.Hour), To: h.clock.Now().Add(time.Hour)}, all}, "before": {book.LatestFilter{Before: all[3]}, all[4:]},
		} {
			found, err := n.Latest(t.Context(), c.n)
			if err != nil || !slices.Equal(ids(found.Payments), c.want) {
				t.Errorf("%s: %v, not %v; %v", name, ids(found.Payments), c.want, err)
			}
		}
		for _, bad := range []book.LatestFilter{{Status: "lost"}, {Limit: 101}, {Limit: -1}} {
			if _, err := n.Latest(t.Context(), bad); !problem.Is(err, problem.Invalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if newer, err := n.Newer(t.Context(), all[2]); err != nil || newer != 2 {
			t.Errorf("%d are newer, %v", newer, err)
		}
		if total, err := n.Total(t.Context(), other.ID, book.KindPayout); err != nil || total != 2 {
			t.Errorf("the other has %d, %v", total, err)
		}
	})
}

func TestExport_matchesHistory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		var all []string
		for range 3 {
			pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
			if err != nil {
				t.Fatal(err)
			}
			all = slices.Insert(all, 0, pay.ID)
			n.pass(24 * time.Hour)
		}
		export := func(f book.Filter) (got []string) {
			if err := n.Export(t.Context(), h.tenant.ID, f, func(p book.Payment) error { got = append(got, p.ID); return nil }); err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := export(book.Filter{Kind: book.KindPayout}); !slices.Equal(got, all) {
			t.Errorf("all: %v, not %v", got, all)
		}
		middle := h.clock.Now().Add(-48 * time.Hour)
		if got := export(book.Filter{Kind: book.KindPayout, From: middle, To: middle}); !slices.Equal(got, all[1:2]) {
			t.Errorf("the day in the middle: %v, not %v", got, all[1:2])
		}
		if got := export(book.Filter{Kind: book.KindCollection}); got != nil {
			t.Errorf("collections: %v", got)
		}
	})
}
