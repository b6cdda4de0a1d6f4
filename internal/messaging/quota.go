package messaging

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Rows that a tenant stores for free, or faster than operators accept messages, have a quota (config.Quotas). Rows
// are counted before others are added and are not locked: concurrent requests may exceed a quota, each by what one of
// them may add.

const (
	countContacts = `SELECT coalesce(sum(contacts), 0) FROM contact_groups WHERE tenant = $1`
	countUnderWay = `SELECT count(DISTINCT campaign) FROM chunks WHERE tenant = $1`
)

// quotasOf gives the quotas that hold for a tenant, as they were at most a second ago.
func (m *Messaging) quotasOf(ctx context.Context, tenantID string) (config.Quotas, error) {
	t, err := m.tenants.Get(ctx, tenantID)
	return t.Quotas.Over(m.quotas), err
}

func roomForContacts(tx *db.Tx, tenantID string, more int, most int64) error {
	return tenant.Room(tx, countContacts, tenantID, int64(more), most,
		problem.Field("contacts", fmt.Sprintf("do not fit: an account may have at most %d contacts", most)))
}

func roomForGroup(tx *db.Tx, tenantID string, most int64) error {
	return tenant.Room(tx, countGroups, tenantID, 1, most,
		problem.Field("name", fmt.Sprintf("cannot be given: an account may have at most %d contact groups", most)))
}

// roomForCampaign refuses a campaign beyond the quota of large campaigns under way. Small campaigns are bounded by
// their credits.
func (m *Messaging) roomForCampaign(ctx context.Context, t tenant.Tenant) error {
	most := t.Quotas.Over(m.quotas).Campaigns
	if most == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		return tenant.Room(tx, countUnderWay, t.ID, 1, most,
			problem.Field("recipients", fmt.Sprintf("must wait: an account may have at most %d campaigns of more than %d recipients under way", most, smallChunk)))
	})
}
