package messaging

import "github.com/makola/makola/internal/messaging/delivery"

// The types that messaging returns and package delivery declares.
type (
	// Campaign is one accepted request to send.
	Campaign = delivery.Campaign
	// Status is the state of one message.
	Status = delivery.Status
	// Shortage is the Data of InsufficientCredits.
	Shortage = delivery.Shortage
	// UnmatchedReceipts are receipts of the last day that match no message.
	UnmatchedReceipts = delivery.UnmatchedReceipts
	// Report is the result of Check.
	Report = delivery.Report
)

// The values of those types that callers compare with.
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
