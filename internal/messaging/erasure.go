package messaging

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/messaging/otp"
)

// erasureWindow is how many messages one statement looks at that searches for a number, which no index has.
const erasureWindow = 5_000

const (
	recipientsAfter = `SELECT tenant, campaign, no, recipient, status, submitted_at,
	open + (SELECT count(*) FROM unsure WHERE unsure.tenant = messages.tenant AND unsure.campaign = messages.campaign AND unsure.message = messages.no) FROM messages
WHERE (tenant, campaign, no) > ($1, $2, $3) ORDER BY tenant, campaign, no LIMIT $4`
)

// EraseCounters deletes the counters of one-time passwords to a number, and receipts that match no message to it. No
// message to the number may be open: its receipt could be among them.
func (m *Messaging) EraseCounters(ctx context.Context, number string) (erased int, err error) {
	if erased, err = m.Codes.EraseCounters(ctx, number); err != nil {
		return erased, err
	}
	return erased, m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		delivery.EraseReceipts(tx, number)
		return nil
	})
}

// Sent is a message to a number.
type Sent struct {
	Tenant, Campaign string
	Recipient        string
	No               int64 // its place in the campaign
	Status           Status
	SubmittedAt      int64 // microseconds; 0: never
	open             int64 // receipts that may still come, and are matched by the number
}

// Over reports whether the message is final.
func (s Sent) Over() bool {
	return s.open == 0 && s.Status != StatusQueued && s.Status != StatusSending && s.Status != delivery.StatusSubmitted
}

// OfNumber passes each message to a number to each. It scans all messages in bounded steps.
func (m *Messaging) OfNumber(ctx context.Context, number string, each func(Sent) error) error {
	after := func(s Sent) []any { return []any{s.Tenant, s.Campaign, s.No} }
	scan := func(r *db.Row, s *Sent) (Sent, bool, error) {
		err := r.Scan(&s.Tenant, &s.Campaign, &s.No, &s.Recipient, &s.Status, &s.SubmittedAt, &s.open)
		return *s, s.Recipient == number, err
	}
	return db.Walk(ctx, m.db, recipientsAfter, erasureWindow, after, scan, func(found []Sent) error {
		for _, one := range found {
			if err := each(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// EraseRecipient takes the number off a message that is over, off its parts and off the list in the row of a small campaign. The code
// of a one-time password is used or void then.
func EraseRecipient(tx *db.Tx, s Sent, instead string) {
	delivery.EraseRecipient(tx, s.Tenant, s.Campaign, s.No, s.Recipient, instead)
	otp.EraseNumber(tx, s.Tenant, s.Campaign, instead)
}
