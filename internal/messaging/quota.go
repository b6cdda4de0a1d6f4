package messaging

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// countUnderWay counts the campaigns that are charged and have chunks which are not over. Staged chunks may be those of a request that
// was given up.
const countUnderWay = `SELECT count(DISTINCT campaign) FROM chunks WHERE tenant = $1 AND state = 'ready'`

// roomForCampaign refuses a campaign beyond the quota of large campaigns under way. Small campaigns are bounded by
// their credits. Campaigns are counted before others are added and are not locked: concurrent requests may exceed the
// quota, each by one.
func (m *Messaging) roomForCampaign(ctx context.Context, t tenant.Tenant) error {
	most := t.Quotas.Over(m.quotas).Campaigns
	if most == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		return tenant.Room(tx, countUnderWay, t.ID, 1, most,
			problem.Field("recipients", fmt.Sprintf("must wait: an account may have at most %d campaigns of more than %d recipients under way", most, delivery.SmallSize)))
	})
}

// UnderWay returns the number of a tenant's active large campaigns, and its limit.
func (m *Messaging) UnderWay(ctx context.Context, t tenant.Tenant) (stored tenant.Stored, err error) {
	stored.Most = t.Quotas.Over(m.quotas).Campaigns
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(countUnderWay, []any{t.ID}, &stored.Used)
		return err
	})
	return stored, err
}
