package payments

import (
	"testing"

	"github.com/google/uuid"
)

// TestReferences: the same request makes the same ProviderReference on every
// node and after every restore, and no other request does.
func TestReferences(t *testing.T) {
	key := []byte("the secret of this installation")
	one := Payment{Mode: "test", Tenant: "t1", Kind: KindPayout, Reference: "order-00000001"}
	first := newReferences(key).make(one, 1)
	if again := newReferences(key).make(one, 1); again != first {
		t.Errorf("another node makes %s of it, not %s", again, first)
	}
	if id, err := uuid.Parse(first); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
		t.Errorf("%s is no UUIDv4: %v", first, err)
	}
	seen := map[string]string{first: "the request itself"}
	differ := func(how string, r *references, attempt int, change func(*Payment)) {
		t.Helper()
		other := one
		change(&other)
		reference := r.make(other, attempt)
		if same := seen[reference]; same != "" {
			t.Errorf("%s makes the reference of %s", how, same)
		}
		seen[reference] = how
	}
	r := newReferences(key)
	differ("another secret", newReferences([]byte("another one")), 1, func(*Payment) {})
	differ("another attempt", r, 2, func(*Payment) {})
	differ("another mode", r, 1, func(p *Payment) { p.Mode = "live" })
	differ("another tenant", r, 1, func(p *Payment) { p.Tenant = "t2" })
	differ("another kind", r, 1, func(p *Payment) { p.Kind = KindCollection })
	differ("another Reference", r, 1, func(p *Payment) { p.Reference = "order-00000002" })
	differ("a boundary that moved", r, 1, func(p *Payment) { p.Mode, p.Tenant = "testt", "1" })
}
