package tenant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Product is a service with a fee. Airtime and data have no fee, whether mobile money or the wallet pays for them,
// because the installation earns the provider's commission.
type Product string

// The products.
const (
	Collection Product = "collection"
	Payout     Product = "payout"
	Refund     Product = "refund" // refund of a collection; the collection's own charges are not returned
)

// Products returns all products with a fee.
func Products() []Product { return []Product{Collection, Payout, Refund} }

// Channels in addition to the networks. Transfers between wallets have no fee.
const (
	ChannelBank = "BANK" // of payouts
	AnyChannel  = ""     // applies to every channel without its own rule
)

// Default is the tenant id of the default plan. It applies to all tenants without a plan of their own.
const Default = ""

// maxBasisPoints is 100 percent.
const maxBasisPoints = 10_000

// Rule is the fee of one product on one channel: flat plus basis points of the amount (100 are one percent). The sum
// is rounded half up to the pesewa, then limited by minimum and maximum.
type Rule struct {
	Product     Product
	Channel     string // a network, BANK or AnyChannel
	Flat        money.Pesewas
	BasisPoints int64
	Minimum     money.Pesewas
	Maximum     money.Pesewas // 0: no maximum
}

// Fee returns the charges for an amount.
func (r Rule) Fee(amount money.Pesewas) money.Pesewas {
	fee := r.Flat + money.Percent(amount, r.BasisPoints)
	if fee < r.Flat { // an overflow; no limit allows such an amount
		fee = amount
	}
	fee = max(fee, r.Minimum)
	if r.Maximum > 0 {
		fee = min(fee, r.Maximum)
	}
	return fee
}

// DemoPlan returns the plan of the demo tenant: one percent for collections and payouts, at least 0.10 and at most
// 10.00. Airtime and data cost nothing.
func DemoPlan() []Rule {
	return []Rule{
		{Product: Collection, BasisPoints: 100, Minimum: 10, Maximum: 10 * money.Cedi},
		{Product: Payout, BasisPoints: 100, Minimum: 10, Maximum: 10 * money.Cedi},
	}
}

// plan is one version of a tenant's whole fee plan.
type plan struct {
	version int64
	from    time.Time
	rules   []Rule
}

// RuleOf returns the rule of a product on a channel. It is the rule of the channel, or else the rule for any channel.
// If neither exists, RuleOf returns a rule without a fee.
func RuleOf(rules []Rule, product Product, channel string) Rule {
	for _, want := range []string{channel, AnyChannel} {
		for _, r := range rules {
			if r.Product == product && r.Channel == want {
				return r
			}
		}
	}
	return Rule{}
}

// current returns the version that applies at a time: the newest one that has begun.
func current(plans []plan, at time.Time) (plan, bool) {
	best, found := plan{}, false
	for _, p := range plans {
		if p.from.After(at) || found && (p.from.Before(best.from) || p.from.Equal(best.from) && p.version < best.version) {
			continue
		}
		best, found = p, true
	}
	return best, found
}

// Fee returns the charges of a transaction and the version of the plan. If no plan applies, both are 0. A tenant's
// own plan replaces the whole default plan. The charges of a collection never exceed its amount.
func (s *Store) Fee(ctx context.Context, tenant string, product Product, channel string, amount money.Pesewas, at time.Time) (money.Pesewas, int64, error) {
	for _, whose := range []string{tenant, Default} {
		plans, err := s.plans.Get(ctx, whose)
		if err != nil {
			return 0, 0, err
		}
		p, ok := current(plans, at)
		if !ok {
			continue
		}
		fee := RuleOf(p.rules, product, channel).Fee(amount)
		if product == Collection {
			fee = min(fee, amount)
		}
		return fee, p.version, nil
	}
	return 0, 0, nil
}

// FeePlan returns the rules that apply to a tenant at a time, and their version: the tenant's own, or else the
// default plan.
func (s *Store) FeePlan(ctx context.Context, tenant string, at time.Time) ([]Rule, int64, error) {
	for _, whose := range []string{tenant, Default} {
		plans, err := s.plans.Get(ctx, whose)
		if err != nil {
			return nil, 0, err
		}
		if p, ok := current(plans, at); ok {
			return slices.Clone(p.rules), p.version, nil
		}
	}
	return nil, 0, nil
}

const (
	withoutPlan = ` FROM tenants WHERE NOT EXISTS (SELECT 1 FROM fee_plans WHERE fee_plans.tenant = tenants.id AND effective_from <= $1)`

	selectWithoutPlan = `SELECT ` + tenantColumns + withoutPlan + ` ORDER BY id LIMIT $2`
	countWithoutPlan  = `SELECT count(*)` + withoutPlan
)

// WithoutPlan returns the first few tenants to which the default plan applies at a time, and their number.
func (s *Store) WithoutPlan(ctx context.Context, at time.Time, few int) (some []Tenant, total int, err error) {
	err = s.db.ReadSnapshot(ctx, func(tx *db.Tx) error {
		some = nil
		if _, err := tx.One(countWithoutPlan, []any{at}, &total); err != nil {
			return err
		}
		return tx.Query(selectWithoutPlan, []any{at, few}, appendTenant(&some))
	})
	return some, total, err
}

// A single statement reads versions and rules, so that a version is never read without its rules. A plan without
// rules is one row of zeros.
const selectPlans = `SELECT p.version, p.effective_from, COALESCE(r.product, ''), COALESCE(r.channel, ''),
		COALESCE(r.flat, 0), COALESCE(r.basis_points, 0), COALESCE(r.minimum, 0), COALESCE(r.maximum, 0)
	FROM fee_plans p LEFT JOIN fee_rules r ON r.tenant = p.tenant AND r.version = p.version
	WHERE p.tenant = $1 ORDER BY p.version, r.product, r.channel`

func (s *Store) loadPlans(ctx context.Context, tenant string) ([]plan, error) {
	var plans []plan
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		plans = nil
		return tx.Query(selectPlans, []any{tenant}, func(row *db.Row) error {
			var p plan
			var r Rule
			if err := row.Scan(&p.version, &p.from, &r.Product, &r.Channel, &r.Flat, &r.BasisPoints, &r.Minimum, &r.Maximum); err != nil {
				return err
			}
			if len(plans) == 0 || plans[len(plans)-1].version != p.version {
				plans = append(plans, p)
			}
			if last := &plans[len(plans)-1]; r.Product != "" {
				last.rules = append(last.rules, r)
			}
			return nil
		})
	})
	return plans, err
}

// PlanNow returns the rules that apply to a tenant now, and the version of the tenant's own newest plan, or
// 0.
func (s *Store) PlanNow(ctx context.Context, tenant string) (rules []Rule, newest int64, err error) {
	if rules, _, err = s.FeePlan(ctx, tenant, s.clock.Now()); err != nil {
		return nil, 0, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error { _, err := tx.One(newestPlan, []any{tenant}, &newest); return err })
	return rules, newest, err
}

// ReplaceFeePlan is SetFeePlan for a caller that knows the newest version, seen. It returns an error if a newer
// version was added in the meantime.
func (s *Store) ReplaceFeePlan(tx *db.Tx, tenant string, seen int64, from time.Time, rules []Rule) error {
	if tenant != Default {
		if _, err := s.lock(tx, tenant); err != nil {
			return err
		}
	}
	var newest int64
	if _, err := tx.One(newestPlan, []any{tenant}, &newest); err != nil {
		return err
	}
	if newest != seen {
		return problem.New(problem.Invalid, "changed_since", "The fee plan has changed since this was requested")
	}
	_, err := s.SetFeePlan(tx, tenant, from, rules)
	return err
}

const newestPlan = `SELECT COALESCE(MAX(version), 0) FROM fee_plans WHERE tenant = $1`

const nextPlan = `SELECT COALESCE(MAX(version), 0) + 1 FROM fee_plans`

const insertPlan = `INSERT INTO fee_plans (tenant, version, effective_from, created_at) VALUES ($1, $2, $3, $4)`

// SetFeePlan adds the next version of a tenant's plan, or of the default plan, in tx. The version applies from the
// given time, or from now if that is zero. Accepted payments keep their fee. With a plan without rules, everything is
// free.
func (s *Store) SetFeePlan(tx *db.Tx, tenant string, from time.Time, rules []Rule) (version int64, err error) {
	if err := CheckPlan(rules); err != nil {
		return 0, err
	}
	if tenant != Default {
		if _, err := s.lock(tx, tenant); err != nil {
			return 0, err
		}
	}
	now := s.clock.Now()
	if from.IsZero() {
		from = now
	}
	if _, err := tx.One(nextPlan, nil, &version); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(insertPlan, tenant, version, from, now); err != nil {
		if errors.Is(err, db.ErrUnique) {
			err = problem.Wrap(err, problem.InProgress, "fee_plan_changed", "Another fee plan was set at the same moment, try again")
		}
		return 0, err
	}
	db.Insert(tx, "fee_rules", []db.Column[Rule]{
		{Name: "tenant", Text: func(Rule) string { return tenant }},
		{Name: "version", Int: func(Rule) int64 { return version }},
		{Name: "product", Text: func(r Rule) string { return string(r.Product) }},
		{Name: "channel", Text: func(r Rule) string { return r.Channel }},
		{Name: "flat", Int: func(r Rule) int64 { return int64(r.Flat) }},
		{Name: "basis_points", Int: func(r Rule) int64 { return r.BasisPoints }},
		{Name: "minimum", Int: func(r Rule) int64 { return int64(r.Minimum) }},
		{Name: "maximum", Int: func(r Rule) int64 { return int64(r.Maximum) }},
	}, rules)
	tx.AfterCommit(func() { s.plans.Forget(tenant) })
	return version, nil
}

// CheckPlan returns an error for a plan that cannot be stored. Its text is for people.
func CheckPlan(rules []Rule) error {
	var f problem.Fields
	seen := map[string]bool{}
	for _, r := range rules {
		name := string(r.Product)
		if r.Channel != AnyChannel {
			name += "/" + r.Channel
		}
		if !slices.Contains(Products(), r.Product) {
			f.Add(name, "must be collection, payout or refund: airtime and data carry no charge")
		}
		if !r.channelKnown() {
			f.Add(name, "must name a network, BANK for payouts, or no channel")
		}
		if seen[name] {
			f.Add(name, "has two rules")
		}
		seen[name] = true
		if r.Flat < 0 || r.BasisPoints < 0 || r.BasisPoints > maxBasisPoints || r.Minimum < 0 || r.Maximum < 0 {
			f.Add(name, "must have amounts from zero and at most 100 percent")
		}
		if max(r.Flat, r.Minimum, r.Maximum) > money.Most {
			f.Add(name, "has an amount that "+money.ErrRange.Error())
		}
		if r.Maximum > 0 && r.Maximum < r.Minimum {
			f.Add(name, "has a maximum below its minimum")
		}
	}
	return f.Err()
}

func (r Rule) channelKnown() bool {
	return r.Channel == AnyChannel || r.Channel == ChannelBank && r.Product == Payout ||
		slices.Contains(msisdn.Networks(), msisdn.Network(r.Channel))
}
