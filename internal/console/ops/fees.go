package ops

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// feeExample is an amount. The form of a fee plan shows the present fee for it.
const feeExample = 100 * money.Cedi

// The cells of a row of the form of a fee plan.
const (
	cellFlat    = "fixed"
	cellPercent = "percent"
	cellMinimum = "minimum"
	cellMaximum = "maximum"
)

// maxCell is the maximum number of characters of a cell.
const maxCell = 20

// The choices for a plan: its rates, or none at all.
const (
	planRates = "rates"
	planFree  = "free"
)

var planOptions = []page.Option{{Value: planRates, Text: "The rates of the table"}, {Value: planFree, Text: "Everything is free"}}

func rateCells() []string { return []string{cellFlat, cellPercent, cellMinimum, cellMaximum} }

// cellName is the name of a cell of the row of a service.
func cellName(s tenant.Service, cell string) string {
	channel := s.Channel
	if channel == tenant.AnyChannel {
		channel = "all"
	}
	return string(s.Product) + "-" + strings.ToLower(channel) + "-" + cell
}

// feesOrder is the form that replaces a fee plan: an account's own, or the default plan.
func (ps *Pages) feesOrder(owner func(v *console.Visit) (id, lead string, err error)) approvals.Form {
	o := approvals.Form{Path: "/fees", Title: "Fee plan", May: roles.ChangeTenants, Submit: "Set fee plan", Sent: []console.Input{{Name: "plan", Max: 5}},
		Lead: func(v *console.Visit) (string, error) { _, lead, err := owner(v); return lead, err }}
	for _, s := range tenant.Services() {
		for _, cell := range rateCells() {
			o.Sent = append(o.Sent, console.Input{Name: cellName(s, cell), Max: maxCell})
		}
	}
	o.Fields = func(*console.Visit) ([]page.Field, error) {
		return []page.Field{{Name: "plan", Label: "Plan", Options: planOptions}}, nil
	}
	o.Table = func(v *console.Visit) (page.FieldTable, error) {
		id, _, err := owner(v)
		if err != nil {
			return page.FieldTable{}, err
		}
		rules, _, err := ps.Tenants.PlanNow(v.Ctx, id)
		return rateTable(v, rules), err
	}
	o.Ask = func(v *console.Visit, id string) (changes.Request, error) {
		of, _, err := owner(v)
		if err != nil {
			return changes.Request{}, err
		}
		rules, err := planOf(v)
		if err != nil {
			return changes.Request{}, err
		}
		return ps.Approvals.Changes.SetFees(v.Ctx, approvals.By(v), id, of, rules, time.Time{}, v.R.PostFormValue("reason"))
	}
	return o
}

// rateTable has a row for each service, with the rules in force and an example.
func rateTable(v *console.Visit, rules []tenant.Rule) page.FieldTable {
	t := page.FieldTable{Label: "Rates", Heads: []string{"Service", "Fixed (GHS)", "Percent", "Minimum (GHS)", "Maximum (GHS)", "Now, for " + page.Cedis(feeExample)},
		Hint: "If the row of a channel is empty, the rate for all channels applies. A product without any rate is free."}
	for _, s := range tenant.Services() {
		r, has := s.Own(rules)
		usual := map[string]string{}
		if has {
			for cell, amount := range map[string]money.Pesewas{cellFlat: r.Flat, cellMinimum: r.Minimum, cellMaximum: r.Maximum} {
				if amount > 0 {
					usual[cell] = amount.String()
				}
			}
			if r.BasisPoints > 0 || len(usual) == 0 {
				usual[cellPercent] = r.Percent()
			}
		}
		row := page.FieldRow{Head: s.String(), Note: page.Cedis(tenant.RuleOf(rules, s.Product, s.Channel).Fee(feeExample))}
		for i, cell := range rateCells() {
			row.Fields = append(row.Fields, page.Field{Name: cellName(s, cell), Label: t.Heads[i+1], Value: v.Given(cellName(s, cell), usual[cell]), Max: maxCell})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// planOf reads the rules of a plan from the rows of its form. A row without entries is no rule.
func planOf(v *console.Visit) (rules []tenant.Rule, err error) {
	choice, err := v.Choice("plan", planOptions)
	if err != nil {
		return nil, err
	}
	var bad problem.Fields
	for _, s := range tenant.Services() {
		if r, has := ruleOf(v, s, &bad); has {
			rules = append(rules, r)
		}
	}
	switch {
	case bad.Err() != nil:
		return nil, bad.Err()
	case choice == planFree && len(rules) > 0:
		return nil, problem.Field("plan", "is free, so the table must be empty")
	case choice == planRates && len(rules) == 0:
		return nil, problem.Field("plan", "needs a rate in the table. Choose "+planOptions[1].Text+" for no fees at all")
	}
	return rules, nil
}

// ruleOf reads the row of a service.
func ruleOf(v *console.Visit, s tenant.Service, bad *problem.Fields) (r tenant.Rule, has bool) {
	r = tenant.Rule{Product: s.Product, Channel: s.Channel}
	var percent money.Pesewas
	for cell, into := range map[string]*money.Pesewas{cellFlat: &r.Flat, cellPercent: &percent, cellMinimum: &r.Minimum, cellMaximum: &r.Maximum} {
		name := cellName(s, cell)
		has = has || strings.TrimSpace(v.R.PostFormValue(name)) != ""
		amount, err := v.Amount(name)
		if err != nil {
			bad.Add(name, strings.Join(problem.From(err).Fields[name], ", "))
		}
		*into = amount
	}
	if percent > maxPercent {
		bad.Add(cellName(s, cellPercent), "must be at most 100")
	}
	if r.BasisPoints = int64(percent); r.Maximum > 0 && r.Maximum < r.Minimum {
		bad.Add(cellName(s, cellMaximum), "must not be below the minimum")
	}
	return r, has
}

// maxPercent is 100 percent in hundredths.
const maxPercent = 100 * money.Cedi

// defaultFees returns the default plan for its page, and accountFees the plan of one account.
func defaultFees(*console.Visit) (id, lead string, err error) {
	return tenant.Default, "The fee plan of all accounts without their own plan. Accepted payments keep their fee.", nil
}

func accountFees(v *console.Visit) (id, lead string, err error) {
	t, err := v.About()
	return t.ID, "The plan of " + console.AccountName(t) + ". It replaces the whole default plan. Accepted payments keep their fee.", err
}
