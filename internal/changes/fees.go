package changes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// KindFees replaces the fee plan of an account, or the default plan of all accounts without their own plan.
const KindFees = "fees.set"

// fees is the payload of a change of fees, as the requester saw it. Its members and their order are hashed, so they
// never change.
type fees struct {
	Tenant string        `json:"tenant"` // tenant.Default: the plan of accounts without their own plan
	Newest int64         `json:"newest"` // version of the account's own plan
	Was    string        `json:"was"`
	Rules  []tenant.Rule `json:"rules"` // without rules everything is free
	From   time.Time     `json:"from"`  // zero: when the change is applied
}

// SetFees requests a new fee plan for an account. With tenant.Default it changes the plan of all accounts without
// their own plan. Without rules everything is free. from is the time at which the plan begins. Zero means at once.
func (a *Changes) SetFees(ctx context.Context, by By, id, owner string, rules []tenant.Rule, from time.Time, reason string) (Request, error) {
	v := Values{FieldTenant: owner, "rules": tenant.PlanText(rules)}
	if !from.IsZero() {
		v["from"] = from.Format(time.RFC3339Nano)
	}
	return a.Do(ctx, by, KindFees, id, v, reason)
}

// rulesOf reads the rules of a plan as tenant.PlanText writes them.
func rulesOf(text string) (rules []tenant.Rule, err error) {
	if text == tenant.PlanText(nil) {
		return nil, nil
	}
	for _, one := range strings.Fields(text) {
		r, err := tenant.ParseRule(one)
		if err != nil {
			return nil, problem.Field("rules", one+": "+err.Error())
		}
		rules = append(rules, r)
	}
	return rules, tenant.CheckPlan(rules)
}

func (a *Changes) lookFees(ctx context.Context, o Order) (Draft, error) {
	owner, about, whose := o.Values[FieldTenant], "", "of all accounts without a plan of their own"
	if owner != tenant.Default {
		t, err := a.Tenants.Get(ctx, owner)
		if err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		if err != nil {
			return Draft{}, err
		}
		about, whose = t.ID, "of "+title
	}
	was, newest, err := a.Tenants.PlanNow(ctx, owner)
	if err != nil {
		return Draft{}, err
	}
	rules, err := rulesOf(o.Values["rules"])
	if err != nil {
		return Draft{}, err
	}
	from, err := o.Values.moment("from")
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Tenant: about, Payload: fees{owner, newest, tenant.PlanText(was), rules, from}}
	d.Sentence = "Set the fee plan " + whose + ": " + changedRates(was, rules)
	if !from.IsZero() {
		d.Sentence += ", from " + from.UTC().Format("2006-01-02 15:04 UTC")
	}
	return d, nil
}

func (a *Changes) feesKind() Kind {
	return written(a, KindFees, "Fee plan", Rule{Make: roles.ChangeTenants, Check: roles.ApproveAccess}, func(tx *db.Tx, request Request, p fees) ([]audit.Change, error) {
		err := a.Tenants.ReplaceFeePlan(tx, p.Tenant, p.Newest, p.From, p.Rules)
		return []audit.Change{{What: "fee plan", Before: p.Was, After: tenant.PlanText(p.Rules)}}, err
	}).by(a.lookFees, Field{Name: FieldTenant, Label: "Account", Hint: "The id of the account. Leave empty for all accounts without a plan of their own.", Max: 64},
		Field{Name: "rules", Label: "Rules", Hint: "Such as collection=1% payout/BANK=8.00+0.50%,min=1.00, or free.", Max: 2000, Required: true},
		Field{Name: "from", Label: "Begins at", Hint: "Such as 2026-03-06T12:00:00Z. Leave empty for at once.", Max: 40}).showing(a.checkFees)
}

// The amounts of the examples of a fee plan. The larger one shows where a maximum applies.
const (
	feeExample      = 100 * money.Cedi
	feeExampleLarge = 5000 * money.Cedi
)

// checkFees returns both plans with examples, and the number of accounts to which the plan applies.
func (a *Changes) checkFees(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[fees](r)
	if err != nil {
		return nil, err
	}
	was, newest, err := a.Tenants.PlanNow(ctx, p.Tenant)
	switch {
	case err != nil:
		return nil, err
	case newest != p.Newest:
		return nil, errChanged("The fee plan")
	}
	list := rateFacts(was, p.Rules)
	if len(p.Rules) == 0 && len(was) > 0 {
		list = append(list, warning("After this change everything is free."))
	}
	if p.Tenant != tenant.Default {
		return list, nil
	}
	_, total, err := a.Tenants.WithoutPlan(ctx, a.Store.now(), 1)
	return append(list, Fact{Name: "Accounts with this plan", Value: strconv.Itoa(total)}), err
}

// examplesOf returns the costs of the example amounts, such as GHS 100.00 costs GHS 1.00.
func examplesOf(r tenant.Rule) string {
	var texts []string
	for _, amount := range []money.Pesewas{feeExample, feeExampleLarge} {
		texts = append(texts, fmt.Sprintf("%s costs %s", ledger.GHS.Text(int64(amount)), ledger.GHS.Text(int64(r.Fee(amount)))))
	}
	return strings.Join(texts, ", ")
}

// rateFacts shows each rate before and after the change, with examples. It leaves out a service without its own rule in both plans,
// because the rate for all channels applies to it.
func rateFacts(was, then []tenant.Rule) (list []Fact) {
	var warnings []Fact
	for _, s := range tenant.Services() {
		_, had := s.Own(was)
		_, has := s.Own(then)
		if !had && !has {
			continue
		}
		before, after := tenant.RuleOf(was, s.Product, s.Channel), tenant.RuleOf(then, s.Product, s.Channel)
		if samePrice(before, after) {
			list = append(list, Fact{Name: s.String(), Value: "As now: " + before.PriceText() + ". " + examplesOf(before) + "."})
			continue
		}
		list = append(list, Fact{Name: s.String() + ": now", Value: before.PriceText() + ". " + examplesOf(before) + "."},
			Fact{Name: s.String() + ": then", Value: after.PriceText() + ". " + examplesOf(after) + "."})
		if cost := before.Fee(feeExample); cost > 0 && after.Fee(feeExample) > tenfold*cost {
			warnings = append(warnings, warning(fmt.Sprintf("%s: the fee of %s grows more than tenfold.", s, ledger.GHS.Text(int64(feeExample)))))
		}
	}
	return append(list, warnings...)
}

// samePrice reports whether two rules have the same price. It ignores their services.
func samePrice(a, b tenant.Rule) bool {
	return a.Flat == b.Flat && a.BasisPoints == b.BasisPoints && a.Minimum == b.Minimum && a.Maximum == b.Maximum
}

// changedRates counts the services whose price changes.
func changedRates(was, then []tenant.Rule) string {
	n := 0
	for _, s := range tenant.Services() {
		if s.Channel != tenant.AnyChannel && !samePrice(tenant.RuleOf(was, s.Product, s.Channel), tenant.RuleOf(then, s.Product, s.Channel)) {
			n++
		}
	}
	switch {
	case len(then) == 0:
		return "everything is free"
	case n == 0:
		return "no rate changes"
	case n == 1:
		return "1 rate changes"
	}
	return strconv.Itoa(n) + " rates change"
}
