package payments

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

// The same request has the same ProviderReference on every node and after every restore. No other request has this
// ProviderReference.
func TestReference_sameForSameRequest(t *testing.T) {
	key := []byte("the secret of this installation")
	one := book.Payment{Mode: "test", Tenant: "t1", Kind: book.KindPayout, Reference: "order-00000001"}
	first := newReferences(key).make(one)
	if again := newReferences(key).make(one); again != first {
		t.Errorf("another node makes %s of it, not %s", again, first)
	}
	if id, err := uuid.Parse(first); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
		t.Errorf("%s is no UUIDv4: %v", first, err)
	}
	seen := map[string]string{first: "the request itself"}
	differ := func(how string, r *references, attempt int, change func(*book.Payment)) {
		t.Helper()
		other := one
		change(&other)
		reference := r.ofAttempt(other, attempt)
		if same := seen[reference]; same != "" {
			t.Errorf("%s makes the reference of %s", how, same)
		}
		seen[reference] = how
	}
	r := newReferences(key)
	differ("another secret", newReferences([]byte("another one")), 1, func(*book.Payment) {})
	differ("another attempt", r, 2, func(*book.Payment) {})
	differ("another mode", r, 1, func(p *book.Payment) { p.Mode = "live" })
	differ("another tenant", r, 1, func(p *book.Payment) { p.Tenant = "t2" })
	differ("another kind", r, 1, func(p *book.Payment) { p.Kind = book.KindCollection })
	differ("another Reference", r, 1, func(p *book.Payment) { p.Reference = "order-00000002" })
	differ("a boundary that moved", r, 1, func(p *book.Payment) { p.Mode, p.Tenant = "testt", "1" })
}

// An operator finds a payment at its second rail, even if the operator knows only the request.
func TestReferences_coverAttempts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(unsent), always(notFound))
		h.second.script(always(pending), always(success))
		pay, _, err := n.Payout(t.Context(), h.caller(), h.payout())
		if err != nil {
			t.Fatal(err)
		}
		n.pass(2 * time.Second)
		all := n.References(h.tenant, book.KindPayout, pay.Reference)
		got := n.must(book.KindPayout, pay.ID)
		if got.Attempt != 2 || got.Rail != "hubtel" || len(all) != 1+earlierAttempts || all[0] != got.ProviderReference || all[0] != got.AttemptReference {
			t.Errorf("attempt %d at %s is %s of %s; the references are %v", got.Attempt, got.Rail, got.AttemptReference, got.ProviderReference, all)
		}
	})
}
