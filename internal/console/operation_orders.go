package console

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/acts"
	"github.com/makola/makola/internal/approval"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// switchOrders pause a provider and let it go on.
func switchOrders() (orders []asking) {
	for _, o := range []struct {
		does, title, lead string
		ask               func(a *acts.Acts, v *visit, id, mode, provider string, op route.Operation) (approval.Act, error)
	}{
		{"pause", "Pause a provider", "It gets no new work. Statuses are still asked for, and what is under way settles.",
			func(a *acts.Acts, v *visit, id, mode, provider string, op route.Operation) (approval.Act, error) {
				return a.Pause(v.ctx, v.by(), id, mode, provider, op, v.r.PostFormValue("reason"))
			}},
		{"resume", "Let a provider go on", "It gets work again, and its circuit breakers close: resume it when you have looked.",
			func(a *acts.Acts, v *visit, id, mode, provider string, op route.Operation) (approval.Act, error) {
				return a.Resume(v.ctx, v.by(), id, mode, provider, op, v.r.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, asking{path: "/providers/" + o.does, title: o.title, may: identity.SwitchProviders, submit: o.title, danger: o.does == "pause", inputs: []Input{{"provider", 40}, {"mode", 4}, {"operation", 40}},
			lead: func(*visit) (string, error) { return o.lead, nil },
			fields: func(v *visit) ([]page.Field, error) {
				operations := []page.Option{{Value: route.Any, Text: "Everything"}}
				for _, op := range route.Operations() {
					operations = append(operations, page.Option{Value: string(op), Text: operationWord(string(op))})
				}
				return []page.Field{{Name: "provider", Label: "Provider", Value: v.given("provider", ""), Options: v.providerOptions()}, {Name: "mode", Label: "Money", Value: v.given("mode", string(tenant.Live)), Options: moneyModes},
					{Name: "operation", Label: "Operation", Value: v.given("operation", route.Any), Options: operations}}, nil
			},
			ask: func(v *visit, id string) (approval.Act, error) {
				value := v.r.PostFormValue
				return o.ask(v.console.Acts, v, id, value("mode"), value("provider"), route.Operation(value("operation")))
			}})
	}
	return orders
}

// providerOptions are the providers that there are.
func (v *visit) providerOptions() (options []page.Option) {
	seen := map[string]bool{}
	for _, r := range v.console.Routes.Rails() {
		if !seen[r.Name] {
			seen[r.Name] = true
			options = append(options, page.Option{Value: r.Name, Text: providerName(r.Name)})
		}
	}
	return options
}

// stopOrder ends a campaign, on either site.
func stopOrder() asking {
	return asking{path: "/messages/{id}/stop", title: "Stop the campaign", may: identity.StopCampaigns, submit: "Stop it", danger: true,
		lead: func(v *visit) (string, error) {
			c, err := v.console.Messaging.CampaignOf(v.ctx, v.r.PathValue("id"))
			if problem.Is(err, problem.NotFound) || err == nil && v.route.Site == tenants && c.Tenant != v.tenant.ID {
				err = errNoPage()
			}
			return "From " + c.Sender + ". What is unsent fails, and its credits go back. What was sent stays sent.", err
		},
		ask: func(v *visit, id string) (approval.Act, error) {
			return v.console.Acts.StopCampaign(v.ctx, v.by(), id, v.r.PathValue("id"), v.r.PostFormValue("reason"))
		}}
}

// feesOrder changes a fee plan: of the account of the page, or with path /fees the one of all without their own.
func feesOrder(owner func(v *visit) (id, lead string, err error)) asking {
	return asking{path: "/fees", title: "Fee plan", may: identity.MakeTenants, submit: "Set the plan", inputs: []Input{{"rules", 2000}},
		lead: func(v *visit) (string, error) { _, lead, err := owner(v); return lead, err },
		fields: func(v *visit) ([]page.Field, error) {
			id, _, err := owner(v)
			if err != nil {
				return nil, err
			}
			rules, _, err := v.console.Tenants.PlanNow(v.ctx, id)
			return []page.Field{{Name: "rules", Label: "Rules", Value: v.given("rules", tenant.PlanText(rules)), Max: 2000, Required: true,
				Hint: "With spaces between, such as collection=1%,min=0.10,max=10 and payout/BANK=8.00+0.5%. What is not named is free; free means that everything is."}}, err
		},
		ask: func(v *visit, id string) (approval.Act, error) {
			of, _, err := owner(v)
			if err != nil {
				return approval.Act{}, err
			}
			rules, err := planOf(v.r.PostFormValue("rules"))
			if err != nil {
				return approval.Act{}, err
			}
			return v.console.Acts.SetFees(v.ctx, v.by(), id, of, rules, time.Time{}, v.r.PostFormValue("reason"))
		}}
}

// planOf reads the rules of a plan; "free" is none.
func planOf(text string) (rules []tenant.Rule, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, problem.Field("rules", "are required; free means that everything is")
	}
	if len(words) == 1 && words[0] == "free" {
		return nil, nil
	}
	for _, w := range words {
		r, err := tenant.ParseRule(w)
		if err != nil {
			return nil, problem.Field("rules", w+": "+err.Error())
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// defaultFees and accountFees are the two plans that a page can be about.
func defaultFees(*visit) (id, lead string, err error) {
	return tenant.Default, "Of all accounts without a plan of their own. What was accepted before keeps its fee.", nil
}

func accountFees(v *visit) (id, lead string, err error) {
	t, err := v.about()
	return t.ID, "Of " + t.Name + " (" + string(t.Mode) + "). A plan of its own replaces the default one as a whole. What was accepted before keeps its fee.", err
}
