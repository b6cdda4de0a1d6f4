package smpp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/test/clocktest"
)

// TestMagicNumbers_asDocumented checks the outcomes of messages to magic numbers against the page about testing.
func TestMagicNumbers_asDocumented(t *testing.T) {
	delivered, failed := provider.Delivered, provider.DeliveryFailed
	for _, c := range []struct {
		code   string
		class  provider.Class
		before time.Duration // the latest time at which there is no receipt yet
		states []provider.Delivery
		shown  bool
	}{
		{"000", provider.Accepted, time.Second, []provider.Delivery{delivered}, true},
		{"001", provider.Accepted, -1, []provider.Delivery{delivered}, true},
		{"002", provider.Accepted, 44 * time.Second, []provider.Delivery{delivered}, true},
		{"003", provider.Accepted, time.Hour, nil, true},
		{"004", provider.Accepted, time.Second, []provider.Delivery{delivered, delivered}, true},
		{"006", provider.Unknown, -1, []provider.Delivery{delivered}, true},
		{"007", provider.Unknown, -1, []provider.Delivery{failed}, false},
		{"008", provider.Accepted, time.Second, []provider.Delivery{delivered, failed}, true},
		{"020", provider.Rejected, time.Minute, nil, false},
		{"021", provider.Accepted, 9 * time.Second, []provider.Delivery{provider.DeliveryExpired}, false},
		{"024", provider.Accepted, time.Second, []provider.Delivery{failed}, false},
		{"026", provider.Accepted, time.Second, []provider.Delivery{provider.DeliveryRejected}, false},
		{"031", provider.NotSent, time.Minute, nil, false},
		{"032", provider.Accepted, time.Second, []provider.Delivery{delivered}, true},
		{"040", provider.Accepted, time.Second, []provider.Delivery{delivered}, true},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			m := newCentre(t, smsc.Options{})
			bind := m.bind()
			bind.AnswerTimeout = 5 * time.Second
			k := m.client(bind)
			to := "233240000" + c.code
			var o outcomes
			k.Submit(t.Context(), segment(to, "Your code is 1"), o.of(0))
			clocktest.Await(t, "a submit", func() bool { return m.sms.Totals().Submitted == 1 })
			if c.class == provider.Unknown {
				m.until("an outcome", func() bool { return o.n.Load() == 1 })
			} else {
				clocktest.Await(t, "an outcome", func() bool { return o.n.Load() == 1 })
			}
			if out := o.get(0); out.Class != c.class {
				t.Fatalf("%+v", out)
			}
			if c.before > 0 {
				m.pass(c.before)
				if got := k.states(); len(got) > 0 {
					t.Errorf("after %s: %v", c.before, got)
				}
				if shown := len(m.Messages(to)) > 0; shown != (c.shown && c.before < 10*time.Second) && c.code != "003" {
					t.Errorf("after %s the handset shows %v", c.before, m.Messages(to))
				}
			}
			m.pass(5 * time.Second)
			if got := k.states(); !slices.Equal(got, c.states) {
				t.Errorf("receipts %v, not %v", got, c.states)
			}
			for _, r := range k.stored() {
				if r.To != segment(to, "").To || c.class == provider.Accepted && c.code != "032" && r.UpstreamID != o.get(0).UpstreamID {
					t.Errorf("%+v does not match %+v", r, o.get(0))
				}
			}
			want := "[]"
			if c.shown {
				want = "[Your code is 1]"
			}
			var texts []string
			for _, message := range m.Messages(to) {
				texts = append(texts, message.Text)
			}
			if fmt.Sprint(texts) != want {
				t.Errorf("the handset shows %v", texts)
			}
			if c.code == "031" {
				if out := k.send(to, "Your code is 2"); out.Class != provider.Accepted {
					t.Errorf("after its minute: %+v", out)
				}
			}
		})
	}
}
