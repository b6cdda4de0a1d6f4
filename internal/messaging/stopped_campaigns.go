package messaging

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const stopCampaign = `UPDATE campaigns SET status = 'stopped' WHERE tenant = $1 AND id = $2 AND status = 'active'`

// StopCampaign ends what is unsent of a campaign, in tx, where the caller also writes the audit entry.
// The node that delivers it sees so at its next slice; what is unsent then fails and is refunded. One
// that is over is a Duplicate.
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
		m.states.Forget(campaignKey{c.Tenant, c.ID})
		m.jobs.Wake(c.ID)
	})
	c.Status = CampaignStopped
	return c, nil
}

// halted says that an operator stopped a campaign, as it was at most a second ago.
func (m *Messaging) halted(ctx context.Context, w *work) bool {
	status, err := m.states.Get(ctx, campaignKey{w.campaign.Tenant, w.campaign.ID})
	return err == nil && status == CampaignStopped
}

const selectStatus = `SELECT status FROM campaigns WHERE tenant = $1 AND id = $2`

func (m *Messaging) loadStatus(ctx context.Context, k campaignKey) (status CampaignStatus, err error) {
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(selectStatus, []any{k.tenant, k.id}, &status)
		return err
	})
	return status, err
}
