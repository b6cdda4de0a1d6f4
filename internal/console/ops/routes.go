package ops

import (
	"net/http"
	"slices"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/treasury"
)

// Routes are the pages of the installation.
func (ps *Pages) Routes() []console.Route {
	before, days := console.Input{Name: "before", Max: 36}, []console.Input{{Name: "from", Max: 10}, {Name: "to", Max: 10}}
	reason, ofTenant := console.Input{Name: "reason", Max: 500}, console.Input{Name: "tenant", Max: 120}
	filters := append([]console.Input{before, ofTenant, {Name: "kind", Max: 12}, {Name: "status", Max: 12}, {Name: "provider", Max: 40}, {Name: "newer", Max: 36}, {Name: "seen", Max: 20}}, append(days, records.AmountInputs...)...)
	routes := []console.Route{
		{Method: http.MethodGet, Path: "/ops", Permission: roles.ReadHome, Inputs: []console.Input{{Name: "mode", Max: 4}}, Handle: ps.overview},
		{Method: http.MethodGet, Path: "/ops/payments", Permission: roles.ReadPayments, Inputs: filters, Handle: ps.allPayments},
		{Method: http.MethodGet, Path: "/ops/payments.csv", Permission: roles.ReadPayments, Also: roles.ExportPayments, Inputs: append([]console.Input{records.Preset}, filters...), File: true, Handle: ps.allPaymentsFile},
		{Method: http.MethodGet, Path: "/ops/payments/{id}", Permission: roles.ReadPayments, Handle: ps.Records.Payment},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/webhooks/{event}/replay", Permission: roles.ReplayWebhooks, Handle: ps.Records.Replay},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/number", Permission: roles.RevealNumbers, Handle: ps.Records.RevealNumber},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/ask", Permission: roles.ReadPayments, Handle: ps.Records.Ask},
		{Method: http.MethodGet, Path: "/ops/payments/{id}/receipt", Permission: roles.ReadPayments, Handle: ps.Records.Receipt},
		{Method: http.MethodGet, Path: "/ops/search", Permission: roles.ReadPayments, Inputs: []console.Input{before, {Name: "q", Max: 200}}, Handle: ps.Records.Search},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/notes", Permission: roles.ReadPayments, Also: roles.NotePayments, Inputs: []console.Input{{Name: "id", Max: 36}, {Name: "note", Max: book.MaxNote}}, Handle: ps.Records.AddNote},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/take", Permission: roles.ReadPayments, Also: roles.NotePayments, Inputs: []console.Input{{Name: "list", Max: 1}}, Handle: ps.Records.Take},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/release", Permission: roles.ReadPayments, Also: roles.NotePayments, Inputs: []console.Input{{Name: "owner", Max: 36}, {Name: "list", Max: 1}}, Handle: ps.Records.Release},
		{Method: http.MethodGet, Path: "/ops/stuck", Permission: roles.ReadPayments, Inputs: []console.Input{{Name: "owner", Max: 36}, {Name: "after", Max: 60}}, Handle: ps.stuck},
		{Method: http.MethodGet, Path: "/ops/messages", Permission: roles.ReadMessages, Inputs: []console.Input{before, ofTenant}, Handle: ps.Records.AllCampaigns},
		{Method: http.MethodGet, Path: "/ops/messages.csv", Permission: roles.ReadMessages, Also: roles.ExportPayments, Inputs: []console.Input{ofTenant}, File: true, Handle: ps.Records.CampaignsFile},
		{Method: http.MethodGet, Path: "/ops/incoming", Permission: roles.ReadMessages, Inputs: []console.Input{before}, Handle: ps.Records.AllIncoming},
		{Method: http.MethodGet, Path: "/ops/messages/{id}", Permission: roles.ReadMessages, Inputs: []console.Input{{Name: "page", Max: 9}}, Handle: ps.Records.Campaign},
		{Method: http.MethodGet, Path: "/ops/tenants", Permission: roles.ReadTenants, Inputs: []console.Input{{Name: "after", Max: 36}}, Handle: ps.tenantList},
		{Method: http.MethodGet, Path: "/ops/tenants/{id}", Permission: roles.ReadTenants, Handle: ps.tenantPage},
		{Method: http.MethodGet, Path: "/ops/audit", Permission: roles.ReadAudit, Inputs: append([]console.Input{before}, auditInputs...), Handle: ps.auditList},
		{Method: http.MethodGet, Path: "/ops/audit.csv", Permission: roles.ReadAudit, Also: roles.ExportPayments, Inputs: auditInputs, File: true, Handle: ps.auditFile},
		{Method: http.MethodGet, Path: "/ops/requests", Permission: roles.ReadRequests, Inputs: append([]console.Input{ofTenant}, records.RequestFilters...), Handle: ps.Records.Refused},
		{Method: http.MethodGet, Path: "/ops/requests.csv", Permission: roles.ReadRequests, Also: roles.ExportPayments, Inputs: append([]console.Input{ofTenant}, records.RequestFilters...), File: true, Handle: ps.Records.RequestsFile},
		{Method: http.MethodGet, Path: "/ops/requests/{id}", Permission: roles.ReadRequests, Handle: ps.Records.RefusedOne},
		{Method: http.MethodGet, Path: "/ops/providers", Permission: roles.ReadProviders, Handle: ps.providerList},
		{Method: http.MethodGet, Path: "/ops/providers/{name}", Permission: roles.ReadProviders, Handle: ps.provider},
		{Method: http.MethodPost, Path: "/ops/providers/{name}/test", Permission: roles.SwitchProviders, Slow: true, Handle: ps.testProvider},
		{Method: http.MethodGet, Path: "/ops/routes", Permission: roles.ReadProviders, Handle: ps.routeList},
		{Method: http.MethodGet, Path: "/ops/jobs", Permission: roles.ReadChecks, Inputs: []console.Input{{Name: "after", Max: 36}}, Handle: ps.deadLetters},
		{Method: http.MethodGet, Path: "/ops/float", Permission: roles.ReadTreasury, Inputs: []console.Input{{Name: "ask", Max: 3}}, Handle: ps.floats},
		{Method: http.MethodGet, Path: "/ops/checks", Permission: roles.ReadChecks, Handle: ps.checks},
		{Method: http.MethodGet, Path: "/ops/notices", Permission: roles.ReadChecks, Inputs: []console.Input{before}, Handle: ps.noticeList},
		{Method: http.MethodPost, Path: "/ops/notices/test", Permission: roles.ReadChecks, Handle: ps.testHook},
	}
	for _, o := range ps.walletOrders() {
		base, inputs := "/ops/tenants/{id}/"+o.name, []console.Input{{Name: "id", Max: 36}, {Name: "amount", Max: 20}, {Name: "way", Max: 3}, {Name: "reference", Max: changes.MaxReference},
			{Name: "bank", Max: 30}, {Name: "slip", Max: treasury.MaxSlip}, {Name: "line", Max: 36}, reason}
		routes = append(routes,
			console.Route{Method: http.MethodGet, Path: base, Permission: roles.ChangeMoney, Handle: o.page},
			console.Route{Method: http.MethodPost, Path: base, Permission: roles.ChangeMoney, Inputs: inputs, Handle: o.confirm},
			console.Route{Method: http.MethodPost, Path: base + "/confirm", Permission: roles.ChangeMoney, Inputs: inputs, Handle: o.do, Resume: o.confirm})
	}
	routes = append(routes, ps.Records.StatementRoutes("/ops/tenants/{id}")...)
	routes = append(routes, ps.Approvals.Routes("/ops")...)
	routes = append(routes, ps.Approvals.PolicyRoutes("/ops", console.Input{Name: "tenant", Max: 120})...)
	routes = append(routes, ps.Settings.AccountRoutes("/ops/tenants/{id}", append(append(ps.creditOrders(), ps.Approvals.GeneratedForms(roles.InstallationSite)...), ps.transferOrder(), ps.recoverOrder(), ps.Settings.SettingsForm(roles.ChangeTenants, false), ps.blockOrder(), ps.feesOrder(accountFees))...)...)
	routes = append(routes, ps.Settings.PeopleRoutes("/ops")...)
	for _, o := range slices.Concat(ps.senderOrders(), ps.paymentOrders(), ps.switchOrders(), []approvals.Form{ps.newTenantOrder(), ps.floatOrder(), ps.Records.StopForm(), ps.feesOrder(defaultFees), ps.routeOrder(), ps.dropRouteOrder(), ps.rerunOrder()}) {
		routes = append(routes, o.Routes("/ops")...)
	}
	routes = append(routes, console.Route{Method: http.MethodGet, Path: "/ops/senders", Permission: roles.ReviewSenders, Handle: ps.senderList})
	for i := range routes {
		routes[i].Site = console.Operators
	}
	return routes
}
