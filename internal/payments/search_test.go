package payments

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// ids returns the ids of payments in order.
func ids(rows []book.Payment) (list []string) {
	for _, pay := range rows {
		list = append(list, pay.ID)
	}
	return list
}

func TestSearch_everyIdentifier(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		begun := h.clock.Now()
		r := h.payout()
		r.Reference, r.Amount, r.Name, r.MSISDN, r.Network = "invoice-2026_17", 123_45, "Ama O'Brien 100%", telecel, msisdn.Telecel
		h.second.script(always(unknown), always(notFound))
		first, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.pass(time.Hour)
		other := n.newTenant(10_000 * money.Cedi)
		r.Reference, r.Amount, r.Name = "invoice-2026_18", 10_00, "Kofi"
		second, _, err := n.Payout(t.Context(), idempotency.Caller{Tenant: other.ID, Key: "key-2"}, r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, d, `UPDATE payments SET upstream_id = 'up-77' WHERE id = $1`, first.ID)
		local := msisdn.MSISDN(first.Account).Local()
		one, both := []string{first.ID}, []string{second.ID, first.ID}
		for text, want := range map[string][]string{
			first.ID: one, strings.ToUpper(first.ID): one, first.ProviderReference: one, strings.ReplaceAll(first.ProviderReference, "-", ""): one,
			"invoice-2026_17": one, " invoice-2026_17 ": one, "up-77": one,
			"123.45": one, "GHS 0,123.45": one, "10": {second.ID}, "123.4": nil,
			local: both, first.Account: both, "+" + first.Account: both, local[:3] + " " + local[3:6] + "-" + local[6:]: both,
			"00" + first.Account: both, "+233 (0)" + local[1:]: both, "tel:+" + first.Account: both, "\u202a" + local[:3] + "\u00a0" + local[3:6] + "\u2011" + local[6:] + "\u202c": both,
			"invoic": both, "invoice-2026_": both, "invoi": nil, "nvoice": nil,
			"o'brien": one, "en 100%": one, "KOFI": {second.ID}, "o_brien": nil, "%%%": nil,
			"invoice-2026_19": nil, "00000000-0000-4000-8000-000000000000": nil,
		} {
			found, err := n.Search(t.Context(), book.Search{Text: text, Limit: 10})
			if err != nil || !slices.Equal(ids(found.Payments), want) || found.More != "" {
				t.Errorf("%q finds %v, not %v; %q, %v", text, ids(found.Payments), want, found.More, err)
			}
		}
		for name, c := range map[string]struct {
			s    book.Search
			want []string
		}{
			"a tenant":               {book.Search{Tenant: other.ID}, []string{second.ID}},
			"another's reference":    {book.Search{Text: "invoice-2026_17", Tenant: other.ID}, nil},
			"from":                   {book.Search{From: begun.Add(time.Minute)}, []string{second.ID}},
			"to":                     {book.Search{To: begun.Add(time.Minute)}, one},
			"a status":               {book.Search{Status: "pending"}, both},
			"another status":         {book.Search{Status: "success"}, nil},
			"before one":             {book.Search{Before: second.ID}, one},
			"a reference, too early": {book.Search{Text: "invoice-2026_17", From: begun.Add(time.Minute)}, nil},
		} {
			c.s.Limit = 10
			if c.s.Text == "" {
				c.s.Text = local
			}
			if found, err := n.Search(t.Context(), c.s); err != nil || !slices.Equal(ids(found.Payments), c.want) {
				t.Errorf("%s finds %v, not %v; %v", name, ids(found.Payments), c.want, err)
			}
		}
		for text, want := range map[string][]string{"invoice-2026_17": one, "invoice": both, "123.45": one, "up-77": one, local: nil, first.Account: nil, "o'brien": nil, first.ID: one} {
			s := book.Search{Text: text, Limit: 10, Anonymous: true}
			if found, err := n.Search(t.Context(), s); err != nil || !slices.Equal(ids(found.Payments), want) {
				t.Errorf("%q without people finds %v, not %v; %v", text, ids(found.Payments), want, err)
			}
			if person := text == local || text == first.Account || text == "o'brien"; person && !s.Person() {
				t.Errorf("%q is not taken for a person", text)
			}
		}
		found, err := n.Search(t.Context(), book.Search{Text: local, Limit: 1})
		if err != nil || !slices.Equal(ids(found.Payments), []string{second.ID}) || found.More != second.ID {
			t.Errorf("one of them: %+v, %v", found, err)
		}
		for _, bad := range []book.Search{{Text: " "}, {Text: "x", Status: "lost"}} {
			_, err := n.Search(t.Context(), bad)
			wantKind(t, err, problem.Invalid)
		}
	})
}

// A search without an index scans only the newest payments and returns where it stopped, so that the next search
// continues there.
func TestSearch_scanIsBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		// Newer payments of another amount fill the limit of one search. They are written in parts, because a slow
		// machine could exceed the time limit of one write.
		for from := 0; from < 100_000; from += 5_000 {
			write(t, d, `INSERT INTO payments (tenant, kind, id, seq, mode, channel, reference, provider_reference, amount, charges, fee_bearer, plan, account,
account_name, bank_id, label, callback_url, access_key, idempotency_hash, parent, child, details, status, rail, created_at, settled_at)
WITH RECURSIVE many(n) AS (SELECT CAST($1 AS BIGINT) + 1 UNION ALL SELECT n + 1 FROM many WHERE n < CAST($1 AS BIGINT) + 5000)
SELECT 'many', kind, 'f' || CAST(100000 + many.n AS TEXT), many.n, mode, channel, CAST(many.n AS TEXT), '', 1, 0, fee_bearer, plan, 'x',
'', '', '', '', '', '', '', '', '', 'success', rail, created_at, created_at FROM payments, many WHERE id = $2`, from, pay.ID)
		}
		s := book.Search{Text: pay.Amount.String(), Limit: 10}
		found, err := n.Search(t.Context(), s)
		if err != nil || len(found.Payments) != 0 || found.More != "f195001" || found.Scanned != 5_000 {
			t.Fatalf("the search of a page: %+v, %v", found, err)
		}
		s.Windows = 20
		found, err = n.Search(t.Context(), s)
		if err != nil || len(found.Payments) != 0 || found.More != "f100001" {
			t.Fatalf("the first search: %+v, %v", found, err)
		}
		s.Before = found.More
		if found, err = n.Search(t.Context(), s); err != nil || !slices.Equal(ids(found.Payments), []string{pay.ID}) || found.More != "" {
			t.Errorf("further: %+v, %v", found, err)
		}
		list, err := n.Latest(t.Context(), book.LatestFilter{Limit: 50})
		if err != nil || len(list.Payments) != 50 || list.More != list.Payments[49].ID || list.Scanned != 1_000 {
			t.Errorf("a list without a filter scans %d, more %q, %v", list.Scanned, list.More, err)
		}
		if list, err = n.Latest(t.Context(), book.LatestFilter{Tenant: h.tenant.ID}); err != nil || len(list.Payments) != 0 || list.More != "f190001" || list.Scanned != 10_000 {
			t.Errorf("a list of an old payment: %+v, %v", list, err)
		}
		list, err = n.Latest(t.Context(), book.LatestFilter{Tenant: h.tenant.ID, Before: "f100500"})
		if err != nil || !slices.Equal(ids(list.Payments), []string{pay.ID}) || list.More != "" {
			t.Errorf("its end: %+v, %v", list, err)
		}
		// A person waits for a part of the scan, and goes on from where it ended.
		reader, parts := book.NewReader(d, nil, clock.Real()), 0
		for s.Before = ""; ; s.Before = found.More {
			found, err = reader.Search(t.Context(), s)
			if parts++; err != nil || parts > 20 || len(found.Payments) > 0 || found.More == "" {
				break
			}
		}
		if err != nil || !slices.Equal(ids(found.Payments), []string{pay.ID}) || parts < 3 {
			t.Errorf("in %d parts: %+v, %v", parts, found, err)
		}
	})
}

func TestNextQuery_followsAge(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		at := h.clock.Now()
		for age, want := range map[time.Duration]time.Duration{0: 1, 1: 3, 2: 3, 3: 7, 59: 60, 60: 120} {
			pay := book.Payment{Status: book.StatusPending, CreatedAt: at.Add(-age * time.Second)}
			if got := n.NextQuery(pay).Sub(pay.CreatedAt); got != want*time.Second {
				t.Errorf("at %d s: %v, not %d s", age, got, want)
			}
		}
		for _, s := range []book.Status{book.StatusWaiting, book.StatusSuccess, book.StatusFailed} {
			if next := n.NextQuery(book.Payment{Status: s, CreatedAt: at}); !next.IsZero() {
				t.Errorf("%s is asked about at %v", s, next)
			}
		}
	})
}

func write(t *testing.T, d *db.DB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}
