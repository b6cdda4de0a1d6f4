package ops

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// switchOrders pause a provider and let it go on.
func (ps *Pages) switchOrders() (orders []approvals.Form) {
	for _, o := range []struct {
		does, title, lead string
		ask               func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error)
	}{
		{"pause", "Pause a provider", "It gets no new work. Statuses are still asked for, and what is under way settles.",
			func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
				return a.Pause(v.Ctx, approvals.By(v), id, mode, provider, op, v.R.PostFormValue("reason"))
			}},
		{"resume", "Let a provider go on", "It gets work again, and its circuit breakers close: resume it when you have looked.",
			func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
				return a.Resume(v.Ctx, approvals.By(v), id, mode, provider, op, v.R.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, approvals.Form{Path: "/providers/" + o.does, Title: o.title, May: roles.SwitchProviders, Submit: o.title, Danger: o.does == "pause", Inputs: []console.Input{{Name: "provider", Max: 40}, {Name: "mode", Max: 4}, {Name: "operation", Max: 40}},
			Lead: func(*console.Visit) (string, error) { return o.lead, nil },
			Fields: func(v *console.Visit) ([]page.Field, error) {
				operations := []page.Option{{Value: route.Any, Text: "Everything"}}
				for _, op := range route.Operations() {
					operations = append(operations, page.Option{Value: string(op), Text: words.OperationWord(string(op))})
				}
				return []page.Field{{Name: "provider", Label: "Provider", Value: v.Given("provider", ""), Options: ps.providerOptions(v)}, {Name: "mode", Label: "Money", Value: v.Given("mode", string(tenant.Live)), Options: moneyModes},
					{Name: "operation", Label: "Operation", Value: v.Given("operation", route.Any), Options: operations}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				value := v.R.PostFormValue
				return o.ask(ps.Approvals.Changes, v, id, value("mode"), value("provider"), route.Operation(value("operation")))
			}})
	}
	return orders
}

// providerOptions are the providers that there are.
func (ps *Pages) providerOptions(v *console.Visit) (options []page.Option) {
	seen := map[string]bool{}
	for _, r := range ps.Rails.Rails() {
		if !seen[r.Name] {
			seen[r.Name] = true
			options = append(options, page.Option{Value: r.Name, Text: words.ProviderName(r.Name)})
		}
	}
	return options
}

// routeInputs name a route.
var routeInputs = []console.Input{{Name: "tenant", Max: 36}, {Name: "mode", Max: 4}, {Name: "operation", Max: 40}, {Name: "channel", Max: 36}}

// namedRoute is the route that the form or the address names.
func namedRoute(v *console.Visit) route.Route {
	return route.Route{Tenant: v.Given("tenant", route.Any), Mode: v.Given("mode", route.Any), Operation: route.Operation(v.Given("operation", "")), Channel: v.Given("channel", route.Any)}
}

// routeFields are the fields that name a route.
func routeFields(v *console.Visit) []page.Field {
	r := namedRoute(v)
	var operations []page.Option
	for _, op := range route.Operations() {
		operations = append(operations, page.Option{Value: string(op), Text: words.OperationWord(string(op))})
	}
	modes := append([]page.Option{{Value: route.Any, Text: "Live and test"}}, moneyModes...)
	return []page.Field{{Name: "operation", Label: "Operation", Value: string(r.Operation), Options: operations}, {Name: "channel", Label: "Channel", Value: r.Channel, Max: 36, Required: true, Hint: "MTN, TELECEL, AIRTELTIGO, the id of a bank, or * for every one."},
		{Name: "mode", Label: "Money", Value: r.Mode, Options: modes}, {Name: "tenant", Label: "Account", Value: r.Tenant, Max: 36, Required: true, Hint: "The id of an account, or * for every one without a route of its own."}}
}

// routeOrder says which providers serve an operation.
func (ps *Pages) routeOrder() approvals.Form {
	return approvals.Form{Path: "/routes/set", Title: "Choose providers", May: roles.ChangeMoney, Submit: "Choose them", Inputs: append([]console.Input{{Name: "providers", Max: 200}}, routeInputs...),
		Lead: func(v *console.Visit) (string, error) {
			to, found, err := ps.Rails.LeadsTo(v.Ctx, namedRoute(v))
			if err != nil || !found {
				return "The first provider of the list that takes work gets it. What is under way stays where it is.", err
			}
			return "It leads to " + cmp.Or(to, "nobody") + " now. The first provider of the list that takes work gets it. What is under way stays where it is.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			to, _, err := ps.Rails.LeadsTo(v.Ctx, namedRoute(v))
			return append(routeFields(v), page.Field{Name: "providers", Label: "Providers", Value: v.Given("providers", to), Max: 200, Hint: "Best first, with spaces between; none at all means that it is not served."}), err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			r := namedRoute(v)
			r.Providers = strings.Fields(v.R.PostFormValue("providers"))
			return ps.Approvals.Changes.SetRoute(v.Ctx, approvals.By(v), id, r, v.R.PostFormValue("reason"))
		}}
}

// dropRouteOrder removes a route.
func (ps *Pages) dropRouteOrder() approvals.Form {
	return approvals.Form{Path: "/routes/drop", Title: "Remove a route", May: roles.ChangeMoney, Submit: "Remove it", Danger: true, Inputs: routeInputs,
		Lead: func(*console.Visit) (string, error) {
			return "An account's own route goes, so that everybody's holds for it again. A default is changed, not removed.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) { return routeFields(v), nil },
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.DropRoute(v.Ctx, approvals.By(v), id, namedRoute(v), v.R.PostFormValue("reason"))
		}}
}

// routeList lists which providers serve what.
func (ps *Pages) routeList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Rails.Routes(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Routes", Lead: "Which providers serve what, best first. An account's own route comes before everybody's.", Actions: v.Actions(roles.ChangeMoney, page.Link{Href: "/ops/routes/set", Text: "Choose providers"}),
		Columns: []page.Column{{Name: "Operation"}, {Name: "Channel"}, {Name: "Money", Minor: true}, {Name: "Account", Minor: true}, {Name: "Providers"}, {Name: "Set by", Minor: true}, {Name: "Set", Minor: true}},
		Empty:   page.Empty{Title: "No routes", Text: "The server writes the usual ones when it starts."}}
	for _, r := range list {
		row := page.Row{Cells: []templ.Component{page.Text(words.OperationWord(string(r.Operation))), page.Text(r.Channel), page.Text(r.Mode), page.ID(r.Tenant), page.Text(cmp.Or(strings.Join(r.Providers, " "), "nobody")), page.Text(r.Actor), page.Time(r.At)}}
		if v.Can(roles.ChangeMoney) {
			row.Href = "/ops/routes/set?" + url.Values{"tenant": {r.Tenant}, "mode": {r.Mode}, "operation": {string(r.Operation)}, "channel": {r.Channel}}.Encode()
		}
		l.Rows = append(l.Rows, row)
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// deadLetters lists the jobs that were given up.
func (ps *Pages) deadLetters(v *console.Visit) (console.Answer, error) {
	list, err := ps.Jobs.List(v.Ctx, jobs.Filter{Dead: true, After: v.Param("after"), Limit: console.PageRows + 1})
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Dead letters", Lead: "Work that was given up after many tries. What it is about waits until somebody gives it another life.",
		Columns: []page.Column{{Name: "Work"}, {Name: "About"}, {Name: "Tried", Right: true}, {Name: "Why", Minor: true}, {Name: "Given up"}},
		Empty:   page.Empty{Title: "No dead letters", Text: "No work was given up."}}
	if len(list) > console.PageRows {
		list = list[:console.PageRows]
		l.Next = v.Query("after", list[console.PageRows-1].ID)
	}
	if v.Param("after") != "" {
		l.Prev = v.Query("after", "")
	}
	for _, j := range list {
		row := page.Row{Cells: []templ.Component{page.Text(j.Kind), page.ID(j.Subject), page.Text(strconv.Itoa(j.Tries)), page.Text(j.LastError), page.Time(j.DeadAt)}}
		if v.Can(roles.ChangeMoney) {
			row.Href = "/ops/jobs/" + j.ID + "/rerun"
		}
		l.Rows = append(l.Rows, row)
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// rerunOrder gives a dead letter another life.
func (ps *Pages) rerunOrder() approvals.Form {
	return approvals.Form{Path: "/jobs/{id}/rerun", Title: "Run it again", May: roles.ChangeMoney, Submit: "Run it again",
		Lead: func(v *console.Visit) (string, error) {
			j, err := ps.Jobs.DeadLetter(v.Ctx, v.R.PathValue("id"))
			if problem.Is(err, problem.NotFound) || problem.Is(err, problem.InProgress) { // a living job has no such page
				err = console.ErrNoPage()
			}
			return "The job " + j.Kind + " of " + j.Subject + " was given up after " + page.Times(j.Tries) + ": " + cmp.Or(j.LastError, "no error was kept") + ". A server takes it within seconds.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.Rerun(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}

// feesOrder changes a fee plan: of the account of the page, or with path /fees the one of all without their own.
func (ps *Pages) feesOrder(owner func(v *console.Visit) (id, lead string, err error)) approvals.Form {
	return approvals.Form{Path: "/fees", Title: "Fee plan", May: roles.ChangeTenants, Submit: "Set the plan", Inputs: []console.Input{{Name: "rules", Max: 2000}},
		Lead: func(v *console.Visit) (string, error) { _, lead, err := owner(v); return lead, err },
		Fields: func(v *console.Visit) ([]page.Field, error) {
			id, _, err := owner(v)
			if err != nil {
				return nil, err
			}
			rules, _, err := ps.Tenants.PlanNow(v.Ctx, id)
			return []page.Field{{Name: "rules", Label: "Rules", Value: v.Given("rules", tenant.PlanText(rules)), Max: 2000, Required: true,
				Hint: "With spaces between, such as collection=1%,min=0.10,max=10 and payout/BANK=8.00+0.5%. What is not named is free; free means that everything is."}}, err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			of, _, err := owner(v)
			if err != nil {
				return changes.Request{}, err
			}
			rules, err := planOf(v.R.PostFormValue("rules"))
			if err != nil {
				return changes.Request{}, err
			}
			return ps.Approvals.Changes.SetFees(v.Ctx, approvals.By(v), id, of, rules, time.Time{}, v.R.PostFormValue("reason"))
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
func defaultFees(*console.Visit) (id, lead string, err error) {
	return tenant.Default, "Of all accounts without a plan of their own. What was accepted before keeps its fee.", nil
}

func accountFees(v *console.Visit) (id, lead string, err error) {
	t, err := v.About()
	return t.ID, "Of " + t.Name + " (" + string(t.Mode) + "). A plan of its own replaces the default one as a whole. What was accepted before keeps its fee.", err
}
