package delivery

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

func TestReceipt_beforeAnswer(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			state := delivered
			if s.To == "233241000002" {
				state = provider.DeliveryExpired
			}
			h.receipt(o.UpstreamID, string(s.To), state)
			return o
		})
		c := h.mustSend("hello", "0241000001", "0241000002")
		h.wantStatus(c, "1 delivered, 1 expired")
		if list := h.messages(c); !list[0].DeliveredAt.Equal(smstest.Morning) || !list[1].DeliveredAt.IsZero() {
			t.Errorf("%+v", list)
		}
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are kept for later", n)
		}
		h.WantBalance(8)
		h.sound()
	})
}

func TestReceipt_missedByStep(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", "0241000001")
		// The receipt and the message are stored by two concurrent transactions, and neither sees the row of the
		// other.
		h.Write(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at) VALUES ('id-000001', 'r1', '233241000001', 'delivered', '000', $1)`, smstest.Morning)
			return err
		})
		h.wantStatus(c, "1 submitted")
		h.Pass(earlyPassEvery)
		h.wantStatus(c, "1 delivered")
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are kept for later", n)
		}
		h.sound()
	})
}

// A repeated receipt is used once, however early it comes. It does not match another message to the same number whose
// answer was lost.
func TestReceipt_repeatedMatchesNoOther(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return provider.Outcome{Class: provider.Unknown} })
		lost := h.mustSend("hello", "0241000001")
		h.wantStatus(lost, "1 unknown")
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			h.receipt(o.UpstreamID, string(s.To), delivered)
			h.receipt(o.UpstreamID, string(s.To), delivered)
			return o
		})
		told := h.mustSend("hello again", "0241000001")
		h.wantStatus(told, "1 delivered")
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d repeated receipts are kept", n)
		}
		// Here a step and the second receipt are stored by concurrent transactions.
		id := h.operator.All()[1].Outcome.UpstreamID
		h.Write(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at) VALUES ($1, 'r1', '233241000001', 'delivered', '000', $2)`, id, h.clock.Now())
			return err
		})
		h.Pass(earlyPassEvery)
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d missed receipts are kept", n)
		}
		h.Pass(time.Hour)
		h.wantStatus(lost, "1 unknown")
		h.Pass(2 * receiptWindow)
		h.wantStatus(lost, "1 failed")
		h.WantBalance(9)
		h.sound()
	})
}

// If two messages to one number are unknown, a receipt with an unknown id matches only one of them, however often it
// comes.
func TestReceipt_matchesUnknownMessage(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		first, second := h.mustSend("hello", "0241000001"), h.mustSend("hello again", "0241000001")
		again := func() { h.receipt("an id that nobody told us", "233241000001", delivered) }
		h.Pass(time.Minute)
		again()
		again()
		h.Pass(time.Hour)
		h.wantStatus(first, "1 delivered")
		h.wantStatus(second, "1 unknown")
		again()
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d repeated receipts are kept", n)
		}
		h.Pass(time.Hour)
		h.wantStatus(second, "1 unknown")
		h.receipt("another id", "233241000001", undelivered)
		h.Pass(time.Hour)
		h.wantStatus(first, "1 delivered")
		h.wantStatus(second, "1 failed")
		h.Pass(2 * receiptWindow)
		h.WantBalance(8) // an operator accepted both
		h.sound()
	})
}

func TestReceipt_lateRepeatedContradicting(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", "0241000001")
		h.receipt("id-000001", "233241000001", provider.DeliveryPending)
		h.wantStatus(c, "1 submitted")
		h.Pass(5 * 24 * time.Hour)
		at := h.clock.Now()
		h.receipt("id-000001", "233241000001", delivered)
		h.wantStatus(c, "1 delivered")
		h.Pass(time.Hour)
		h.receipt("id-000001", "233241000001", delivered)
		h.receipt("id-000001", "233241000001", undelivered)
		h.wantStatus(c, "1 delivered")
		if m := h.messages(c)[0]; !m.DeliveredAt.Equal(at) || m.Error != "" {
			t.Errorf("a repeated receipt changed the message: %+v", m)
		}
		h.WantBalance(9)
		h.sound()
	})
}

func TestReceipt_withoutMessage(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", "0241000001")
		h.receipt("no such id", "233241000001", delivered)
		h.receipt("no such id", "", delivered)
		h.receipt("id-000001", "233241000009", delivered) // the id belongs to a message to another number
		h.wantStatus(c, "1 submitted")
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 3 {
			t.Errorf("%d of 3 receipts are kept", n)
		}
		h.Pass(time.Hour)
		h.wantStatus(c, "1 submitted")
		h.Pass(earlyAfter)
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d receipts are kept for ever", n)
		}
		h.sound()
	})
}

func TestReceipt_reusedID(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			return provider.Outcome{Class: provider.Accepted, UpstreamID: "7"}
		})
		old := h.mustSend("hello", "0241000001")
		other := h.mustSend("hello", "0241000002")
		h.receipt("7", "233241000001", undelivered)
		h.wantStatus(old, "1 failed")
		h.wantStatus(other, "1 submitted")
		// A receipt that came long before a submit belongs to an earlier message.
		h.receipt("7", "233241000003", delivered)
		h.Pass(time.Hour)
		third := h.mustSend("hello", "0241000003")
		h.wantStatus(third, "1 submitted")
		// If one id and number match two messages, the receipt belongs to the newest open one.
		again := h.mustSend("hello again", "0241000001")
		h.receipt("7", "233241000001", delivered)
		h.wantStatus(old, "1 failed")
		h.wantStatus(again, "1 delivered")
		// A receipt without a number also belongs to the newest open message. Its repetition is not recognised.
		h.receipt("7", "", delivered)
		h.wantStatus(third, "1 delivered")
		h.wantStatus(other, "1 submitted")
		h.sound()
	})
}

func TestReceipt_lastPartDelivers(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		long := strings.Repeat("a", 161)
		for i, each := range []struct {
			first, second provider.Delivery
			want          Status
		}{
			{delivered, delivered, StatusDelivered},
			{delivered, undelivered, StatusFailed},
			{provider.DeliveryExpired, delivered, StatusExpired},
			{provider.DeliveryRejected, provider.DeliveryExpired, StatusRejected},
			{provider.DeliveryUnknown, delivered, StatusUnknown},
		} {
			c := h.mustSend(long, "0241000001")
			first, second := fmt.Sprintf("id-%06d", 2*i+1), fmt.Sprintf("id-%06d", 2*i+2)
			h.receipt(second, "233241000001", each.second)
			h.receipt(second, "233241000001", each.second)
			h.wantStatus(c, "1 submitted")
			h.receipt(first, "233241000001", each.first)
			h.wantStatus(c, "1 "+string(each.want))
		}
		h.WantBalance(90)
		h.Pass(2 * receiptWindow) // an accepted message that is reported unknown is not refunded
		h.WantBalance(90)
		h.sound()
	})
}

func TestReceipts_concurrent(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 1_000})
		c := h.mustSend(strings.Repeat("a", 161), smstest.Numbers(100)...)
		for nth := 1; nth < 6; nth++ {
			f.At(db.BoundaryCommit, nth, []db.Fault{db.FaultBefore, db.FaultAfter}[nth%2])
		}
		var wait sync.WaitGroup
		for _, s := range h.operator.All() {
			for range 2 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					h.receipt(s.Outcome.UpstreamID, s.To, delivered)
				}()
			}
		}
		wait.Wait()
		h.wantStatus(c, "100 delivered")
		if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
			t.Errorf("%d repeated receipts are kept", n)
		}
		h.sound()
	})
}

func TestReceipt_everyStateHasAName(t *testing.T) {
	for state := provider.DeliveryPending; state <= provider.DeliveryUnknown; state++ {
		if partStates[state] == "" {
			t.Errorf("delivery %d has no stored word", state)
		}
	}
}

func TestReceipt_beforeAnswerLostCommit(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 100})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			h.receipt(o.UpstreamID, string(s.To), delivered)
			return o
		})
		for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
			for nth := 1; nth <= 4; nth++ {
				f.At(db.BoundaryCommit, nth, fault)
				h.wantStatus(h.mustSend("hello", "0241000001"), "1 delivered")
				if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
					t.Errorf("%d receipts are kept for later", n)
				}
			}
		}
		h.sound()
	})
}

// keep stores receipts as a transaction does that is concurrent with the step of their message.
func (h *fixture) keep(list ...earlyReceipt) {
	h.t.Helper()
	for i := range list {
		list[i].ID = fmt.Sprintf("%s %s %d", list[i].UpstreamID, list[i].Recipient, i)
		list[i].State = string(StatusDelivered)
	}
	h.Write(func(tx *db.Tx) error {
		tx.Defer(keepEarly, int64(len(list)), db.RowsOf(earlyColumns, list))
		return nil
	})
}

// Some receipts can match no message, because of another number or an earlier time. They do not delay others: one
// pass matches all the others.
func TestReceipts_unmatchedDelayNoOthers(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		const messages = earlyAtOnce + 100
		h := open(t, d, options{credits: messages})
		c := h.mustSend("hello", smstest.Numbers(messages)...)
		var list []earlyReceipt
		for _, s := range h.operator.All() {
			list = append(list, earlyReceipt{UpstreamID: s.Outcome.UpstreamID, Recipient: "233200000000", ReceivedAt: smstest.Morning},
				earlyReceipt{UpstreamID: s.Outcome.UpstreamID, Recipient: s.To, ReceivedAt: smstest.Morning.Add(-5 * time.Minute)})
		}
		h.keep(list...)
		if err := h.receipts.matchRecentReceipts(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.wantStatus(c, fmt.Sprintf("%d submitted", messages))
		list = list[:0]
		for _, s := range h.operator.All() {
			list = append(list, earlyReceipt{UpstreamID: s.Outcome.UpstreamID, Recipient: s.To, ReceivedAt: smstest.Morning.Add(time.Millisecond)})
		}
		h.keep(list...)
		if err := h.receipts.matchRecentReceipts(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.wantStatus(c, fmt.Sprintf("%d delivered", messages))
		h.sound()
	})
}
