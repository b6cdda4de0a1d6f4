package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

type feesCommands struct {
	Show feesShow `cmd:"" help:"Show the fee plan in force for a customer."`
	Set  feesSet  `cmd:"" help:"Replace a fee plan by a new version."`
}

// everybody names, on the command line, the plan of those without their own.
const everybody = "default"

func planOwner(name string) string {
	if name == everybody {
		return tenant.Default
	}
	return name
}

// ruleView is one line of a plan as it is printed.
type ruleView struct {
	tenant.Rule
	version int64
}

func ruleColumns() []column[ruleView] {
	return []column[ruleView]{
		{"version", func(r ruleView) any { return r.version }},
		{"product", func(r ruleView) any { return string(r.Product) }},
		{"channel", func(r ruleView) any { return r.Channel }},
		{"flat", func(r ruleView) any { return r.Flat }},
		{"percent", func(r ruleView) any { return money.Pesewas(r.BasisPoints).String() }},
		{"minimum", func(r ruleView) any { return r.Minimum }},
		{"maximum", func(r ruleView) any {
			if r.Maximum == 0 {
				return nil
			}
			return r.Maximum
		}},
	}
}

func ruleViews(rules []tenant.Rule, version int64) []ruleView {
	views := make([]ruleView, len(rules))
	for i, r := range rules {
		views[i] = ruleView{r, version}
	}
	return views
}

type feesShow struct {
	common
	Tenant string `arg:"" default:"default" help:"Id or unique name of the customer, or default."`
}

// Run shows a plan.
func (c *feesShow) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		owner := planOwner(c.Tenant)
		if owner != tenant.Default {
			if err := o.known(e.ctx, &owner); err != nil {
				return err
			}
		}
		return o.printPlan(e.ctx, e, c.Output, owner, o.clock.Now())
	})
}

// printPlan prints the fee plan that is in force for a customer at a time.
func (o *opened) printPlan(ctx context.Context, e *env, format, owner string, at time.Time) error {
	rules, version, err := o.tenants.FeePlan(ctx, owner, at)
	if err != nil {
		return err
	}
	return printAll(e.stdout, format, ruleColumns(), ruleViews(rules, version))
}

type feesSet struct {
	common
	writing
	Tenant string    `arg:"" help:"Id or unique name of the customer, or default."`
	Rule   []feeRule `name:"rule" sep:"none" placeholder:"RULE" help:"A product, a channel and its price, such as collection=1%,min=0.10,max=10 or payout/BANK=8.00+0.5%. Repeat for more; what is not named is free."`
	From   time.Time `name:"from" placeholder:"TIME" help:"When it begins, such as 2026-07-01T00:00:00Z; now when absent."`
	Free   bool      `name:"free" help:"Set a plan without rules, under which everything is free."`
	Reason string    `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run sets a plan.
func (c *feesSet) Run(e *env) error {
	if c.Free != (len(c.Rule) == 0) {
		return usage("Say either --rule or --free")
	}
	rules := make([]tenant.Rule, len(c.Rule))
	for i, r := range c.Rule {
		rules[i] = r.rule
	}
	return c.with(e, func(o *opened) error {
		owner := planOwner(c.Tenant)
		if owner == tenant.Default {
			if err := o.whomItChanges(e, c.From); err != nil {
				return err
			}
		} else if err := o.known(e.ctx, &owner); err != nil {
			return err
		}
		r, err := o.changes(config.Secret{}).SetFees(e.ctx, o.by, newID(), owner, rules, c.From, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error {
			at := o.clock.Now()
			if c.From.After(at) {
				at = c.From
			}
			return o.printPlan(ctx, e, c.Output, owner, at)
		})
	})
}

// named is how many customers are named of those whom the default plan is for.
const named = 10

// whomItChanges says which customers pay by the default plan, and asks where a person sits at a terminal.
func (o *opened) whomItChanges(e *env, from time.Time) error {
	if now := o.clock.Now(); from.Before(now) {
		from = now
	}
	some, total, err := o.tenants.WithoutPlan(e.ctx, from, named)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "The default plan is what customers without a plan of their own pay by: %d at the moment\n", total)
	for _, t := range some {
		fmt.Fprintln(e.stderr, "  "+cell(called(t)))
	}
	if more := total - len(some); more > 0 {
		fmt.Fprintf(e.stderr, "  and %d more\n", more)
	}
	if !e.terminal {
		return nil
	}
	return e.confirm("Change it?")
}

// feeRule is a rule as the command line writes it.
type feeRule struct{ rule tenant.Rule }

// UnmarshalText reads a rule.
func (r *feeRule) UnmarshalText(text []byte) (err error) {
	r.rule, err = tenant.ParseRule(string(text))
	return err
}
