package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

func TestClaims_beforeSubmission(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		unmarked := 0
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if h.Count("SELECT count(*) FROM campaigns WHERE numbers LIKE '%' || $1 || '%' AND turn > 0 AND marked_at > 0", string(s.To)) != 1 {
				unmarked++
			}
			return h.operator.Accept()
		})
		h.mustSend("hello", "0241000001")                        // claimed with the charge
		h.operator.SetReady(fmt.Errorf("no operator"))           // so the handler claims the next ones when it can send
		later := h.mustSend("hello", "0241000002", "0241000003") //
		if n := h.Count("SELECT count(*) FROM campaigns WHERE id = $1 AND (turn > 0 OR marked_at > 0)", later.ID); n != 0 {
			t.Errorf("%d messages are marked that nobody can send", n)
		}
		h.operator.SetReady(nil)
		h.Pass(resubmitFor + noBindPause) // the time without an operator does not count against them
		h.Drain(t.Context())
		h.mustSend("hello", "0241000004")
		h.wantStatus(later, "2 submitted")
		if n := len(h.operator.All()); n != 4 || unmarked != 0 {
			t.Errorf("%d of 4 messages left, %d without a mark", n, unmarked)
		}
		if n := h.Count("SELECT count(*) FROM chunks"); n != 0 {
			t.Errorf("%d chunks", n)
		}
		h.sound()
	})
}

// admission returns a message to numbers that is claimed with its charge.
func (h *fixture) admission(kind Kind, to ...string) *admission {
	h.t.Helper()
	o := h.order("hello", to...)
	if kind == KindOTP {
		o = h.otp(to[0], time.Hour)
	}
	a := o.admission()
	a.claimed, a.campaign.turn, a.campaign.claimedAt = true, newTurn(), a.campaign.CreatedAt
	return a
}

// claimed accepts a message to numbers, as a node that dies before it submits.
func (h *fixture) claimed(kind Kind, to ...string) Campaign {
	h.t.Helper()
	a := h.admission(kind, to...)
	v, err := h.admissions.admit(h.t.Context(), []*admission{a})
	if err != nil || v[0].Err != nil {
		h.t.Fatal(v, err)
	}
	return a.campaign
}

func TestClaims_nodeDiesBeforeSubmission(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for _, resend := range []bool{false, true} {
			name := fmt.Sprint("shop-", resend)
			dead := node(t, d, options{node: name, sleep: true})
			dead.customer(name, 10)
			text := dead.claimed(KindCampaign, "233241000001", "233241000002")
			password := dead.claimed(KindOTP, "233241000003")
			h := node(t, d, options{node: "heir-" + name, resend: resend, at: dead.clock})
			h.Tenant = dead.Tenant
			h.operator.SetReady(fmt.Errorf("no operator"))
			h.Quiet()
			h.Pass(time.Minute) // includes jobs that were adopted late
			// The first node is not dead but slow. Its step with the answers is refused.
			late := &step{job: &chunkJob{id: "none", left: 1}, turn: text.turn, next: newTurn(), last: true,
				work: &work{campaign: text, chunk: chunk{Tenant: text.Tenant, Campaign: text.ID, Recipients: text.numbers, Small: true}}}
			for place := range text.numbers {
				late.results = append(late.results, result{message: late.work.message(place, StatusSubmitted, h.clock.Now())})
			}
			if v, err := dead.runner.steps.advance(t.Context(), []*step{late}); err != nil || resend != errors.Is(v[0].Err, errTakenOver) {
				t.Errorf("the answers of a dead node: %v, %v", v, err) // if the campaign has ended, the answers change nothing
			}
			h.operator.SetReady(nil)
			h.Pass(noBindPause)
			want, sent := "2 unknown", 0
			if resend {
				want, sent = "2 submitted", 2
			}
			h.wantStatus(text, want)
			h.wantStatus(password, "1 unknown")
			if n := len(h.operator.All()); n != sent {
				t.Errorf("%d messages left, expected %d", n, sent)
			}
			for _, c := range []Campaign{text, password} {
				if s := h.status(c); s != CampaignDone {
					t.Errorf("the campaign is %s", s)
				}
			}
			h.sound()
			if err := h.queue.Stop(context.Background()); err != nil { // another node must not run these jobs
				t.Fatal(err)
			}
		}
	})
}

func TestDrain_waitsForClaimed(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		begun, goOn, drained := make(chan struct{}), make(chan struct{}), make(chan struct{})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			close(begun)
			<-goOn
			return h.operator.Accept()
		})
		c, err := h.send("hello", "0241000001")
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		go func() {
			h.Drain(t.Context())
			close(drained)
		}()
		select {
		case <-drained:
			t.Error("a message is marked and not submitted, and the stop goes on")
		default:
		}
		close(goOn)
		<-drained
		if err := h.queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.wantStatus(c, "1 submitted")
		h.sound()
	})
}

func TestClaims_limitedByWorkers(t *testing.T) {
	var s sendingClaims
	c := clock.NewManual(smstest.Morning)
	for i := range claimsAtOnce {
		if !s.begin(c, fmt.Sprint(i)) {
			t.Fatalf("%d marks are too many", i)
		}
	}
	if s.begin(c, "one more") {
		t.Errorf("more than %d marks", claimsAtOnce)
	}
	s.end("7")
	if !s.begin(c, "one more") || s.begin(c, "two more") {
		t.Error("the place of one that ended is not free, or two are")
	}
	c.Advance(claimLife + time.Second)
	if !s.begin(c, "two more") {
		t.Error("marks whose jobs are lost stand in the way for ever")
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	s.drain(late, c) // drain does not wait here
	if s.begin(c, "after the end") {
		t.Error("marked although the node stops")
	}
	if len(s.at) != 1 {
		t.Errorf("left: %v", s.at)
	}
	c.Advance(claimLife + time.Second)
	s.drain(t.Context(), c) // must not wait for a claim whose job is lost
}
