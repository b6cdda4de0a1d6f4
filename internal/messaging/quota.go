package messaging

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// countUnderWay counts the campaigns that are charged and have unfinished chunks. It ignores staged chunks, because
// their request may have failed before the charge.
const countUnderWay = `SELECT count(DISTINCT campaign) FROM chunks WHERE tenant = $1 AND state = 'ready'`

// roomForCampaigns refuses n large campaigns if the tenant would have more active ones than its quota allows. Small
// campaigns are limited only by credits. The count is not locked, so each of several concurrent requests may exceed the
// quota by its campaigns.
func (m *Messaging) roomForCampaigns(ctx context.Context, t tenant.Tenant, n int64) error {
	most := t.Quotas.Over(m.quotas).Campaigns
	if most == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		return tenant.Room(tx, countUnderWay, t.ID, n, most,
			problem.Field("recipients", fmt.Sprintf("must wait: an account may have at most %d campaigns of more than %d recipients under way", most, delivery.SmallSize)))
	})
}

// UnderWay returns the number of a tenant's active large campaigns, and its limit.
func (m *Messaging) UnderWay(ctx context.Context, t tenant.Tenant) (stored tenant.Stored, err error) {
	stored.Most = t.Quotas.Over(m.quotas).Campaigns
	_, err = m.db.ReadOne(ctx, countUnderWay, []any{t.ID}, &stored.Used)
	return stored, err
}
