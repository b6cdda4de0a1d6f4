package messaging

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// StopCampaign stops a campaign in tx. The caller writes the audit entry in the same transaction. Delivery stops
// before its next messages. Messages that were not sent fail and are refunded. For a finished campaign, StopCampaign
// returns Duplicate.
func (m *Messaging) StopCampaign(tx *db.Tx, id string) (Campaign, error) {
	var c Campaign
	if err := tx.Query(selectCampaignAnywhere+tx.ForUpdate(), []any{id}, c.Scan); err != nil {
		return Campaign{}, err
	}
	if c.ID == "" {
		return Campaign{}, noCampaign()
	}
	if c.Status != CampaignActive {
		return Campaign{}, problem.New(problem.Duplicate, "campaign_over", "The campaign is "+string(c.Status)+" already")
	}
	m.delivery.Stop(tx, c.Tenant, c.ID)
	c.Status = CampaignStopped
	return c, nil
}
