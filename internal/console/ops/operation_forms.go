package ops

import (
	"cmp"
	"net/url"
	"strings"
	"time"

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

// switchOrders are the forms that pause and resume a provider.
func (ps *Pages) switchOrders() (orders []approvals.Form) {
	for _, o := range []struct {
		does, title, lead string
		ask               func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error)
	}{
		{"pause", "Pause provider", "The provider gets no new work. Status queries continue, and payments in progress settle.",
			func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
				return a.Pause(v.Ctx, approvals.By(v), id, mode, provider, op, v.R.PostFormValue("reason"))
			}},
		{"resume", "Resume provider", "The provider gets new work, and its circuit breakers are reset. Check its status first.",
			func(a *changes.Changes, v *console.Visit, id, mode, provider string, op route.Operation) (changes.Request, error) {
				return a.Resume(v.Ctx, approvals.By(v), id, mode, provider, op, v.R.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, approvals.Form{Path: "/providers/" + o.does, Title: o.title, May: roles.SwitchProviders, Submit: o.title, Danger: o.does == "pause", Inputs: []console.Input{{Name: "provider", Max: 40}, {Name: "mode", Max: 4}, {Name: "operation", Max: 40}},
			Lead: func(*console.Visit) (string, error) { return o.lead, nil },
			Fields: func(v *console.Visit) ([]page.Field, error) {
				operations := []page.Option{{Value: route.Any, Text: "All operations"}}
				for _, op := range route.Operations() {
					operations = append(operations, page.Option{Value: string(op), Text: words.OperationWord(string(op))})
				}
				return []page.Field{{Name: "provider", Label: "Provider", Value: v.Given("provider", ""), Options: ps.providerOptions()}, {Name: "mode", Label: "Mode", Value: v.Given("mode", string(tenant.Live)), Options: moneyModes},
					{Name: "operation", Label: "Operation", Value: v.Given("operation", route.Any), Options: operations}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				value := v.R.PostFormValue
				return o.ask(ps.Approvals.Changes, v, id, value("mode"), value("provider"), route.Operation(value("operation")))
			}})
	}
	return orders
}

// providerOptions lists the providers.
func (ps *Pages) providerOptions() (options []page.Option) {
	seen := map[string]bool{}
	for _, r := range ps.Rails.Rails() {
		if !seen[r.Name] {
			seen[r.Name] = true
			options = append(options, page.Option{Value: r.Name, Text: words.ProviderName(r.Name)})
		}
	}
	return options
}

// routeInputs are the parameters that identify a route.
var routeInputs = []console.Input{{Name: "tenant", Max: 36}, {Name: "mode", Max: 4}, {Name: "operation", Max: 40}, {Name: "channel", Max: 36}}

// namedRoute returns the route that the form or the address identifies.
func namedRoute(v *console.Visit) route.Route {
	return route.Route{Tenant: v.Given("tenant", route.Any), Mode: v.Given("mode", route.Any), Operation: route.Operation(v.Given("operation", "")), Channel: v.Given("channel", route.Any)}
}

// routeFields are the fields that identify a route.
func (ps *Pages) routeFields(v *console.Visit) ([]page.Field, error) {
	r := namedRoute(v)
	account, err := v.AccountChoice("tenant", "Account", r.Tenant, page.Option{Value: route.Any, Text: "All accounts without their own route"})
	if err != nil {
		return nil, err
	}
	var operations []page.Option
	for _, op := range route.Routed() {
		operations = append(operations, page.Option{Value: string(op), Text: words.OperationWord(string(op))})
	}
	modes := append([]page.Option{{Value: route.Any, Text: "Live and test"}}, moneyModes...)
	return []page.Field{{Name: "operation", Label: "Operation", Value: string(r.Operation), Options: operations}, {Name: "channel", Label: "Channel", Value: r.Channel, Max: 36, Required: true, Hint: "Enter MTN, TELECEL, AIRTELTIGO, the code of a bank, or * for all channels."},
		{Name: "mode", Label: "Mode", Value: r.Mode, Options: modes}, account}, nil
}

// routeOrder is the form that sets the providers of an operation.
func (ps *Pages) routeOrder() approvals.Form {
	return approvals.Form{Path: "/routes/set", Title: "Set route", May: roles.ChangeMoney, Submit: "Set route", Inputs: append([]console.Input{{Name: "providers", Max: 200}}, routeInputs...),
		Lead: func(v *console.Visit) (string, error) {
			to, found, err := ps.Rails.LeadsTo(v.Ctx, namedRoute(v))
			if err != nil || !found {
				return "New work goes to the first available provider of the list. Payments in progress are not moved.", err
			}
			return "Providers now: " + cmp.Or(to, "none") + ". New work goes to the first available provider of the list. Payments in progress are not moved.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			fields, err := ps.routeFields(v)
			if err != nil {
				return nil, err
			}
			to, _, err := ps.Rails.LeadsTo(v.Ctx, namedRoute(v))
			return append(fields, page.Field{Name: "providers", Label: "Providers", Value: v.Given("providers", to), Max: 200, Hint: "List providers best first, separated by spaces. Leave empty to stop serving the operation."}), err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			r := namedRoute(v)
			r.Providers = strings.Fields(v.R.PostFormValue("providers"))
			return ps.Approvals.Changes.SetRoute(v.Ctx, approvals.By(v), id, r, v.R.PostFormValue("reason"))
		}}
}

// dropRouteOrder is the form that removes a route.
func (ps *Pages) dropRouteOrder() approvals.Form {
	return approvals.Form{Path: "/routes/drop", Title: "Remove route", May: roles.ChangeMoney, Submit: "Remove route", Danger: true, Inputs: routeInputs,
		Lead: func(*console.Visit) (string, error) {
			return "The account uses the default route again. Default routes can be changed but not removed.", nil
		},
		Fields: ps.routeFields,
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.DropRoute(v.Ctx, approvals.By(v), id, namedRoute(v), v.R.PostFormValue("reason"))
		}}
}

// routeList lists the routes.
func (ps *Pages) routeList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Rails.Routes(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Routes", Lead: "The providers of each operation, best first. An account's own route takes precedence.", Actions: v.Actions(roles.ChangeMoney, page.Link{Href: "/ops/routes/set", Text: "Set route"}),
		Empty: page.Empty{Title: "No routes", Text: "The server writes the default routes when it starts."}}
	var href func(route.Route) string
	if v.Can(roles.ChangeMoney) {
		href = func(r route.Route) string {
			return "/ops/routes/set?" + url.Values{"tenant": {r.Tenant}, "mode": {r.Mode}, "operation": {string(r.Operation)}, "channel": {r.Channel}}.Encode()
		}
	}
	l.Grid = console.Grid(routeColumns(v), list, href)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// routeColumns returns the columns of the list of routes.
func routeColumns(v *console.Visit) []console.Column[route.Route] {
	return []console.Column[route.Route]{
		console.Text("Operation", "", func(r route.Route) string { return words.OperationWord(string(r.Operation)) }),
		console.Text("Channel", "", func(r route.Route) string { return words.AnyOr(r.Channel, r.Channel) }),
		console.Text("Mode", "", func(r route.Route) string { return words.AnyOr(r.Mode, words.Mode(tenant.Mode(r.Mode))) }).Laid(console.Under),
		console.Text("Account", "", func(r route.Route) string {
			if r.Tenant == route.Any {
				return words.AnyOr(r.Tenant, "")
			}
			return v.NameOf(r.Tenant)
		}).Laid(console.Under),
		console.Text("Providers", "", func(r route.Route) string { return providerNames(r.Providers) }),
		console.Text("Set by", "", func(r route.Route) string { return r.Actor }).Laid(console.Minor),
		console.Time("Set", "", func(r route.Route) time.Time { return r.At }).Laid(console.Minor),
	}
}

// providerNames names the providers of a route, best first.
func providerNames(providers []string) string {
	names := make([]string, len(providers))
	for i, name := range providers {
		names[i] = words.ProviderName(name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// deadLetters lists the failed jobs.
func (ps *Pages) deadLetters(v *console.Visit) (console.Answer, error) {
	list, err := ps.Jobs.List(v.Ctx, jobs.Filter{Dead: true, After: v.Param("after"), Limit: console.PageRows + 1})
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Failed jobs", Lead: "Background jobs that stopped after many attempts. Run a job again after you have fixed its cause.",
		Empty: page.Empty{Title: "No failed jobs", Text: "All background jobs are running or done."}}
	list = console.Keyed(v, &l, "after", list, func(j jobs.Listed) string { return j.ID })
	var href func(jobs.Listed) string
	if v.Can(roles.ChangeMoney) {
		href = func(j jobs.Listed) string { return "/ops/jobs/" + j.ID + "/rerun" }
	}
	l.Grid = console.Grid(jobColumns, list, href)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// jobColumns are the columns of the list of failed jobs.
var jobColumns = []console.Column[jobs.Listed]{
	console.Text("Job", "", func(j jobs.Listed) string { return j.Kind }),
	console.ID("Subject", "", func(j jobs.Listed) string { return j.Subject }),
	console.Count("Attempts", "", func(j jobs.Listed) int64 { return int64(j.Tries) }),
	console.Text("Last error", "", func(j jobs.Listed) string { return j.LastError }).Laid(console.Minor),
	console.Time("Failed", "", func(j jobs.Listed) time.Time { return j.DeadAt }).Laid(console.Under),
}

// rerunOrder is the form that runs a failed job again.
func (ps *Pages) rerunOrder() approvals.Form {
	return approvals.Form{Path: "/jobs/{id}/rerun", Title: "Run job again", May: roles.ChangeMoney, Submit: "Run job again",
		Lead: func(v *console.Visit) (string, error) {
			j, err := ps.Jobs.DeadLetter(v.Ctx, v.R.PathValue("id"))
			if problem.Is(err, problem.NotFound) || problem.Is(err, problem.InProgress) { // a job that has not failed has no page to run it again
				err = console.ErrNoPage()
			}
			return "The job " + j.Kind + " of " + j.Subject + " was attempted " + page.Times(j.Tries) + ". Last error: " + cmp.Or(j.LastError, "none stored") + ". A server starts it within seconds.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.Rerun(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}
