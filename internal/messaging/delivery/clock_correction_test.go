package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

// In these tests the clock of a machine was ahead and is set back. No message, number or campaign waits until the
// clock shows the earlier time again.

// A message that waits for its next offer does not wait for longer.
func TestClockSetBack_retriesContinue(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(n int, _ provider.Segment) provider.Outcome {
			if n == 1 {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		c := h.mustSend("hello", "0241000001")
		h.clock.Set(-time.Hour)
		h.Pass(mostRetry)
		h.wantStatus(c, "1 submitted")

		// Nor do the remaining segments of a message that is partly accepted.
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			if s.Part == 1 {
				h.clock.Set(-time.Hour)
				return h.operator.Accept()
			}
			return smstest.Throttled
		})
		torn, err := h.send(strings.Repeat("a", 161), "0241000002")
		if err != nil {
			t.Fatal(err)
		}
		h.work(func() bool { return h.status(torn) == CampaignDone })
		if n := len(h.operator.All()); n > 100 { // two before the step, then one each second during tornFor
			t.Errorf("%d segments were offered", n)
		}
		h.wantStatus(torn, "1 submitted")
		h.sound()
	})
}

// A campaign with a time in the future may have been stopped meanwhile. The stop is seen.
func TestClockSetBack_stopIsSeen(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.operator.SetReady(errors.New("not bound"))
		c := h.mustSend("hello", smstest.Numbers(20)...)
		h.clock.Set(-time.Hour)
		h.operator.SetReady(nil)
		h.stop(c)
		h.Pass(noBindPause)
		if n := len(h.operator.All()); n != 0 {
			t.Errorf("%d messages of a stopped campaign left", n)
		}
		h.wantStatus(c, "20 failed")
		h.WantBalance(100)
		h.sound()
	})
}

// A receipt belongs to an earlier submit, even if the clock shows a time before the submit.
func TestClockSetBack_receiptIsMatched(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", "0241000001")
		long := h.mustSend(strings.Repeat("a", 161), "0241000001")
		h.clock.Set(-time.Hour)
		for _, s := range h.operator.All() {
			h.receipt(s.Outcome.UpstreamID, s.To, delivered)
		}
		h.wantStatus(c, "1 delivered")
		h.wantStatus(long, "1 delivered")
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are kept for later", n)
		}
		h.sound()
	})
}

// The same holds for a receipt that waits for its message, either until the answer to the submit or because there was
// no answer.
func TestClockSetBack_earlyReceiptIsMatched(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			h.clock.Set(-time.Hour)
			h.receipt(o.UpstreamID, string(s.To), delivered)
			return o
		})
		h.wantStatus(h.mustSend("hello", "0241000001"), "1 delivered")

		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		lost := h.mustSend("hello", "0241000002")
		h.clock.Set(-time.Hour)
		h.receipt("an id that nobody told us", "233241000002", delivered)
		h.Pass(3 * time.Hour) // until the clock shows a later time than ever before
		h.wantStatus(lost, "1 delivered")
		h.Pass(2 * receiptWindow)
		h.WantBalance(8)
		h.sound()
	})
}

// A node that takes over a message in flight also waits for its receipt.
func TestClockSetBack_receiptAfterTakeover(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, sleep: true})
		c, err := h.send("hello", "0241000001")
		if err != nil {
			t.Fatal(err)
		}
		h.Write(func(tx *db.Tx) error { // as after a node that died during its submit
			n, err := tx.Exec("UPDATE campaigns SET turn = 1, marked_at = $1 WHERE id = $2", h.clock.Now(), c.ID)
			if err == nil && n != 1 {
				err = errors.New("the campaign is not there")
			}
			return err
		})
		h.clock.Set(-time.Hour)
		h.Start()
		h.Quiet()
		h.wantStatus(c, "1 unknown")
		h.receipt("an id that nobody told us", "233241000001", delivered)
		h.Pass(2 * time.Hour)
		h.wantStatus(c, "1 delivered")
		h.sound()
	})
}

// If the clock is set forward, no message is refunded whose receipt may still come. No receipt that waits for its
// message is dropped.
func TestRefundUnknown_clockSetForward(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		c := h.mustSend("hello", "0241000001")
		h.wantStatus(c, "1 unknown")
		h.receipt("an id of another message", "233241000009", delivered)
		h.clock.Set(10 * 24 * time.Hour)
		h.Pass(2 * sweepEvery)
		h.wantStatus(c, "1 unknown")
		h.WantBalance(9)
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 1 {
			t.Errorf("%d receipts wait for their messages", n)
		}
		h.Pass(receiptWindow + unmatchedMatchAfter + 2*sweepEvery)
		h.wantStatus(c, "1 failed")
		h.WantBalance(10)
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are left", n)
		}
		h.sound()
	})
}
