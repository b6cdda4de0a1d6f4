package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

// site says whose pages a route belongs to.
type site int

const (
	public    site = iota // needs no session
	anyone                // every person who is signed in
	operators             // a role at the installation
	tenants               // a role at the tenant of the path, or an operator who looks at it
)

// Input is one parameter that a route reads, from the query of a GET and the form of a POST.
type Input struct {
	Name string
	Max  int // characters
}

// Route is one page or one thing to do.
type Route struct {
	Method, Path string // the path as net/http matches it
	Site         site
	Permission   identity.Permission // empty where the site asks for none
	Also         identity.Permission // one more that it asks for; empty: none
	Inputs       []Input
	Development  bool  // there in development mode alone
	File         bool  // the answer is a file, which may take its time
	Simulator    bool  // there where a simulator is
	Machine      bool  // programs send it, not people: the body is not a form
	Body         int64 // bytes at most; 0: formBytes
	Unready      bool  // there for people who have not set up a password and a factor yet
	handle       func(*visit) (answer, error)
}

func (r *Route) body() int64 {
	if r.Body > 0 {
		return r.Body
	}
	return formBytes
}

func (r *Route) reads() bool { return !r.Machine }

// moves reports whether the route moves money, or decides about it.
func (r *Route) moves() bool {
	moving := []identity.Permission{identity.MakeMoney, identity.MakeTreasury, identity.MakePayouts, identity.CheckActs}
	return r.Method == http.MethodPost && (slices.Contains(moving, r.Permission) || r.Permission == identity.MakeActs && (strings.HasSuffix(r.Path, "/do") || strings.HasSuffix(r.Path, "/withdraw")))
}

// Routes is every route of the console.
func Routes() []Route {
	return withFormats(slices.Concat(signRoutes(), opsRoutes(), appRoutes(), simRoutes()))
}

// strayRoutes are the addresses of a site that no page has: they are answered between its navigation.
func strayRoutes() []Route {
	noPage := func(*visit) (answer, error) { return answer{}, errNoPage() }
	return []Route{
		{Method: http.MethodGet, Path: "/ops/{rest...}", Site: operators, Permission: identity.ReadHome, handle: noPage},
		{Method: http.MethodGet, Path: "/app/{tenant}/{rest...}", Site: tenants, Permission: identity.ReadHome, handle: noPage},
	}
}

func signRoutes() []Route {
	token, back, code := Input{"t", 100}, Input{"back", 2000}, Input{"code", 40}
	routes := []Route{
		{Method: http.MethodGet, Path: "/{$}", Site: anyone, handle: start},
		{Method: http.MethodGet, Path: "/first", Inputs: []Input{token}, handle: first},
		{Method: http.MethodPost, Path: "/first", Inputs: []Input{token, {"password", identity.MaxPassword + 1}}, handle: signInByLink},
		{Method: http.MethodPost, Path: "/first/again", Development: true, handle: linkAgain},
		{Method: http.MethodGet, Path: "/sign-in", Inputs: []Input{{"again", 1}, back}, handle: signInPage},
		{Method: http.MethodPost, Path: "/sign-in", Inputs: []Input{{"email", 254}, {"password", identity.MaxPassword + 1}, code, back}, handle: signInByPassword},
		{Method: http.MethodPost, Path: "/sign-out", handle: signOut},
		{Method: http.MethodPost, Path: "/theme", Inputs: []Input{{"theme", 10}, back}, handle: setTheme},
	}
	own := []Route{
		{Method: http.MethodGet, Path: "/account", handle: account},
		{Method: http.MethodPost, Path: "/account/password", Inputs: []Input{{"current", identity.MaxPassword + 1}, {"password", identity.MaxPassword + 1}}, handle: changePassword},
		{Method: http.MethodPost, Path: "/account/factor", Inputs: []Input{{"current", identity.MaxPassword + 1}}, handle: beginFactor},
		{Method: http.MethodGet, Path: "/account/factor", handle: factorPage},
		{Method: http.MethodPost, Path: "/account/factor/confirm", Inputs: []Input{code, {"current", identity.MaxPassword + 1}}, handle: confirmFactor},
		{Method: http.MethodPost, Path: "/account/recovery-codes", handle: renewCodes},
		{Method: http.MethodPost, Path: "/account/sessions/end", Inputs: []Input{{"id", 36}}, handle: endSession},
		{Method: http.MethodPost, Path: "/account/tokens", Inputs: []Input{{"name", 240}}, handle: makeToken},
		{Method: http.MethodPost, Path: "/account/tokens/end", Inputs: []Input{{"id", 36}}, handle: endToken},
		{Method: http.MethodGet, Path: "/account/step-up", Inputs: []Input{back}, handle: stepUpPage},
		{Method: http.MethodPost, Path: "/account/step-up", Inputs: []Input{code, back}, handle: stepUp},
	}
	for i := range own {
		own[i].Site, own[i].Unready = anyone, true
	}
	return append(routes, own...)
}

// preset chooses the columns of a file of payments.
var preset = Input{"preset", 20}

// opsRoutes are the pages of the installation.
func opsRoutes() []Route {
	before, days := Input{"before", 36}, []Input{{"from", 10}, {"to", 10}}
	reason, ofTenant := Input{"reason", 500}, Input{"tenant", 120}
	filters := append([]Input{before, ofTenant, {"kind", 12}, {"status", 12}, {"provider", 40}, {"newer", 36}, {"seen", 20}}, days...)
	routes := []Route{
		{Method: http.MethodGet, Path: "/ops", Permission: identity.ReadHome, handle: overview},
		{Method: http.MethodGet, Path: "/ops/payments", Permission: identity.ReadPayments, Inputs: filters, handle: allPayments},
		{Method: http.MethodGet, Path: "/ops/payments.csv", Permission: identity.ReadPayments, Also: identity.ExportPayments, Inputs: append([]Input{preset}, filters...), File: true, handle: allPaymentsFile},
		{Method: http.MethodGet, Path: "/ops/payments/{id}", Permission: identity.ReadPayments, handle: opsPayment},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/webhooks/{event}/replay", Permission: identity.ReplayWebhooks, handle: replay},
		{Method: http.MethodPost, Path: "/ops/payments/{id}/number", Permission: identity.RevealNumbers, handle: revealNumber},
		{Method: http.MethodGet, Path: "/ops/search", Permission: identity.ReadPayments, Inputs: []Input{before, {"q", 200}}, handle: search},
		{Method: http.MethodGet, Path: "/ops/stuck", Permission: identity.ReadPayments, handle: stuck},
		{Method: http.MethodGet, Path: "/ops/messages", Permission: identity.ReadMessages, Inputs: []Input{before, ofTenant}, handle: allCampaigns},
		{Method: http.MethodGet, Path: "/ops/messages.csv", Permission: identity.ReadMessages, Also: identity.ExportPayments, Inputs: []Input{ofTenant}, File: true, handle: campaignsFile},
		{Method: http.MethodGet, Path: "/ops/messages/{id}", Permission: identity.ReadMessages, Inputs: []Input{{"page", 9}}, handle: opsCampaign},
		{Method: http.MethodGet, Path: "/ops/tenants", Permission: identity.ReadTenants, Inputs: []Input{{"after", 36}}, handle: tenantList},
		{Method: http.MethodGet, Path: "/ops/tenants/{id}", Permission: identity.ReadTenants, handle: tenantPage},
		{Method: http.MethodGet, Path: "/ops/audit", Permission: identity.ReadAudit, Inputs: []Input{before, {"actor", 254}, {"action", 60}, {"tenant", 36}}, handle: auditList},
		{Method: http.MethodGet, Path: "/ops/audit.csv", Permission: identity.ReadAudit, Also: identity.ExportPayments, Inputs: []Input{{"actor", 254}, {"action", 60}, {"tenant", 36}}, File: true, handle: auditFile},
		{Method: http.MethodGet, Path: "/ops/requests", Permission: identity.ReadRequests, Inputs: append([]Input{{"tenant", 36}}, requestFilters...), handle: requestList},
		{Method: http.MethodGet, Path: "/ops/requests.csv", Permission: identity.ReadRequests, Also: identity.ExportPayments, Inputs: append([]Input{{"tenant", 36}}, requestFilters...), File: true, handle: requestsFile},
		{Method: http.MethodGet, Path: "/ops/requests/{id}", Permission: identity.ReadRequests, handle: requestPage},
		{Method: http.MethodGet, Path: "/ops/providers", Permission: identity.ReadProviders, handle: providerList},
		{Method: http.MethodGet, Path: "/ops/routes", Permission: identity.ReadProviders, handle: routeList},
		{Method: http.MethodGet, Path: "/ops/jobs", Permission: identity.ReadChecks, Inputs: []Input{{"after", 36}}, handle: deadLetters},
		{Method: http.MethodGet, Path: "/ops/float", Permission: identity.ReadTreasury, handle: floats},
		{Method: http.MethodGet, Path: "/ops/checks", Permission: identity.ReadChecks, handle: checks},
	}
	for _, o := range []walletOrder{funding, adjusting} {
		base, inputs := "/ops/tenants/{id}/"+o.name, []Input{{"id", 36}, {"amount", 20}, {"way", 3}, reason}
		routes = append(routes,
			Route{Method: http.MethodGet, Path: base, Permission: identity.MakeMoney, handle: o.page},
			Route{Method: http.MethodPost, Path: base, Permission: identity.MakeMoney, Inputs: inputs, handle: o.confirm},
			Route{Method: http.MethodPost, Path: base + "/confirm", Permission: identity.MakeMoney, Inputs: inputs, handle: o.do})
	}
	routes = append(routes, actRoutes("/ops")...)
	routes = append(routes, policyRoutes("/ops", Input{"tenant", 36})...)
	routes = append(routes, accountRoutes("/ops/tenants/{id}", append(append(creditOrders(), generatedOrders(identity.InstallationSite)...), transferOrder(), recoverOrder(), settingsOrder(identity.MakeTenants, false), blockOrder(), feesOrder(accountFees))...)...)
	routes = append(routes, peopleRoutes("/ops")...)
	for _, o := range slices.Concat(senderOrders(), paymentOrders(), switchOrders(), []asking{newTenantOrder(), floatOrder(), stopOrder(), feesOrder(defaultFees), routeOrder(), dropRouteOrder(), rerunOrder()}) {
		routes = append(routes, o.routes("/ops")...)
	}
	routes = append(routes, Route{Method: http.MethodGet, Path: "/ops/senders", Permission: identity.ReviewSenders, handle: senderList})
	for i := range routes {
		routes[i].Site = operators
	}
	return routes
}

// actRoutes are the acts of a site, under its base. The kind says, in the transaction, which role may check it.
func actRoutes(base string) []Route {
	digest, act := Input{"digest", mostShown}, base+"/acts/{id}"
	return []Route{
		{Method: http.MethodGet, Path: base + "/acts", Permission: identity.ReadActs, Inputs: []Input{{"before", 36}, {"state", 12}}, handle: actList},
		{Method: http.MethodGet, Path: act, Permission: identity.ReadActs, handle: actPage},
		{Method: http.MethodPost, Path: act + "/approve", Permission: identity.CheckActs, Inputs: []Input{digest}, handle: approveAct},
		{Method: http.MethodPost, Path: act + "/reject", Permission: identity.CheckActs, Inputs: []Input{digest, {"note", 500}}, handle: rejectAct},
		{Method: http.MethodPost, Path: act + "/withdraw", Permission: identity.MakeActs, Inputs: []Input{digest}, handle: withdrawAct},
		{Method: http.MethodPost, Path: act + "/reveal", Permission: identity.MakeActs, handle: revealMade},
		{Method: http.MethodPost, Path: act + "/code", Permission: identity.ReadActs, handle: revealCode},
		{Method: http.MethodPost, Path: act + "/do", Permission: identity.MakeActs, Inputs: []Input{digest}, handle: approveAct},
	}
}

// policyRoutes are the policy of a site.
func policyRoutes(base string, more ...Input) []Route {
	inputs := append([]Input{{"id", 36}, {"kind", 40}, {"amount", 20}, {"checkers", 2}, {"reason", 500}}, more...)
	return []Route{{Method: http.MethodGet, Path: base + "/policy", Permission: identity.ReadActs, handle: policyPage},
		{Method: http.MethodPost, Path: base + "/policy", Permission: identity.MakePolicy, Inputs: inputs, handle: setPolicy}}
}

// accountRoutes are the pages about an account, on either site.
func accountRoutes(base string, more ...asking) []Route {
	routes := []Route{{Method: http.MethodGet, Path: base + "/access", Permission: identity.ReadAccess, handle: accessPage},
		{Method: http.MethodPost, Path: base + "/secret/reveal", Permission: identity.ReadSecrets, handle: revealSecret}}
	for _, o := range append(accountOrders(), more...) {
		routes = append(routes, o.routes(base)...)
	}
	return routes
}

// peopleRoutes are the pages of people, on either site.
func peopleRoutes(base string) []Route {
	routes := []Route{{Method: http.MethodGet, Path: base + "/people", Permission: identity.ReadPeople, handle: peopleList},
		{Method: http.MethodGet, Path: base + "/people/{person}", Permission: identity.ReadPeople, handle: personPage}}
	for _, o := range peopleOrders() {
		routes = append(routes, o.routes(base)...)
	}
	return routes
}

// appRoutes are the pages of a tenant.
func appRoutes() []Route {
	const base = "/app/{tenant}"
	routes := []Route{
		{Method: http.MethodGet, Path: base, Permission: identity.ReadHome, handle: tenantHome},
		{Method: http.MethodGet, Path: base + "/payments/{id}", Permission: identity.ReadPayments, handle: tenantPayment},
		{Method: http.MethodPost, Path: base + "/payments/{id}/webhooks/{event}/replay", Permission: identity.ReplayWebhooks, handle: replay},
		{Method: http.MethodPost, Path: base + "/payments/{id}/number", Permission: identity.RevealNumbers, handle: revealNumber},
		{Method: http.MethodGet, Path: base + "/search", Permission: identity.ReadPayments, Inputs: []Input{{"before", 36}, {"q", 200}}, handle: search},
		{Method: http.MethodGet, Path: base + "/payouts/new", Permission: identity.MakePayouts, handle: newPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new", Permission: identity.MakePayouts, Inputs: payoutInputs, handle: confirmPayout},
		{Method: http.MethodPost, Path: base + "/payouts/new/confirm", Permission: identity.MakePayouts, Inputs: append([]Input{{"fee", 20}, {"shown", 40}, {"expected", 100}, {"unnamed", 3}}, payoutInputs...), handle: pay},
		{Method: http.MethodGet, Path: base + "/requests", Permission: identity.ReadRequests, Inputs: requestFilters, handle: requestList},
		{Method: http.MethodGet, Path: base + "/requests.csv", Permission: identity.ReadRequests, Also: identity.ExportPayments, Inputs: requestFilters, File: true, handle: requestsFile},
		{Method: http.MethodGet, Path: base + "/requests/{id}", Permission: identity.ReadRequests, handle: requestPage},
		{Method: http.MethodGet, Path: base + "/messages", Permission: identity.ReadMessages, Inputs: []Input{{"before", 36}}, handle: campaigns},
		{Method: http.MethodGet, Path: base + "/messages.csv", Permission: identity.ReadMessages, Also: identity.ExportPayments, File: true, handle: campaignsFile},
		{Method: http.MethodGet, Path: base + "/messages/{id}", Permission: identity.ReadMessages, Inputs: []Input{{"page", 9}}, handle: campaign},
	}
	filters := []Input{{"status", 12}, {"from", 10}, {"to", 10}, {"page", 9}, {"newer", 20}, {"seen", 20}}
	for n, kind := range tenantLists {
		routes = append(routes,
			Route{Method: http.MethodGet, Path: base + kind.path, Permission: identity.ReadPayments, Inputs: filters, handle: tenantPayments(n)},
			Route{Method: http.MethodGet, Path: base + kind.path + ".csv", Permission: identity.ReadPayments, Also: identity.ExportPayments, Inputs: append([]Input{preset}, filters...), File: true, handle: tenantPaymentsFile(n)})
	}
	routes = append(routes, actRoutes(base)...)
	routes = append(routes, policyRoutes(base)...)
	routes = append(routes, accountRoutes(base, append(generatedOrders(identity.TenantSite), settingsOrder(identity.MakeSettings, true))...)...)
	routes = append(routes, stopOrder().routes(base)...)
	routes = append(routes, peopleRoutes(base)...)
	for i := range routes {
		routes[i].Site = tenants
	}
	return routes
}

// simRoutes are the pages of the simulator. Webhooks come without a session: programs send them.
func simRoutes() []Route {
	shown := Input{"h", 200}
	routes := []Route{
		{Method: http.MethodGet, Path: "/sim", Inputs: []Input{shown, {"add", 20}}, handle: simPage},
		{Method: http.MethodPost, Path: "/sim/collect", Inputs: []Input{shown, {"amount", 12}, {"phone", 20}, {"reference", 36}}, handle: collect},
		{Method: http.MethodPost, Path: "/sim/prompts/{msisdn}/{id}", Inputs: []Input{shown, {"action", 20}}, handle: answerPrompt},
		{Method: http.MethodPost, Path: "/sim/faults", Inputs: []Input{shown, {"provider", 20}, {"fault", 40}, {"count", 4}}, handle: addFault},
		{Method: http.MethodPost, Path: "/sim/faults/clear", Inputs: []Input{shown}, handle: clearFaults},
		{Method: http.MethodPost, Path: "/sim/clock", Inputs: []Input{shown, {"seconds", 6}}, handle: moveClock},
	}
	for i := range routes {
		routes[i].Site, routes[i].Permission = operators, identity.UseSimulator
	}
	routes = append(routes, Route{Method: http.MethodPost, Path: "/sim/hooks/{name}", Machine: true, Body: hookBytes, handle: receiveHook})
	for i := range routes {
		routes[i].Development, routes[i].Simulator = true, true
	}
	return routes
}

// isText says whether a value can be a text of the database: PostgreSQL has no NUL.
func isText(value string) bool { return utf8.ValidString(value) && !strings.Contains(value, "\x00") }

// checkForm refuses what no browser sends of a page of ours: parameters that are too long, repeated, or no text.
func (v *visit) checkForm() error {
	if v.route.Machine {
		return nil
	}
	for _, in := range v.route.Inputs {
		given := v.r.Form[in.Name]
		if v.r.Method == http.MethodGet {
			given = v.r.URL.Query()[in.Name]
		}
		if len(given) > 1 {
			return problem.Field(in.Name, "was given more than once")
		}
		if len(given) == 1 && (!isText(given[0]) || utf8.RuneCountInString(given[0]) > in.Max) {
			return problem.Field(in.Name, "must be text of at most "+strconv.Itoa(in.Max)+" characters")
		}
	}
	return nil
}

// Guarded says whether the route asks for a permission.
func (r Route) Guarded() bool { return r.Site == operators || r.Site == tenants }

// Allows says whether a role at a site may use the route, by the policy. An operator who may look at tenants' pages has
// what both their own role and the tenant's auditor may.
func (r Route) Allows(s identity.Site, role identity.Role) bool {
	switch {
	case r.Site == operators:
		return s == identity.InstallationSite && r.can(s, role)
	case r.Site == tenants && s == identity.InstallationSite:
		return r.Method == http.MethodGet && role.MayViewAs(r.Permission) && (r.Also == "" || role.MayViewAs(r.Also))
	case r.Site == tenants:
		return r.can(s, role)
	}
	return true
}

// can says whether a role has what the route asks for.
func (r Route) can(s identity.Site, role identity.Role) bool {
	return identity.Can(s, role, r.Permission) && (r.Also == "" || identity.Can(s, role, r.Also))
}
