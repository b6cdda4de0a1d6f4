package delivery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

// In these tests the first final state of a message stays, in whatever batches its receipts arrive.

const first = "233241000001"

func receiptOf(id string, state provider.Delivery) earlyReceipt {
	return earlyReceipt{UpstreamID: id, ID: uuid.Must(uuid.NewV7()).String(), Recipient: first, State: partStates[state], Code: "005", ReceivedAt: smstest.Morning}
}

// matchAll matches the batches one after another.
func (h *fixture) matchAll(batches ...[]earlyReceipt) {
	h.t.Helper()
	for _, batch := range batches {
		if _, err := h.receipts.match(h.t.Context(), batch); err != nil {
			h.t.Fatal(err)
		}
	}
}

// wantFirst checks that the message is delivered, and that the later receipt left nothing behind.
func (h *fixture) wantFirst(c Campaign) {
	h.t.Helper()
	h.wantStatus(c, "1 delivered")
	if m := h.messages(c)[0]; m.Error != "" {
		h.t.Errorf("the message has the error %q of a later receipt", m.Error)
	}
	if n := h.Count("SELECT count(*) FROM early_receipts"); n != 0 {
		h.t.Errorf("%d receipts are kept", n)
	}
}

func TestFirstReceiptCounts_inEveryBatching(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("hello", first)
		h.matchAll([]earlyReceipt{receiptOf("id-000001", delivered), receiptOf("id-000001", undelivered), receiptOf("id-000001", delivered)})
		h.wantFirst(c)
		c = h.mustSend("hello", first)
		h.matchAll([]earlyReceipt{receiptOf("id-000002", delivered)}, []earlyReceipt{receiptOf("id-000002", undelivered), receiptOf("id-000002", delivered)})
		h.wantFirst(c)
		h.sound()
	})
}

// Receipts that are queued one after another are stored in that order, whatever else is in their batch.
func TestFirstReceiptCounts_whenQueued(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		const messages = 100
		h := open(t, d, options{credits: messages})
		c := h.mustSend("hello", smstest.Numbers(messages)...)
		var waits []func() error
		for _, s := range h.operator.All() {
			for _, state := range []provider.Delivery{delivered, undelivered} {
				r := provider.Receipt{UpstreamID: s.Outcome.UpstreamID, State: state, At: h.clock.Now(), To: msisdn.MSISDN(s.To)}
				waits = append(waits, h.Receive(t.Context(), r))
			}
		}
		slices.Reverse(waits) // the order in which the results are awaited does not matter
		for _, wait := range waits {
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		}
		h.wantStatus(c, "100 delivered")
		h.sound()
	})
}

// Receipts that arrive before the answer to their submit keep their order, even if the clock is set back between
// them.
func TestFirstReceiptCounts_beforeTheAnswer(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			h.clock.Advance(10 * time.Second)
			h.receipt(o.UpstreamID, string(s.To), delivered)
			h.clock.Set(-5 * time.Second)
			h.receipt(o.UpstreamID, string(s.To), undelivered)
			return o
		})
		h.wantFirst(h.mustSend("hello", first))
		h.sound()
	})
}

// A receipt was kept while its message was being recorded. It counts before a receipt that comes later, also on
// another node.
func TestFirstReceiptCounts_thatWasKept(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		other := nodeWith(t, h, smstest.NewOperator())
		for i, node := range []*fixture{h, other} {
			c := h.mustSend("hello", first)
			id := h.operator.All()[i].Outcome.UpstreamID
			kept := receiptOf(id, delivered)
			h.Write(func(tx *db.Tx) error { // neither transaction saw the row of the other
				tx.Defer(keepEarly, 1, db.RowsOf(earlyColumns, []earlyReceipt{kept}))
				return nil
			})
			node.receipt(id, first, undelivered)
			h.wantFirst(c)
		}
		h.sound()
	})
}

// The first of several receipts also counts if the message is unknown.
func TestFirstReceiptCounts_ofAnUnknownMessage(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		c := h.mustSend("hello", first)
		h.clock.Advance(time.Minute)
		h.receipt("an id", first, delivered)
		h.clock.Set(-10 * time.Second)
		h.receipt("an id", first, undelivered)
		h.Pass(time.Hour)
		h.wantFirst(c)
		h.sound()
	})
}

// The receipts of two segments have the same result in one batch as in two. The message's error is that of the failed
// segment.
func TestReceiptsOfSegments_inEveryBatching(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		long := strings.Repeat("a", 161)
		together, apart := h.mustSend(long, first), h.mustSend(long, first)
		good := func(id string) earlyReceipt {
			r := receiptOf(id, delivered)
			r.Code = "000"
			return r
		}
		h.matchAll([]earlyReceipt{receiptOf("id-000001", undelivered), good("id-000002"), receiptOf("id-000002", undelivered)})
		h.matchAll([]earlyReceipt{receiptOf("id-000003", undelivered)}, []earlyReceipt{good("id-000004")})
		for _, c := range []Campaign{together, apart} {
			if m := h.messages(c)[0]; m.Status != StatusFailed || m.Error != "005" {
				t.Errorf("%s is %s with the error %q", c.ID, m.Status, m.Error)
			}
		}
		h.sound()
	})
}
