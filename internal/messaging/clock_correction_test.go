package messaging

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// The tests of a machine's clock that ran ahead and is set back. No message, number or campaign waits until the time
// that the clock showed before.

// A message that waits for its next offer does not wait longer.
func TestOffersDoNotWaitForAClockThatWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.script(func(n int, _ provider.Segment) provider.Outcome {
			if n == 1 {
				return throttled
			}
			return h.operator.accept()
		})
		c := h.mustSend("hello", "0241000001")
		h.clock.Set(-time.Hour)
		h.pass(mostRetry)
		h.wantStatus(c, "1 submitted")

		// Nor does the rest of a message that is partly accepted.
		h.operator.script(func(n int, s provider.Segment) provider.Outcome {
			if s.Part == 1 {
				h.clock.Set(-time.Hour)
				return h.operator.accept()
			}
			return throttled
		})
		torn, err := h.send(strings.Repeat("a", 161), "0241000002")
		if err != nil {
			t.Fatal(err)
		}
		h.work(func() bool { return h.status(torn) == CampaignDone })
		if n := len(h.operator.all()); n > 100 { // two before, and once a second of tornFor
			t.Errorf("%d segments were offered", n)
		}
		h.wantStatus(torn, "1 submitted")
		h.sound()
	})
}

// A campaign that is dated in the future may have been stopped long since.
func TestAStopIsSeenAfterTheClockWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.operator.setReady(errors.New("not bound"))
		c := h.mustSend("hello", numbers(20)...)
		h.clock.Set(-time.Hour)
		h.operator.setReady(nil)
		h.write(func(tx *db.Tx) error {
			_, err := h.StopCampaign(tx, c.ID)
			return err
		})
		h.pass(noBindPause)
		if n := len(h.operator.all()); n != 0 {
			t.Errorf("%d messages of a stopped campaign left", n)
		}
		h.wantStatus(c, "20 failed")
		h.wantBalance(100)
		h.sound()
	})
}

// A receipt that comes now is for a submit before it, whatever the clock said then.
func TestAReceiptIsMatchedAfterTheClockWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", "0241000001")
		long := h.mustSend(strings.Repeat("a", 161), "0241000001")
		h.clock.Set(-time.Hour)
		for _, s := range h.operator.all() {
			h.receipt(s.outcome.UpstreamID, s.to, delivered)
		}
		h.wantStatus(c, "1 delivered")
		h.wantStatus(long, "1 delivered")
		if n := h.count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are kept for later", n)
		}
		h.sound()
	})
}

// The same holds for a receipt that waits for its message: until the answer to the submit, or because there was none.
func TestAnEarlyReceiptIsMatchedAfterTheClockWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.accept()
			h.clock.Set(-time.Hour)
			h.receipt(o.UpstreamID, string(s.To), delivered)
			return o
		})
		h.wantStatus(h.mustSend("hello", "0241000001"), "1 delivered")

		h.operator.script(func(int, provider.Segment) provider.Outcome { return silence })
		lost := h.mustSend("hello", "0241000002")
		h.clock.Set(-time.Hour)
		h.receipt("an id that nobody told us", "233241000002", delivered)
		h.pass(3 * time.Hour) // until it is later than ever before
		h.wantStatus(lost, "1 delivered")
		h.pass(2 * receiptWindow)
		h.wantBalance(8)
		h.sound()
	})
}

// A node that takes over a message in flight waits for its receipt, too.
func TestAReceiptIsMatchedAfterATakeOverAndAClockThatWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, sleep: true})
		c, err := h.send("hello", "0241000001")
		if err != nil {
			t.Fatal(err)
		}
		h.write(func(tx *db.Tx) error { // as a node does that dies in its submit
			n, err := tx.Exec("UPDATE campaigns SET turn = 1, marked_at = $1 WHERE id = $2", h.clock.Now(), c.ID)
			if err == nil && n != 1 {
				err = errors.New("the campaign is not there")
			}
			return err
		})
		h.clock.Set(-time.Hour)
		h.start()
		h.quiet()
		h.wantStatus(c, "1 unknown")
		h.receipt("an id that nobody told us", "233241000001", delivered)
		h.pass(2 * time.Hour)
		h.wantStatus(c, "1 delivered")
		h.sound()
	})
}

// A window that was begun in the future does not block a number until then.
func TestOTPLimitsEndAfterTheClockWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.clock.Set(24 * time.Hour)
		var sent OTPSent
		for range otpSends {
			var code string
			sent, code = h.mustOTP(OTP{})
			for range otpFails / otpSends {
				h.wantVerify(sent, wrong(code), problem.Invalid)
			}
		}
		_, err := h.otp(OTP{})
		wantKind(t, err, problem.RateLimited)
		h.clock.Set(-time.Minute) // by less than a window: nothing begins anew
		_, err = h.otp(OTP{})
		wantKind(t, err, problem.RateLimited)
		h.wantVerify(sent, "0000", problem.RateLimited)
		h.clock.Set(time.Minute - 24*time.Hour)
		sent, code := h.mustOTP(OTP{})
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.wantVerify(sent, code, "")
		h.sound()
	})
}

// A code is not good for longer because the clock was set back.
func TestVerifyOTP_clockSetBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		sent, code := h.mustOTP(OTP{})
		h.clock.Set(-30 * time.Second) // nodes may differ by this
		h.wantVerify(sent, wrong(code), problem.Invalid)
		h.clock.Set(-time.Hour)
		h.wantVerify(sent, code, problem.Unauthenticated)
		h.sound()
	})
}

// A clock that is set forward gives no message back whose receipt may still come, and drops no receipt that waits for its message.
func TestRefundUnknown_clockSetForward(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.script(func(int, provider.Segment) provider.Outcome { return silence })
		c := h.mustSend("hello", "0241000001")
		h.wantStatus(c, "1 unknown")
		h.receipt("an id of another message", "233241000009", delivered)
		h.clock.Set(10 * 24 * time.Hour)
		h.pass(2 * sweepEvery)
		h.wantStatus(c, "1 unknown")
		h.wantBalance(9)
		if n := h.count("SELECT count(*) FROM early_receipts"); n != 1 {
			t.Errorf("%d receipts wait for their messages", n)
		}
		h.pass(receiptWindow + orphanAfter + 2*sweepEvery)
		h.wantStatus(c, "1 failed")
		h.wantBalance(10)
		if n := h.count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are left", n)
		}
		h.sound()
	})
}
