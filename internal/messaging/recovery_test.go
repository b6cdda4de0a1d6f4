package messaging

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/smstest"
)

// A restored database may lack messages that were sent. New campaigns are therefore refused, and open ones wait until
// an operator resumes those of the customer. One-time passwords are sent.
func TestRecovery_campaignsWait(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100, sleep: true})
		waits, err := h.send("hello", smstest.Numbers(20)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Recovery.Begin(t.Context(), "a test", time.Time{}, "", "node"); err != nil {
			t.Fatal(err)
		}
		if err := h.Recovery.Open(t.Context(), "redone", "ama"); err != nil {
			t.Fatal(err)
		}
		h.Start()
		h.Pass(time.Minute)
		h.wantStatus(waits, "20 queued")
		if _, err := h.send("hello", "0241000002"); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a new campaign: %v", err)
		}
		if sent, code := h.mustOTP(OTP{SenderID: h.sender.ID, Message: otp.Placeholder, Phone: ama}); sent.RequestID == "" || code == "" {
			t.Errorf("a one-time password: %+v", sent)
		}
		if err := h.Recovery.Allow(t.Context(), h.Tenant.ID, "the operator's statement", "ama"); err != nil {
			t.Fatal(err)
		}
		h.Pass(2 * delivery.RecoveryPause)
		h.wantStatus(waits, "20 submitted")
		h.mustSend("hello", "0241000002")
		h.sound()
	})
}
