package funds

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// Fees holds the commands of makola fees.
type Fees struct {
	Show feesShow `cmd:"" help:"Show the fee plan in force for an account."`
	Set  feesSet  `cmd:"" help:"Replace a fee plan with a new version."`
}

// everybody is the name of the default plan on the command line.
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

func ruleColumns() []frame.Column[ruleView] {
	return []frame.Column[ruleView]{
		{Name: "version", Value: func(r ruleView) any { return r.version }},
		{Name: "product", Value: func(r ruleView) any { return string(r.Product) }},
		{Name: "channel", Value: func(r ruleView) any { return r.Channel }},
		{Name: "flat", Value: func(r ruleView) any { return r.Flat }},
		{Name: "percent", Value: func(r ruleView) any { return money.Pesewas(r.BasisPoints).String() }},
		{Name: "minimum", Value: func(r ruleView) any { return r.Minimum }},
		{Name: "maximum", Value: func(r ruleView) any {
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
	frame.Common
	Tenant string `arg:"" default:"default" name:"account" help:"Id or unique name of the account, or default."`
}

// Run shows a plan.
func (c *feesShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		owner := planOwner(c.Tenant)
		if owner != tenant.Default {
			if err := o.Known(e.Ctx, &owner); err != nil {
				return err
			}
		}
		return printPlan(e.Ctx, o, e, c.Output, owner, o.Clock.Now())
	})
}

// printPlan prints the fee plan that is in force for a customer at a time.
func printPlan(ctx context.Context, o *frame.Opened, e *frame.Env, format, owner string, at time.Time) error {
	rules, version, err := o.Tenants.FeePlan(ctx, owner, at)
	if err != nil {
		return err
	}
	return frame.PrintAll(e.Stdout, format, ruleColumns(), ruleViews(rules, version))
}

type feesSet struct {
	frame.Common
	frame.Writing
	Tenant string    `arg:"" name:"account" help:"Id or unique name of the account, or default."`
	Rule   []feeRule `name:"rule" sep:"none" placeholder:"RULE" help:"Product, channel and price, such as collection=1%,min=0.10,max=10 or payout/BANK=8.00+0.5%. May be repeated; everything else is free."`
	From   time.Time `name:"from" placeholder:"TIME" help:"Start of the plan, such as 2026-07-01T00:00:00Z. Default: now."`
	Free   bool      `name:"free" help:"Set a plan without rules, in which everything is free."`
	Reason string    `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Check refuses a plan without --free and without rules.
func (c *feesSet) Check() error {
	if c.Free != (len(c.Rule) == 0) {
		return frame.Usage("Give either --rule or --free")
	}
	return nil
}

// preparePlan finds the account of a plan. For a change of the default plan it lists the accounts that the
// plan applies to.
func preparePlan(q *frame.Ask) error {
	q.Values[changes.FieldTenant] = planOwner(q.Values[changes.FieldTenant])
	if q.Values[changes.FieldTenant] != tenant.Default {
		return q.Accounts()
	}
	from, _ := time.Parse(time.RFC3339Nano, q.Values["from"]) // text of the flag's time; the zero time without the flag
	return whomItChanges(q.O, q.E, from)
}

// showPlan prints the plan that is in force after the change.
func showPlan(q *frame.Ask) error {
	at := q.O.Clock.Now()
	if from, err := time.Parse(time.RFC3339Nano, q.Values["from"]); err == nil && from.After(at) {
		at = from
	}
	return printPlan(q.E.Ctx, q.O, q.E, q.Output, q.Values[changes.FieldTenant], at)
}

// whomItChanges lists the accounts to which the default plan applies, and asks for confirmation on a
// terminal.
func whomItChanges(o *frame.Opened, e *frame.Env, from time.Time) error {
	if now := o.Clock.Now(); from.Before(now) {
		from = now
	}
	some, total, err := o.Tenants.WithoutPlan(e.Ctx, from, named)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "Accounts that pay by the default plan: %d\n", total)
	for _, t := range some {
		fmt.Fprintln(e.Stderr, "  "+frame.Cell(called(t)))
	}
	if more := total - len(some); more > 0 {
		fmt.Fprintf(e.Stderr, "  and %d more\n", more)
	}
	if !e.Terminal {
		return nil
	}
	return e.Confirm("Change the default plan?")
}

// feeRule is a rule in the notation of the command line.
type feeRule struct{ rule tenant.Rule }

// UnmarshalText reads a rule.
func (r *feeRule) UnmarshalText(text []byte) (err error) {
	r.rule, err = tenant.ParseRule(string(text))
	return err
}

// String writes the rule as the change's field does.
func (r feeRule) String() string { return tenant.PlanText([]tenant.Rule{r.rule}) }
