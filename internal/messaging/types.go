package messaging

import "github.com/makola/makola/internal/messaging/delivery"

// The types of package delivery that messaging returns.
type (
	// Campaign is one accepted request to send.
	Campaign = delivery.Campaign
	// Status is the state of one message.
	Status = delivery.Status
	// Shortage is the Data of InsufficientCredits.
	Shortage = delivery.Shortage
	// UnmatchedReceipts has the number of receipts of the last day that match no message.
	UnmatchedReceipts = delivery.UnmatchedReceipts
	// Report is the result of Check.
	Report = delivery.Report
)

// The values of these types that callers compare.
const (
	CampaignActive  = delivery.CampaignActive
	CampaignStopped = delivery.CampaignStopped

	StatusQueued    = delivery.StatusQueued
	StatusSending   = delivery.StatusSending
	StatusDelivered = delivery.StatusDelivered

	ReceiptsMatched   = delivery.ReceiptsMatched
	ReceiptsUnmatched = delivery.ReceiptsUnmatched
	ReceiptsOtherBase = delivery.ReceiptsOtherBase
)
