package tenant

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/roles"
)

// Routes are the pages of an account.
func (ps *Pages) Routes() []console.Route {
	const base = "/app/{tenant}"
	routes := []console.Route{
		{Method: http.MethodGet, Path: base, Permission: roles.ReadHome, Handle: ps.tenantHome},
		{Method: http.MethodGet, Path: base + "/payments/{id}", Permission: roles.ReadPayments, Handle: ps.Records.Payment},
		{Method: http.MethodPost, Path: base + "/payments/{id}/webhooks/{event}/replay", Permission: roles.ReplayWebhooks, Handle: ps.Records.Replay},
		{Method: http.MethodPost, Path: base + "/payments/{id}/number", Permission: roles.RevealNumbers, Handle: ps.Records.RevealNumber},
		{Method: http.MethodPost, Path: base + "/payments/{id}/ask", Permission: roles.ReadPayments, Handle: ps.Records.Ask},
		{Method: http.MethodGet, Path: base + "/payments/{id}/receipt", Permission: roles.ReadPayments, Handle: ps.Records.Receipt},
		{Method: http.MethodGet, Path: base + "/search", Permission: roles.ReadPayments, Inputs: []console.Input{{Name: "before", Max: 36}, {Name: "q", Max: 200}}, Handle: ps.Records.Search},
		{Method: http.MethodGet, Path: base + "/payouts/new", Permission: roles.RequestPayouts, Handle: ps.newPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new", Permission: roles.RequestPayouts, Inputs: payoutInputs, Handle: ps.confirmPayout, Resume: ps.confirmPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new/confirm", Permission: roles.RequestPayouts, Inputs: append([]console.Input{{Name: "fee", Max: 20}, {Name: "shown", Max: 40}, {Name: "expected", Max: 100}, {Name: "unnamed", Max: 3}, {Name: "typed", Max: 100}}, payoutInputs...), Handle: ps.pay, Resume: ps.confirmPayout},
		{Method: http.MethodGet, Path: base + "/requests", Permission: roles.ReadRequests, Inputs: records.RequestFilters, Handle: ps.Records.Refused},
		{Method: http.MethodGet, Path: base + "/requests.csv", Permission: roles.ReadRequests, Also: roles.ExportPayments, Inputs: records.RequestFilters, File: true, Handle: ps.Records.RequestsFile},
		{Method: http.MethodGet, Path: base + "/requests/{id}", Permission: roles.ReadRequests, Handle: ps.Records.RefusedOne},
		{Method: http.MethodGet, Path: base + "/messages", Permission: roles.ReadMessages, Inputs: []console.Input{{Name: "before", Max: 36}}, Handle: ps.Records.Campaigns},
		{Method: http.MethodGet, Path: base + "/messages.csv", Permission: roles.ReadMessages, Also: roles.ExportPayments, File: true, Handle: ps.Records.CampaignsFile},
		{Method: http.MethodGet, Path: base + "/incoming", Permission: roles.ReadMessages, Inputs: []console.Input{{Name: "before", Max: 36}}, Handle: ps.Records.Incoming},
		{Method: http.MethodGet, Path: base + "/opt-outs", Permission: roles.ReadMessages, Inputs: []console.Input{{Name: "page", Max: 9}}, Handle: ps.Records.OptOuts},
		{Method: http.MethodGet, Path: base + "/messages/{id}", Permission: roles.ReadMessages, Inputs: []console.Input{{Name: "page", Max: 9}}, Handle: ps.Records.Campaign},
	}
	filters := []console.Input{{Name: "status", Max: 12}, {Name: "from", Max: 10}, {Name: "to", Max: 10}, {Name: "page", Max: 9}, {Name: "newer", Max: 20}, {Name: "seen", Max: 20}, {Name: "before", Max: 20}}
	filters = append(filters, records.AmountInputs...)
	for n, kind := range tenantLists {
		routes = append(routes,
			console.Route{Method: http.MethodGet, Path: base + kind.path, Permission: roles.ReadPayments, Inputs: filters, Handle: ps.tenantPayments(n)},
			console.Route{Method: http.MethodGet, Path: base + kind.path + ".csv", Permission: roles.ReadPayments, Also: roles.ExportPayments, Inputs: append([]console.Input{records.Preset}, filters...), File: true, Handle: ps.tenantPaymentsFile(n)})
	}
	routes = append(routes, console.Route{Method: http.MethodGet, Path: base + "/fees", Permission: roles.ReadBalances, Handle: ps.fees})
	routes = append(routes, ps.Records.StatementRoutes(base)...)
	routes = append(routes, ps.Records.WebhookRoutes(base)...)
	routes = append(routes, ps.Approvals.Routes(base)...)
	routes = append(routes, ps.Approvals.PolicyRoutes(base)...)
	routes = append(routes, ps.Settings.AccountRoutes(base, append(ps.Approvals.GeneratedForms(roles.TenantSite), ps.Settings.SettingsForm(roles.ChangeSettings, true))...)...)
	routes = append(routes, ps.Records.StopForm().Routes(base)...)
	routes = append(routes, ps.Records.RefundForm().Routes(base)...)
	routes = append(routes, ps.Settings.PeopleRoutes(base)...)
	for i := range routes {
		routes[i].Site = console.Tenants
	}
	return routes
}
