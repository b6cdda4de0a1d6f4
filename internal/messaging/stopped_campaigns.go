package messaging

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const stopCampaign = `UPDATE campaigns SET status = 'stopped' WHERE tenant = $1 AND id = $2 AND status = 'active'`

// StopCampaign stops a campaign, in tx, where the caller also writes the audit entry. The node that delivers it sees
// so before its next messages, also between those of a flight that takes longer than freshness; the unsent ones then
// fail and are refunded. A campaign that is over is a Duplicate.
func (m *Messaging) StopCampaign(tx *db.Tx, id string) (Campaign, error) {
	var c Campaign
	if err := tx.Query(selectCampaignAnywhere+tx.ForUpdate(), []any{id}, c.scan); err != nil {
		return Campaign{}, err
	}
	if c.ID == "" {
		return Campaign{}, noCampaign()
	}
	if c.Status != CampaignActive {
		return Campaign{}, problem.New(problem.Duplicate, "campaign_over", "The campaign is "+string(c.Status)+" already")
	}
	tx.Defer(stopCampaign, 1, c.Tenant, c.ID)
	tx.AfterCommit(func() {
		m.delivery.states.Forget(campaignKey{c.Tenant, c.ID})
		m.jobs.Wake(c.ID)
	})
	c.Status = CampaignStopped
	return c, nil
}
