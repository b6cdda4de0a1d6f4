package changes

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/tenant"
)

// KindFees replaces the fee plan of an account, or the one of all accounts without their own.
const KindFees = "fees.set"

// fees is what its maker asked for and saw. Its members and their order are what is hashed: they never change.
type fees struct {
	Tenant string        `json:"tenant"` // tenant.Default: the plan of those without their own
	Newest int64         `json:"newest"` // version of its own
	Was    string        `json:"was"`
	Rules  []tenant.Rule `json:"rules"` // none: everything is free
	From   time.Time     `json:"from"`  // zero: when it is done
}

// SetFees asks for a new fee plan: of an account, or with tenant.Default of all those without their own. No rules mean that
// everything is free. from is when it begins; zero is at once.
func (a *Changes) SetFees(ctx context.Context, by By, id, owner string, rules []tenant.Rule, from time.Time, reason string) (Request, error) {
	about, whose := "", "of all accounts without a plan of their own"
	if owner != tenant.Default {
		t, err := a.Tenants.Get(ctx, owner)
		if err != nil {
			return Request{}, err
		}
		about, whose = t.ID, fmt.Sprintf("of %s (%s, %s)", t.Name, t.Mode, t.ID)
	}
	was, newest, err := a.Tenants.PlanNow(ctx, owner)
	if err != nil {
		return Request{}, err
	}
	if err := tenant.CheckPlan(rules); err != nil {
		return Request{}, err
	}
	d := Draft{Kind: KindFees, Tenant: about, Payload: fees{owner, newest, tenant.PlanText(was), rules, from}}
	d.Sentence = fmt.Sprintf("Set the fee plan %s to: %s (now: %s)", whose, tenant.PlanText(rules), tenant.PlanText(was))
	if !from.IsZero() {
		d.Sentence += ", from " + from.UTC().Format("2006-01-02 15:04 UTC")
	}
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, d)
}

func (a *Changes) feesKind() Kind {
	return written(a, KindFees, "Fee plan", Rule{Make: identity.MakeTenants, Check: identity.CheckAccess}, func(tx *db.Tx, act Request, p fees) ([]audit.Change, error) {
		err := a.Tenants.ReplaceFeePlan(tx, p.Tenant, p.Newest, p.From, p.Rules)
		return []audit.Change{{What: "fee plan", Before: p.Was, After: tenant.PlanText(p.Rules)}}, err
	})
}
