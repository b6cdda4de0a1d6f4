package messaging

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

func TestQuota_activeCampaigns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100, sleep: true}) // so nothing is delivered
		h.quotas = config.Quotas{Campaigns: 1}
		var many []string
		for i := range delivery.SmallSize + 1 {
			many = append(many, fmt.Sprintf("02400001%02d", i))
		}
		accepted := func(what string, to ...string) {
			t.Helper()
			if _, err := h.send(what, to...); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused := func(want string) {
			t.Helper()
			_, err := h.send("one too many", many...)
			if p := problem.From(err); err == nil || p.Kind != problem.Invalid || len(p.Fields["recipients"]) != 1 || !strings.Contains(p.Fields["recipients"][0], want) {
				t.Errorf("answered %v, want %q", err, want)
			}
		}
		quota := func(q tenant.Quota) {
			h.Write(func(tx *db.Tx) error {
				_, _, err := h.tenants.Set(tx, "shop", tenant.Change{Quotas: tenant.QuotaChange{Campaigns: &q}})
				return err
			})
		}
		h.Write(func(tx *db.Tx) error { // a chunk whose campaign was never charged
			_, err := tx.Exec(`INSERT INTO chunks (tenant, campaign, no, state, turn, begun, marked_at, size, recipients, created_at)
				VALUES ('shop', 'given up', 0, 'staged', 0, 0, 0, 1, '233241234567', $1)`, h.clock.Now())
			return err
		})
		accepted("first", many...)
		refused("at most 1 campaigns of more than 10 recipients")
		accepted("a single message beside it", "0240000001")
		h.WantBalance(100 - delivery.SmallSize - 1 - 1)
		// The tenant's own quota replaces that of the installation.
		quota(2)
		accepted("second", many...)
		refused("at most 2 campaigns")
		quota(tenant.NoQuota)
		accepted("third", many...)
		quota(tenant.InstallationQuota)
		refused("at most 1 campaigns")
	})
}
