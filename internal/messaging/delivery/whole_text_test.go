package delivery

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

// A provider over HTTP gets the whole text once, whatever its number of segments. Credits and the single receipt work
// as over SMPP.
func TestWholeText_oneSubmission(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 20})
		h.operator.TakeWhole(true)
		text := strings.Repeat("Akwaaba ", 50) // 400 characters: 3 segments, 3 credits
		c := h.mustSend(text, "0241000001", "0241000002", "0241000003")
		all := h.operator.All()
		if len(all) != 3 || all[0].Text != text || all[0].Parts != 1 || all[0].Group != 0 {
			t.Fatalf("%+v", all)
		}
		h.WantBalance(20 - 3*3)
		if m := h.messages(c)[0]; m.Accepted != 3 || m.Status != StatusSubmitted {
			t.Errorf("%+v", m)
		}
		h.receipt(all[0].Outcome.UpstreamID, "", delivered) // Arkesel's reports contain no number
		h.receipt(all[1].Outcome.UpstreamID, all[1].To, undelivered)
		h.receipt("arkesel/forged", "", delivered)
		h.wantStatus(c, "1 delivered, 1 failed, 1 submitted")
		h.Pass(receiptWindow + 24*time.Hour)
		h.wantStatus(c, "1 delivered, 1 failed, 1 submitted")
		h.WantBalance(20 - 3*3) // accepted, so not refunded
		h.sound()
	})
}

// A text whose answer is lost is unknown. It is not sent again over any route, and the credits are refunded after the
// receipt window.
func TestWholeText_lostAnswerIsNeverSentAgain(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.TakeWhole(true)
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			h.operator.TakeWhole(false) // the other route is ready at once
			return smstest.Silence
		})
		c := h.mustSend(strings.Repeat("a", 170), "0241000001")
		for range 40 {
			h.Pass(time.Minute)
		}
		h.wantStatus(c, "1 unknown")
		h.Pass(receiptWindow + time.Hour)
		h.wantStatus(c, "1 failed")
		h.WantBalance(10)
		if n := len(h.operator.All()); n != 1 {
			t.Errorf("%d submissions", n)
		}
		h.sound()
	})
}

// A message that a provider over HTTP did not accept is sent in segments over the binds, and the other way round.
func TestWholeText_changesRoute(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for _, first := range []bool{true, false} {
			name := map[bool]string{true: "web", false: "binds"}[first]
			h := node(t, d, options{node: name})
			h.customer(name, 10)
			h.operator.TakeWhole(first)
			h.operator.Script(func(int, provider.Segment) provider.Outcome {
				if h.operator.Whole("", "") == first {
					return smstest.Throttled
				}
				return h.operator.Accept()
			})
			c := h.mustAccept(h.order(strings.Repeat("a", 170), "0241000001"))
			clocktest.Await(t, "an offer", func() bool { return len(h.operator.All()) > 0 })
			h.operator.TakeWhole(!first)
			h.Quiet()
			h.Pass(2 * time.Second)
			h.wantStatus(c, "1 submitted")
			parts := map[int]int{}
			for _, s := range h.operator.All() {
				if s.Outcome.Class == provider.Accepted {
					parts[s.Parts]++
				}
			}
			if want := map[bool]int{true: 2, false: 1}[first]; parts[want] != want || len(parts) != 1 {
				t.Errorf("%v", parts)
			}
			h.sound()
			if err := h.queue.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// stage is a rail of whole texts that stops at one point of a submission.
type stage struct {
	*smstest.Operator
	before  bool // stop before the provider has the text
	outcome provider.Outcome
	reached chan struct{}
	goOn    chan struct{}
}

func (s *stage) Submit(ctx context.Context, segment provider.Segment, done func(provider.Outcome)) {
	if s.before {
		close(s.reached)
		<-s.goOn
		done(s.outcome)
		return
	}
	s.Operator.Submit(ctx, segment, func(provider.Outcome) {
		close(s.reached)
		<-s.goOn
		done(s.outcome)
	})
}

// A node is stopped at each boundary of a submission over HTTP and continues after another node took over. The text
// is never sent twice, whatever the answer was.
func TestWholeText_nodeDiesAtEachBoundary(t *testing.T) {
	taken := provider.Outcome{Class: provider.Accepted, UpstreamID: "arkesel/old"}
	for name, c := range map[string]struct {
		before  bool
		outcome provider.Outcome
	}{
		"claimed, the request not written":      {true, provider.Outcome{Class: provider.NotSent}},
		"at the provider, then accepted":        {false, taken},
		"at the provider, then refused":         {false, smstest.Refused},
		"at the provider, answer lost":          {false, smstest.Silence},
		"answered, free for another route":      {true, smstest.Throttled},
		"accepted without an id, then returned": {false, provider.Outcome{Class: provider.Accepted}},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				rail := &stage{Operator: smstest.NewOperator(), before: c.before, outcome: c.outcome, reached: make(chan struct{}), goOn: make(chan struct{})}
				rail.TakeWhole(true)
				h := nodeOn(t, d, options{node: "one"}, rail)
				h.operator = rail.Operator
				h.customer("shop", 10)
				sent := h.mustAccept(h.order(strings.Repeat("a", 200), "0241000001"))
				<-rail.reached
				kill(t, d, "one")
				other := node(t, d, options{node: "two", at: h.clock})
				other.Tenant = h.Tenant
				other.operator.TakeWhole(true)
				other.Quiet()
				close(rail.goOn)
				h.Quiet()
				other.Pass(time.Hour)
				if n := len(rail.All()) + len(other.operator.All()); n > 1 || len(other.operator.All()) > 0 {
					t.Errorf("%d submissions, %d by the other node", n, len(other.operator.All()))
				}
				h.wantStatus(sent, "1 unknown")
				other.Pass(receiptWindow + time.Hour)
				h.wantStatus(sent, "1 failed")
				other.WantBalance(10)
				h.sound()
			})
		})
	}
}

// The rail did not accept the message, and its row is free again. The next owner sends it once.
func TestWholeText_nodeDiesWhileItWaits(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, node: "one"})
		h.operator.TakeWhole(true)
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Throttled })
		c := h.mustSend("hello", "0241000001")
		h.Quiet() // a node that dies before the answer is stored leaves the message unknown
		kill(t, d, "one")
		other := node(t, d, options{node: "two"}) // with a clock of its own, so that the dead node does nothing more
		other.Tenant = h.Tenant
		other.Pass(time.Minute)
		h.wantStatus(c, "1 submitted")
		if n := len(other.operator.All()); n != 1 {
			t.Errorf("%d submissions", n)
		}
		other.WantBalance(9)
		h.sound()
	})
}

// Open messages of one provider and mode are polled in bounded passes, the oldest first. Each message gets its turn.
func TestPoll_openMessagesOfOneProvider(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.TakeWhole(true)
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			if o.UpstreamID = "hubtelsms/" + string(s.To); s.To[len(s.To)-1] == '9' {
				o.UpstreamID = "arkesel/" + string(s.To)
			}
			return o
		})
		c := h.mustSend("hello", smstest.Numbers(20)...)
		asked := make(chan string, 100)
		poll := func(mode tenant.Mode, state provider.Delivery) {
			t.Helper()
			err := h.PollStates(t.Context(), mode, "hubtelsms", 2, func(_ context.Context, id string) (provider.Receipt, bool) {
				asked <- id
				return provider.Receipt{UpstreamID: id, State: state, At: h.clock.Now()}, id != "233240000003"
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		poll(tenant.Live, delivered)
		if len(asked) != 0 {
			t.Error("a message was polled at once")
		}
		h.Pass(pollFirst + time.Second)
		poll(tenant.Test, delivered)
		if len(asked) != 0 {
			t.Error("the other mode was polled")
		}
		poll(tenant.Live, provider.DeliveryPending)
		h.wantStatus(c, "20 submitted")
		poll(tenant.Live, delivered)
		if len(asked) != 36 {
			t.Errorf("%d polls", len(asked))
		}
		h.wantStatus(c, "3 delivered, 1 submitted, 5 delivered, 1 submitted, 9 delivered, 1 submitted")
		h.Pass(pollFor)
		for len(asked) > 0 {
			if _, err := msisdn.Parse(<-asked); err != nil {
				t.Error(err)
			}
		}
		poll(tenant.Live, delivered)
		if len(asked) != 0 {
			t.Error("an old message was polled")
		}
		h.sound()
	})
}
