package changes

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// A change between the request of a batch and its approval refuses the request, or leaves it waiting. A refused batch is a draft
// again, and no money has moved.
func TestBatch_changesBeforeApproval(t *testing.T) {
	each(t, func(f *fixture) {
		owner, admin := f.member("owner@adom.example", f.tenant.ID, roles.Owner), f.member("admin@adom.example", f.tenant.ID, roles.Admin)
		f.member("signatory@adom.example", f.tenant.ID, roles.Signatory)
		f.paying(20)
		f.clock.Advance(2 * time.Second)
		had := f.wallet()
		set := func(c tenant.Change) {
			f.tx(func(tx *db.Tx) error {
				_, _, err := f.Tenants.Set(tx, f.tenant.ID, c)
				return err
			})
			f.clock.Advance(2 * time.Second)
		}
		role := func(r roles.Role) {
			f.tx(func(tx *db.Tx) error {
				_, _, err := f.people.SetRole(tx, "admin@adom.example", identity.Membership{Tenant: f.tenant.ID, Role: r})
				return err
			})
		}
		for _, each := range []struct {
			name        string
			comes, goes func()
			want        State
			is          batch.Status
		}{
			{"blocked", func() { set(tenant.Change{Blocked: new(true)}) }, func() { set(tenant.Change{Blocked: new(false)}) }, Failed, batch.Draft},
			{"stopped", func() { set(tenant.Change{PayoutsStopped: new(true)}) }, func() { set(tenant.Change{PayoutsStopped: new(false)}) }, Failed, batch.Draft},
			{"role", func() { role(roles.Developer) }, func() { role(roles.Admin) }, Waiting, batch.Requested},
			{"policy", func() {
				f.line(Line{Kind: KindSendBatch, Tenant: f.tenant.ID, Own: true, From: money.Cedi, Approvers: 2})
			}, func() {}, Waiting, batch.Requested},
		} {
			b := f.draft("Batch "+each.name, "0201234567,TELECEL,10")
			r := f.sendBatch(owner, b)
			each.comes()
			_, err := f.Approve(f.t.Context(), admin, r.ID, r.Digest)
			if err == nil && each.name == "role" || err != nil && each.name == "role" && !problem.Is(err, problem.Forbidden) {
				f.t.Errorf("%s: %v", each.name, err)
			}
			f.is(r.ID, each.want)
			f.batchIs(b, each.is)
			each.goes()
			if each.want == Waiting {
				if _, err := f.Withdraw(f.t.Context(), owner, r.ID, r.Digest); err != nil {
					f.t.Fatalf("%s: %v", each.name, err)
				}
			}
			f.batchIs(b, batch.Draft)
		}
		if f.wallet() != had {
			f.t.Errorf("the wallet has %s, had %s", f.wallet(), had)
		}
		f.sound()
	})
}
