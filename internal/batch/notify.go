package batch

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/webhook"
)

// endEvent is the body of batch.finished. Amounts are in GHS.
type endEvent struct {
	Event          string    `json:"event"`
	ID             string    `json:"batch_id"`
	Name           string    `json:"name"`
	Status         Status    `json:"status"`
	Rows           int       `json:"rows"`
	Amount         string    `json:"amount"`
	Charges        string    `json:"charges"`
	Accepted       int       `json:"accepted"`
	Refused        int       `json:"refused"`
	Returned       int       `json:"returned"`
	ReturnedAmount string    `json:"returned_amount"`
	EndedAt        time.Time `json:"ended_at"`
}

// notify queues the event of a batch that ended, in the transaction of its end, if its account has set an address.
// returned is the money that went back to the wallet.
func (s *Batches) notify(tx *db.Tx, b Batch, returned money.Pesewas) error {
	if s.webhooks == nil {
		return nil
	}
	account, err := s.tenants.Unlocked(tx, b.Tenant)
	if err != nil || account.BatchURL == "" {
		return err
	}
	if err := b.counted(tx); err != nil {
		return err
	}
	body, err := json.Marshal(endEvent{Event: string(webhook.BatchEnded), ID: b.ID, Name: b.Name, Status: b.Status, Rows: b.Lines, Amount: b.Amount.String(), Charges: b.Charges.String(),
		Accepted: b.Accepted, Refused: b.tally.Rows[RowRefused], Returned: b.tally.Rows[RowReady], ReturnedAmount: returned.String(), EndedAt: b.EndedAt.UTC()})
	if err != nil {
		return fmt.Errorf("batch: encode the event of the end of %s: %w", b.ID, err)
	}
	return s.webhooks.Queue(tx, webhook.Event{Tenant: b.Tenant, Mode: b.Mode, Subject: b.ID, Kind: webhook.BatchEnded, URL: account.BatchURL, Body: body, First: true})
}
