package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
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

// planText is a plan in one line, as the command line writes it.
func planText(rules []tenant.Rule) string {
	if len(rules) == 0 {
		return "free"
	}
	var texts []string
	for _, r := range rules {
		name, price := string(r.Product), r.Flat.String()
		if r.Channel != tenant.AnyChannel {
			name += "/" + r.Channel
		}
		if r.BasisPoints > 0 {
			price += "+" + money.Pesewas(r.BasisPoints).String() + "%"
		}
		if r.Minimum > 0 {
			price += ",min=" + r.Minimum.String()
		}
		if r.Maximum > 0 {
			price += ",max=" + r.Maximum.String()
		}
		texts = append(texts, name+"="+price)
	}
	return strings.Join(texts, " ")
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
		rules, version, err := o.tenants.FeePlan(e.ctx, owner, o.clock.Now())
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, ruleColumns(), ruleViews(rules, version))
	})
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
		was, _, err := o.tenants.FeePlan(e.ctx, owner, o.clock.Now())
		if err != nil {
			return err
		}
		var version int64
		entry := audit.Entry{Action: "fees.set", Tenant: owner, Subject: c.Tenant, Reason: c.Reason}
		err = o.act(e.ctx, entry, func(tx *db.Tx) (details any, err error) {
			version, err = o.tenants.SetFeePlan(tx, owner, c.From, rules)
			return changes([]change{{"fee plan", planText(was), planText(rules)}}, map[string]any{"version": version, "from": c.From}), err
		})
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, ruleColumns(), ruleViews(rules, version))
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

// UnmarshalText reads product[/channel]=price, where price is flat, percent% or
// flat+percent%, then ,min=AMOUNT and ,max=AMOUNT.
func (r *feeRule) UnmarshalText(text []byte) error {
	name, price, ok := strings.Cut(string(text), "=")
	if !ok {
		return errors.New("must read like payout/BANK=8.00+0.5%,min=1,max=20")
	}
	product, channel, _ := strings.Cut(name, "/")
	r.rule = tenant.Rule{Product: tenant.Product(product), Channel: channel}
	parts := strings.Split(price, ",")
	if err := r.price(parts[0]); err != nil {
		return fmt.Errorf("the price %q: %w", parts[0], err)
	}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		p, err := money.Parse(value)
		switch {
		case err != nil:
			return fmt.Errorf("%s %w", key, err)
		case key == "min":
			r.rule.Minimum = p
		case key == "max" && p > 0:
			r.rule.Maximum = p
		default:
			return errors.New("after the price there is only min= and max=, and a maximum is above zero")
		}
	}
	return nil
}

// price reads flat, percent% or flat+percent%.
func (r *feeRule) price(text string) (err error) {
	flat, percent, both := strings.Cut(text, "+")
	if !both && strings.HasSuffix(flat, "%") {
		flat, percent = "0", flat
	}
	if r.rule.Flat, err = money.Parse(flat); err != nil || percent == "" && !both {
		return err
	}
	number, ok := strings.CutSuffix(percent, "%")
	if !ok {
		return errors.New("has no % at its end")
	}
	r.rule.BasisPoints, err = basisPoints(number)
	return err
}

// basisPoints reads a percentage with at most two decimals.
func basisPoints(percent string) (int64, error) {
	p, err := money.Parse(percent)
	if err != nil {
		return 0, errors.New(strconv.Quote(percent) + " is no percentage with at most two decimals")
	}
	return int64(p), nil
}
