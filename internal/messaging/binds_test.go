package messaging

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/tenant"
)

func TestBindsAreAsTheirNodeSaidLast(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := node(t, d, options{})
		note := func(binds ...Bind) {
			t.Helper()
			if err := h.NoteBinds(t.Context(), tenant.Live, binds); err != nil {
				t.Fatal(err)
			}
		}
		want := func(states ...string) {
			t.Helper()
			all, err := h.Binds(t.Context())
			if err != nil || len(all) != len(states) {
				t.Fatalf("%+v, %v; expected %v", all, err, states)
			}
			for i, b := range all {
				if got := b.State(h.clock.Now()); got != states[i] {
					t.Errorf("%s is %s, expected %s", b.Name, got, states[i])
				}
			}
		}
		note(Bind{Name: "at", Connections: 2, Bound: 2}, Bind{Name: "mtn", Connections: 2, Bound: 1}, Bind{Name: "telecel", Connections: 1, Why: "refused"})
		want(BindUp, BindPartly, BindDown)
		h.clock.Advance(bindHeard + time.Second)
		want(BindSilent, BindSilent, BindSilent)
		note(Bind{Name: "mtn", Connections: 2, Bound: 2}) // the others were taken out of the configuration
		want(BindUp)
	})
}

// All receipts are orphans when an operator writes ids in another base in its receipts.
func TestReceiptsThatMatchNothingAreCounted(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.mustSend("hello", "0241000001", "0241000002")
		begun := h.clock.Now()
		h.receipt("id-000001", "233241000001", delivered)
		h.receipt("1a2b", "233241000002", delivered)
		strays := func(want int64) OrphanReceipts {
			t.Helper()
			s, err := h.OrphanReceipts(t.Context())
			if err != nil || s.Receipts != want {
				t.Fatalf("%+v, %v; expected %d", s, err, want)
			}
			return s
		}
		strays(0) // its message may still come
		h.pass(orphanAfter + time.Second)
		if s := strays(1); s.ID != "1a2b" || s.Since.Before(begun) {
			t.Errorf("%+v", s)
		}
		h.pass(earlyAfter + sweepEvery)
		strays(0)
	})
}
