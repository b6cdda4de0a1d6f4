package messaging

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
)

// saturday is a Saturday evening after the hours of promotional texts, and monday when they begin again.
var (
	saturday = time.Date(2026, 11, 28, 21, 30, 0, 0, time.UTC)
	monday   = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
)

// promoter is an account whose sender ID is promotional, on a Saturday evening.
func promoter(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	var hours config.Hours
	if err := hours.UnmarshalText([]byte("mon-sat 08:00-19:00")); err != nil {
		t.Fatal(err)
	}
	h := open(t, d, options{credits: 1_000, at: clock.NewManual(saturday), hours: hours})
	h.classify(senderid.Promotional)
	return h
}

func (h *fixture) classify(class senderid.Class) {
	h.t.Helper()
	h.Write(func(tx *db.Tx) error { _, err := h.senders.SetClass(tx, h.Tenant.ID, h.sender.ID, class); return err })
}

func (h *fixture) creditsLeft() int64 {
	h.t.Helper()
	n, err := h.Ledger.Balance(h.t.Context(), ledger.Key(h.Tenant.SMSCredits()))
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// to advances the clock to a time and lets the node work.
func (h *fixture) to(at time.Time) {
	h.t.Helper()
	h.clock.Advance(at.Sub(h.clock.Now()))
	h.Quiet()
}

// A promotional campaign of Saturday 21:30 waits for Monday 8:00. One-time passwords and transactional texts go at once.
func TestPromotional_waitsForItsHours(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := promoter(t, d)
		many := make([]string, 0, 30)
		for i := range 30 {
			many = append(many, "02410000"+string(rune('0'+i/10))+string(rune('0'+i%10)))
		}
		small, large := h.mustSend("Kenkey at half price", "0241000001"), h.mustSend("Kenkey at half price", many...)
		if !small.StartsAt.Equal(monday) || !large.StartsAt.Equal(monday) || len(h.operator.All()) != 0 {
			t.Fatalf("begins %v and %v, %d texts sent", small.StartsAt, large.StartsAt, len(h.operator.All()))
		}
		if _, _, err := h.SendOTP(t.Context(), h.caller(), OTP{SenderID: h.sender.ID, Message: "<%otp_code%>", Phone: "233241000001"}); err != nil {
			t.Fatal(err)
		}
		h.classify(senderid.Transactional)
		h.mustSend("Your order is ready", "0241000001")
		if n := len(h.operator.All()); n != 2 {
			t.Errorf("%d texts are sent at once, want 2", n)
		}
		h.to(monday.Add(-time.Minute))
		if n := len(h.operator.All()); n != 2 {
			t.Errorf("%d texts are sent before the hours", n-2)
		}
		h.to(monday.Add(time.Second))
		if n := len(h.operator.All()); n != 33 {
			t.Errorf("%d promotional texts are sent, want 31", n-2)
		}
		h.sound()
	})
}

// A campaign that is unfinished at the end of the sending hours continues at the beginning of the next ones.
func TestPromotional_pausesWhenHoursEnd(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := promoter(t, d)
		h.to(monday.Add(10*time.Hour + 59*time.Minute)) // 18:59
		h.operator.SetReady(problem.New(problem.Unavailable, "away", "The operator is away"))
		h.mustSend("Kenkey", "0241000001")
		h.clock.Advance(2 * time.Minute)
		h.operator.SetReady(nil)
		h.Quiet()
		if n := len(h.operator.All()); n != 0 {
			t.Fatalf("%d texts after 19:00", n)
		}
		h.to(monday.Add(24*time.Hour + time.Second))
		if n := len(h.operator.All()); n != 1 {
			t.Errorf("%d texts the next morning, want 1", n)
		}
	})
}

// A number that opts out while a campaign waits gets nothing, and its credits are returned.
func TestScheduled_heedsLaterOptOut(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := promoter(t, d)
		c := h.mustSend("Kenkey", "0241000001", "0241000002")
		h.Write(func(tx *db.Tx) error {
			_, err := h.contacts.StopByText(tx, h.Tenant.ID, "text to 1400", msisdn.MSISDN("233241000002"))
			return err
		})
		h.to(monday.Add(time.Second))
		if all := h.operator.All(); len(all) != 1 || all[0].To != "233241000001" {
			t.Errorf("sent: %+v", all)
		}
		if n := h.creditsLeft(); n != 999 {
			t.Errorf("%d credits are left, want 999", n)
		}
		h.wantStatus(c, "1 submitted, 1 failed")
		h.sound()
	})
}

// If a waiting campaign is stopped, its credits are returned at once.
func TestScheduled_stoppedRefundsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		at := h.clock.Now().Add(48 * time.Hour)
		send := Send{SenderID: h.sender.ID, Message: "Kenkey", Recipients: []string{"0241000001", "0241000002"}, At: at}
		c, _, err := h.Send(t.Context(), h.caller(), send)
		if err != nil || !c.StartsAt.Equal(at) {
			t.Fatalf("%+v, %v", c, err)
		}
		h.Quiet()
		h.Write(func(tx *db.Tx) error { _, err := h.StopCampaign(tx, c.ID); return err })
		h.Quiet()
		if n := h.creditsLeft(); n != 100 || len(h.operator.All()) != 0 {
			t.Errorf("%d credits, %d texts", n, len(h.operator.All()))
		}
		for _, wrong := range []time.Time{h.clock.Now(), h.clock.Now().Add(-time.Hour), h.clock.Now().Add(mostAhead + time.Hour)} {
			send.At = wrong
			if _, _, err := h.Send(t.Context(), h.caller(), send); !problem.Is(err, problem.Invalid) {
				t.Errorf("at %v: %v", wrong, err)
			}
		}
		h.sound()
	})
}
