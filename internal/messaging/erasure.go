package messaging

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/messaging/otp"
)

// erasureWindow is the number of messages that one statement scans. A scan is necessary because numbers have no
// index.
const erasureWindow = 5_000

const (
	recipientsAfter = `SELECT tenant, campaign, no, recipient, status, submitted_at,
	open + (SELECT count(*) FROM unsure WHERE unsure.tenant = messages.tenant AND unsure.campaign = messages.campaign AND unsure.message = messages.no) FROM messages
WHERE (tenant, campaign, no) > ($1, $2, $3) ORDER BY tenant, campaign, no LIMIT $4`
)

// EraseCounters deletes the counters of one-time passwords to a number, and the stored receipts for the number that
// match no message. The caller must ensure that no message to the number is open, because one of the receipts may
// belong to it.
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
	No               int64 // place in the campaign
	Status           Status
	SubmittedAt      int64 // microseconds; 0: never
	open             int64 // number of receipts that may still come; they are matched by the number
}

// Over reports whether the message is final and waits for no receipt.
func (s Sent) Over() bool {
	return s.open == 0 && s.Status != StatusQueued && s.Status != StatusSending && s.Status != delivery.StatusSubmitted
}

// OfNumber calls each for every message to a number. It scans all messages in limited steps.
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

// EraseRecipient replaces the number of a final message in its row, in its parts and in the list of a small campaign.
// A one-time password cannot be verified any more afterwards.
func EraseRecipient(tx *db.Tx, s Sent, instead string) {
	delivery.EraseRecipient(tx, s.Tenant, s.Campaign, s.No, s.Recipient, instead)
	otp.EraseNumber(tx, s.Tenant, s.Campaign, instead)
}
