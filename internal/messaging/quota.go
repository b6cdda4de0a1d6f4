package messaging

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// What a tenant stores for nothing, or faster than operators take it, has a quota (config.Quotas). It is counted before
// the rows are written and not locked: requests that come at once may go beyond it, each by what one of them may add.

const (
	countContacts = `SELECT coalesce(sum(contacts), 0) FROM contact_groups WHERE tenant = $1`
	countSenders  = `SELECT count(*) FROM sender_ids WHERE tenant = $1`
	countUnderWay = `SELECT count(DISTINCT campaign) FROM chunks WHERE tenant = $1`
)

// within refuses to let what count counts of a tenant grow by more beyond most; 0 is no quota.
func within(tx *db.Tx, count, tenant string, more, most int64, refusal error) error {
	if most == 0 || more == 0 {
		return nil
	}
	var n int64
	if _, err := tx.One(count, []any{tenant}, &n); err != nil {
		return err
	}
	if n+more > most {
		return refusal
	}
	return nil
}

// quotasOf gives the quotas that hold for a tenant, as they were at most a second ago.
func (m *Messaging) quotasOf(ctx context.Context, tenant string) (config.Quotas, error) {
	t, err := m.tenants.Get(ctx, tenant)
	return t.Quotas.Over(m.quotas), err
}

func roomForContacts(tx *db.Tx, tenant string, more int, most int64) error {
	return within(tx, countContacts, tenant, int64(more), most,
		problem.Field("contacts", fmt.Sprintf("do not fit: an account may have at most %d contacts", most)))
}

func roomForGroup(tx *db.Tx, tenant string, most int64) error {
	return within(tx, countGroups, tenant, 1, most,
		problem.Field("name", fmt.Sprintf("cannot be given: an account may have at most %d contact groups", most)))
}

func roomForSender(tx *db.Tx, tenant string, most int64) error {
	return within(tx, countSenders, tenant, 1, most,
		problem.Field("name", fmt.Sprintf("cannot be requested: an account may have at most %d sender IDs, those rejected among them", most)))
}

// roomForCampaign is asked for a campaign that has chunks of its own: single messages are bounded by their credits.
func (m *Messaging) roomForCampaign(ctx context.Context, t tenant.Tenant) error {
	most := t.Quotas.Over(m.quotas).Campaigns
	if most == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		return within(tx, countUnderWay, t.ID, 1, most,
			problem.Field("recipients", fmt.Sprintf("must wait: an account may have at most %d campaigns of more than %d recipients under way", most, smallChunk)))
	})
}
