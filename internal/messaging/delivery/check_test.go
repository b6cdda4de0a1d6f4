package delivery

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

// TestCheck_findsEveryFault changes one thing at a time in the database. The check reports each of them.
func TestCheck_findsEveryFault(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 5_000})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			switch s.To {
			case "233240000001":
				return smstest.Refused
			case "233240000002":
				return smstest.Silence
			}
			return h.operator.Accept()
		})
		h.mustSend("hello", smstest.Numbers(5)...)
		h.mustSend(strings.Repeat("a", 161), "0241234567")
		h.operator.SetReady(provider.ErrElsewhere)
		h.mustSend("hello", smstest.Numbers(1_005)...)
		h.sound()
		for _, each := range []struct{ breaks, mends string }{
			{"UPDATE campaigns SET refunded = refunded + 1 WHERE recipients = 5", "UPDATE campaigns SET refunded = refunded - 1 WHERE recipients = 5"},
			{"UPDATE campaigns SET credits = 2 WHERE recipients = 5", "UPDATE campaigns SET credits = 1 WHERE recipients = 5"},
			{"UPDATE campaigns SET left_over = 1 WHERE recipients = 5", "UPDATE campaigns SET left_over = 0 WHERE recipients = 5"},
			{"UPDATE campaigns SET status = 'done' WHERE recipients = 5", "UPDATE campaigns SET status = 'active' WHERE recipients = 5"},
			{"UPDATE campaigns SET status = 'done' WHERE recipients = 1005", "UPDATE campaigns SET status = 'active' WHERE recipients = 1005"},
			{"UPDATE messages SET status = 'queued' WHERE recipient = '233240000003'", "UPDATE messages SET status = 'submitted' WHERE recipient = '233240000003'"},
			{"UPDATE messages SET status = 'failed' WHERE recipient = '233240000002'", "UPDATE messages SET status = 'unknown' WHERE recipient = '233240000002'"},
			{"UPDATE messages SET status = 'sending' WHERE recipient = '233240000000'", "UPDATE messages SET status = 'submitted' WHERE recipient = '233240000000'"},
			{"UPDATE messages SET open = 0 WHERE recipient = '233240000000'", "UPDATE messages SET open = 1 WHERE recipient = '233240000000'"},
			{"UPDATE messages SET status = 'delivered' WHERE recipient = '233240000001'", "UPDATE messages SET status = 'rejected' WHERE recipient = '233240000001'"},
			{"UPDATE parts SET state = 'failed' WHERE upstream_id = 'id-000004'", "UPDATE parts SET state = 'open' WHERE upstream_id = 'id-000004'"},
			{"UPDATE chunks SET size = 4 WHERE no = 1", "UPDATE chunks SET size = 5 WHERE no = 1"},
			{"UPDATE unsure SET message = 3", "UPDATE unsure SET message = 2"},
			{"UPDATE transfers SET amount = 4 WHERE kind = 'sms_charge' AND amount = 5", "UPDATE transfers SET amount = 5 WHERE kind = 'sms_charge' AND amount = 4"},
			{"UPDATE transfers SET kind = 'sms_refund' WHERE kind = 'sms_sale'", "UPDATE transfers SET kind = 'sms_sale' WHERE kind = 'sms_refund' AND from_account <> 'used'"},
			{"UPDATE transfers SET kind = 'other' WHERE kind = 'sms_refund'", "UPDATE transfers SET kind = 'sms_refund' WHERE kind = 'other'"},
		} {
			h.Write(func(tx *db.Tx) error { _, err := tx.Exec(each.breaks); return err })
			if r, err := h.Check(t.Context()); err != nil || r.OK() {
				t.Errorf("not found: %s; %v", each.breaks, err)
			}
			h.Write(func(tx *db.Tx) error { _, err := tx.Exec(each.mends); return err })
			h.sound()
		}
	})
}
