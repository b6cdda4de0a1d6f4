package messaging

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/tenant"
)

func TestBinds_lastReportCounts(t *testing.T) {
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
		h.clock.Advance(bindReportLife + time.Second)
		want(BindSilent, BindSilent, BindSilent)
		note(Bind{Name: "mtn", Connections: 2, Bound: 2}) // the other binds are no longer configured
		want(BindUp)
	})
}
