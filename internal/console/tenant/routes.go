package tenant

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/identity"
)

// Routes are the pages of an account.
func (ps *Pages) Routes() []console.Route {
	const base = "/app/{tenant}"
	routes := []console.Route{
		{Method: http.MethodGet, Path: base, Permission: identity.ReadHome, Handle: ps.tenantHome},
		{Method: http.MethodGet, Path: base + "/payments/{id}", Permission: identity.ReadPayments, Handle: ps.Records.Payment},
		{Method: http.MethodPost, Path: base + "/payments/{id}/webhooks/{event}/replay", Permission: identity.ReplayWebhooks, Handle: ps.Records.Replay},
		{Method: http.MethodPost, Path: base + "/payments/{id}/number", Permission: identity.RevealNumbers, Handle: ps.Records.RevealNumber},
		{Method: http.MethodGet, Path: base + "/search", Permission: identity.ReadPayments, Inputs: []console.Input{{Name: "before", Max: 36}, {Name: "q", Max: 200}}, Handle: ps.Records.Search},
		{Method: http.MethodGet, Path: base + "/payouts/new", Permission: identity.MakePayouts, Handle: ps.newPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new", Permission: identity.MakePayouts, Inputs: payoutInputs, Handle: ps.confirmPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new/confirm", Permission: identity.MakePayouts, Inputs: append([]console.Input{{Name: "fee", Max: 20}, {Name: "shown", Max: 40}, {Name: "expected", Max: 100}, {Name: "unnamed", Max: 3}}, payoutInputs...), Handle: ps.pay},
		{Method: http.MethodGet, Path: base + "/requests", Permission: identity.ReadRequests, Inputs: records.RequestFilters, Handle: ps.Records.Refused},
		{Method: http.MethodGet, Path: base + "/requests.csv", Permission: identity.ReadRequests, Also: identity.ExportPayments, Inputs: records.RequestFilters, File: true, Handle: ps.Records.RequestsFile},
		{Method: http.MethodGet, Path: base + "/requests/{id}", Permission: identity.ReadRequests, Handle: ps.Records.RefusedOne},
		{Method: http.MethodGet, Path: base + "/messages", Permission: identity.ReadMessages, Inputs: []console.Input{{Name: "before", Max: 36}}, Handle: ps.Records.Campaigns},
		{Method: http.MethodGet, Path: base + "/messages.csv", Permission: identity.ReadMessages, Also: identity.ExportPayments, File: true, Handle: ps.Records.CampaignsFile},
		{Method: http.MethodGet, Path: base + "/messages/{id}", Permission: identity.ReadMessages, Inputs: []console.Input{{Name: "page", Max: 9}}, Handle: ps.Records.Campaign},
	}
	filters := []console.Input{{Name: "status", Max: 12}, {Name: "from", Max: 10}, {Name: "to", Max: 10}, {Name: "page", Max: 9}, {Name: "newer", Max: 20}, {Name: "seen", Max: 20}}
	for n, kind := range tenantLists {
		routes = append(routes,
			console.Route{Method: http.MethodGet, Path: base + kind.path, Permission: identity.ReadPayments, Inputs: filters, Handle: ps.tenantPayments(n)},
			console.Route{Method: http.MethodGet, Path: base + kind.path + ".csv", Permission: identity.ReadPayments, Also: identity.ExportPayments, Inputs: append([]console.Input{records.Preset}, filters...), File: true, Handle: ps.tenantPaymentsFile(n)})
	}
	routes = append(routes, ps.Approvals.Routes(base)...)
	routes = append(routes, ps.Approvals.PolicyRoutes(base)...)
	routes = append(routes, ps.Settings.AccountRoutes(base, append(ps.Approvals.GeneratedForms(identity.TenantSite), ps.Settings.SettingsForm(identity.MakeSettings, true))...)...)
	routes = append(routes, ps.Records.StopForm().Routes(base)...)
	routes = append(routes, ps.Settings.PeopleRoutes(base)...)
	for i := range routes {
		routes[i].Site = console.Tenants
	}
	return routes
}
