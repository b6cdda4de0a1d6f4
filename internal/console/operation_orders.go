package console

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// switchOrders pause a provider and let it go on.
func switchOrders() (orders []asking) {
	for _, o := range []struct {
		does, title, lead string
		ask               func(a *changes.Changes, v *visit, id, mode, provider string, op route.Operation) (changes.Request, error)
	}{
		{"pause", "Pause a provider", "It gets no new work. Statuses are still asked for, and what is under way settles.",
			func(a *changes.Changes, v *visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
				return a.Pause(v.ctx, v.by(), id, mode, provider, op, v.r.PostFormValue("reason"))
			}},
		{"resume", "Let a provider go on", "It gets work again, and its circuit breakers close: resume it when you have looked.",
			func(a *changes.Changes, v *visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
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
			ask: func(v *visit, id string) (changes.Request, error) {
				value := v.r.PostFormValue
				return o.ask(v.console.Changes, v, id, value("mode"), value("provider"), route.Operation(value("operation")))
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

// routeInputs name a route.
var routeInputs = []Input{{"tenant", 36}, {"mode", 4}, {"operation", 40}, {"channel", 36}}

// namedRoute is the route that the form or the address names.
func (v *visit) namedRoute() route.Route {
	return route.Route{Tenant: v.given("tenant", route.Any), Mode: v.given("mode", route.Any), Operation: route.Operation(v.given("operation", "")), Channel: v.given("channel", route.Any)}
}

// routeFields are the fields that name a route.
func (v *visit) routeFields() []page.Field {
	r := v.namedRoute()
	var operations []page.Option
	for _, op := range route.Operations() {
		operations = append(operations, page.Option{Value: string(op), Text: operationWord(string(op))})
	}
	modes := append([]page.Option{{Value: route.Any, Text: "Live and test"}}, moneyModes...)
	return []page.Field{{Name: "operation", Label: "Operation", Value: string(r.Operation), Options: operations}, {Name: "channel", Label: "Channel", Value: r.Channel, Max: 36, Required: true, Hint: "MTN, TELECEL, AIRTELTIGO, the id of a bank, or * for every one."},
		{Name: "mode", Label: "Money", Value: r.Mode, Options: modes}, {Name: "tenant", Label: "Account", Value: r.Tenant, Max: 36, Required: true, Hint: "The id of an account, or * for every one without a route of its own."}}
}

// routeOrder says which providers serve an operation.
func routeOrder() asking {
	return asking{path: "/routes/set", title: "Choose providers", may: identity.MakeMoney, submit: "Choose them", inputs: append([]Input{{"providers", 200}}, routeInputs...),
		lead: func(v *visit) (string, error) {
			to, found, err := v.console.Routes.LeadsTo(v.ctx, v.namedRoute())
			if err != nil || !found {
				return "The first provider of the list that takes work gets it. What is under way stays where it is.", err
			}
			return "It leads to " + cmp.Or(to, "nobody") + " now. The first provider of the list that takes work gets it. What is under way stays where it is.", nil
		},
		fields: func(v *visit) ([]page.Field, error) {
			to, _, err := v.console.Routes.LeadsTo(v.ctx, v.namedRoute())
			return append(v.routeFields(), page.Field{Name: "providers", Label: "Providers", Value: v.given("providers", to), Max: 200, Hint: "Best first, with spaces between; none at all means that it is not served."}), err
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			r := v.namedRoute()
			r.Providers = strings.Fields(v.r.PostFormValue("providers"))
			return v.console.Changes.SetRoute(v.ctx, v.by(), id, r, v.r.PostFormValue("reason"))
		}}
}

// dropRouteOrder removes a route.
func dropRouteOrder() asking {
	return asking{path: "/routes/drop", title: "Remove a route", may: identity.MakeMoney, submit: "Remove it", danger: true, inputs: routeInputs,
		lead: func(*visit) (string, error) {
			return "An account's own route goes, so that everybody's holds for it again. A default is changed, not removed.", nil
		},
		fields: func(v *visit) ([]page.Field, error) { return v.routeFields(), nil },
		ask: func(v *visit, id string) (changes.Request, error) {
			return v.console.Changes.DropRoute(v.ctx, v.by(), id, v.namedRoute(), v.r.PostFormValue("reason"))
		}}
}

// routeList lists which providers serve what.
func routeList(v *visit) (answer, error) {
	list, err := v.console.Routes.Routes(v.ctx)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Routes", Lead: "Which providers serve what, best first. An account's own route comes before everybody's.", Actions: v.actions(identity.MakeMoney, page.Link{Href: "/ops/routes/set", Text: "Choose providers"}),
		Columns: []page.Column{{Name: "Operation"}, {Name: "Channel"}, {Name: "Money", Minor: true}, {Name: "Account", Minor: true}, {Name: "Providers"}, {Name: "Set by", Minor: true}, {Name: "Set", Minor: true}},
		Empty:   page.Empty{Title: "No routes", Text: "The server writes the usual ones when it starts."}}
	for _, r := range list {
		row := page.Row{Cells: []templ.Component{page.Text(operationWord(string(r.Operation))), page.Text(r.Channel), page.Text(r.Mode), page.ID(r.Tenant), page.Text(cmp.Or(strings.Join(r.Providers, " "), "nobody")), page.Text(r.Actor), page.Time(r.At)}}
		if v.can(identity.MakeMoney) {
			row.Href = "/ops/routes/set?" + url.Values{"tenant": {r.Tenant}, "mode": {r.Mode}, "operation": {string(r.Operation)}, "channel": {r.Channel}}.Encode()
		}
		l.Rows = append(l.Rows, row)
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// deadLetters lists the jobs that were given up.
func deadLetters(v *visit) (answer, error) {
	list, err := v.console.Jobs.List(v.ctx, jobs.Filter{Dead: true, After: v.param("after"), Limit: pageRows + 1})
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Dead letters", Lead: "Work that was given up after many tries. What it is about waits until somebody gives it another life.",
		Columns: []page.Column{{Name: "Work"}, {Name: "About"}, {Name: "Tried", Right: true}, {Name: "Why", Minor: true}, {Name: "Given up"}},
		Empty:   page.Empty{Title: "No dead letters", Text: "No work was given up."}}
	if len(list) > pageRows {
		list = list[:pageRows]
		l.Next = v.query("after", list[pageRows-1].ID)
	}
	if v.param("after") != "" {
		l.Prev = v.query("after", "")
	}
	for _, j := range list {
		row := page.Row{Cells: []templ.Component{page.Text(j.Kind), page.ID(j.Subject), page.Text(strconv.Itoa(j.Tries)), page.Text(j.LastError), page.Time(j.DeadAt)}}
		if v.can(identity.MakeMoney) {
			row.Href = "/ops/jobs/" + j.ID + "/rerun"
		}
		l.Rows = append(l.Rows, row)
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// rerunOrder gives a dead letter another life.
func rerunOrder() asking {
	return asking{path: "/jobs/{id}/rerun", title: "Run it again", may: identity.MakeMoney, submit: "Run it again",
		lead: func(v *visit) (string, error) {
			j, err := v.console.Jobs.DeadLetter(v.ctx, v.r.PathValue("id"))
			if problem.Is(err, problem.NotFound) || problem.Is(err, problem.InProgress) { // a living job has no such page
				err = errNoPage()
			}
			return "The job " + j.Kind + " of " + j.Subject + " was given up after " + page.Times(j.Tries) + ": " + cmp.Or(j.LastError, "no error was kept") + ". A server takes it within seconds.", err
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			return v.console.Changes.Rerun(v.ctx, v.by(), id, v.r.PathValue("id"), v.r.PostFormValue("reason"))
		}}
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
		ask: func(v *visit, id string) (changes.Request, error) {
			return v.console.Changes.StopCampaign(v.ctx, v.by(), id, v.r.PathValue("id"), v.r.PostFormValue("reason"))
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
		ask: func(v *visit, id string) (changes.Request, error) {
			of, _, err := owner(v)
			if err != nil {
				return changes.Request{}, err
			}
			rules, err := planOf(v.r.PostFormValue("rules"))
			if err != nil {
				return changes.Request{}, err
			}
			return v.console.Changes.SetFees(v.ctx, v.by(), id, of, rules, time.Time{}, v.r.PostFormValue("reason"))
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
