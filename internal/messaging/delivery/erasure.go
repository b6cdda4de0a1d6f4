package delivery

import "github.com/makola/makola/internal/db"

const (
	eraseRecipient = `UPDATE messages SET recipient = $4 WHERE tenant = $1 AND campaign = $2 AND no = $3
AND open = 0 AND status NOT IN ('queued', 'sending', 'submitted')`
	erasePart = `UPDATE parts SET recipient = $4 WHERE tenant = $1 AND campaign = $2 AND message = $3 AND state <> 'open'`
	// The numbers of a small campaign all have the same length, and their count stays the number of recipients.
	eraseListed = `UPDATE campaigns SET numbers = replace(numbers, $3, $4) WHERE tenant = $1 AND id = $2 AND numbers <> ''`
	eraseEarly  = `DELETE FROM early_receipts WHERE recipient = $1`
)

// EraseRecipient replaces the number of a finished message in its row, in its parts and in the row of a small campaign.
func EraseRecipient(tx *db.Tx, tenant, campaign string, no int64, number, instead string) {
	tx.Defer(eraseListed, -1, tenant, campaign, number, instead) // first, which is the order in which deliveries lock rows
	tx.Defer(eraseRecipient, -1, tenant, campaign, no, instead)
	tx.Defer(erasePart, -1, tenant, campaign, no, instead)
}

// EraseReceipts deletes the receipts for a number that match no message.
func EraseReceipts(tx *db.Tx, number string) { tx.Defer(eraseEarly, -1, number) }
