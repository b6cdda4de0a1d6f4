package records

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// RequestFilters are the parameters of a list of failed requests. The installation has one more, tenant.
var RequestFilters = []console.Input{{Name: "before", Max: 36}, {Name: "status", Max: 3}, {Name: "endpoint", Max: 100}, {Name: "request", Max: 64}}

// requestsBase returns the address of the list of failed requests on the visitor's site.
func requestsBase(v *console.Visit) string {
	if v.Route.Site == console.Tenants {
		return "/app/" + v.Tenant.ID + "/requests"
	}
	return "/ops/requests"
}

// Refused lists failed requests, newest first: of an account, or of all.
func (ps *Pages) Refused(v *console.Visit) (console.Answer, error) {
	f, err := ps.requestFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	found, err := ps.requests(v, f)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Failed requests", Lead: "API requests that were rejected or failed in the last 30 days. If many requests fail within a minute, only some of them are listed.",
		Active: v.Narrowed("tenant", "status", "endpoint", "request"), Clear: requestsBase(v),
		Filters: []page.Field{{Name: "status", Label: "Status", Value: v.Param("status"), Max: 3}, {Name: "endpoint", Label: "Endpoint", Value: f.Endpoint, Options: endpointOptions()},
			{Name: "request", Label: "Request ID", Value: v.Param("request"), Max: 64}},
		Empty: page.Empty{Title: "No failed requests", Text: "Rejected requests appear here within a second, with the reason."}}
	if v.Route.Site == console.Operators {
		account, err := v.AccountField()
		if err != nil {
			return console.Answer{}, err
		}
		l.Filters = append(l.Filters, account)
	}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks(requestsBase(v), v.FilterQuery("tenant", "status", "endpoint", "request"))
	}
	if l.Active > 0 {
		l.Empty = page.Empty{Title: "No results", Text: "No request matches these filters.", Href: l.Clear, Do: "Clear filters"}
	}
	if f.Before != "" {
		l.Prev = v.Query("before", "")
	}
	switch {
	case found.More == "":
	case len(found.Requests) == console.PageRows:
		l.Next = v.Query("before", found.More)
	default:
		l.Further, l.Shown = v.Query("before", found.More), "10,000 requests searched; older ones remain"
	}
	l.Grid = console.Grid(requestColumns(v), found.Requests, func(r requestlog.Request) string { return requestsBase(v) + "/" + r.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// requestColumns returns the columns of failed requests.
func requestColumns(v *console.Visit) []console.Column[requestlog.Request] {
	type request = requestlog.Request
	return []console.Column[request]{
		console.Time("Time", "at", func(r request) time.Time { return r.At }).Laid(console.Under),
		console.Text("", "request_id", func(r request) string { return r.RequestID }),
		console.Text("", "method", func(r request) string { return r.Method }),
		console.Coded("Endpoint", "endpoint", func(r request) templ.Component { return page.Text(r.Method + " " + r.Endpoint) }, func(r request) string { return r.Endpoint }).Laid(console.Link),
		{Head: "Response", Cell: func(r request) templ.Component { return page.Mark(requestBadge(r)) }, Name: "status", Value: func(r request) sheet.Value { return sheet.Integer(int64(r.Status)) }},
		console.Text("", "code", func(r request) string { return r.Code }),
		console.Text("Message", "message", func(r request) string { return r.Message }).Laid(console.Minor),
		console.Coded("Account", "tenant", func(r request) templ.Component { return page.Text(v.NameOf(r.Tenant)) }, func(r request) string { return r.Tenant }).
			OnPage(v.Route.Site == console.Operators).Laid(console.Minor),
		console.Text("", "key", func(r request) string { return r.Key }),
		console.Text("IP address", "from", func(r request) string { return r.Origin }).Laid(console.Wide),
	}
}

// requestFilter reads the filters of the list.
func (ps *Pages) requestFilter(v *console.Visit) (requestlog.Filter, error) {
	f := requestlog.Filter{Tenant: v.Tenant.ID, Endpoint: v.Param("endpoint"), Before: v.Param("before"), Limit: console.PageRows}
	if v.Route.Site == console.Operators {
		var err error
		if f.Tenant, err = v.AccountParam(); err != nil {
			return f, err
		}
	}
	if text := v.Param("status"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 400 || status > 599 {
			return f, problem.Field("status", "must be a number from 400 to 599")
		}
		f.Status = status
	}
	return f, nil
}

// requests reads the requests that match the filters.
func (ps *Pages) requests(v *console.Visit, f requestlog.Filter) (found requestlog.Found, err error) {
	if id := v.Param("request"); id != "" {
		found.Requests, err = ps.Requests.ByRequestID(v.Ctx, f.Tenant, id)
		return found, err
	}
	return ps.Requests.List(v.Ctx, f)
}

func requestBadge(r requestlog.Request) page.Badge {
	tone := page.Declined
	if r.Status >= 500 {
		tone = page.Bad
	}
	return page.Badge{Tone: tone, Word: strconv.Itoa(r.Status) + " " + r.Code}
}

func endpointOptions() []page.Option {
	seen := map[string]bool{"other": true}
	for _, r := range api.Routes() {
		seen[r.Path] = true
	}
	options := []page.Option{{Text: "Any"}}
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		options = append(options, page.Option{Value: path, Text: path})
	}
	return options
}

// RefusedOne shows one failed request.
func (ps *Pages) RefusedOne(v *console.Visit) (console.Answer, error) {
	r, err := ps.Requests.Get(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "Request ID", Value: page.Copyable(r.RequestID)}, {Name: "Time", Value: page.Time(r.At)}, {Name: "Endpoint", Value: page.ID(r.Method + " " + r.Endpoint)},
		{Name: "Response", Value: page.Mark(requestBadge(r))}, {Name: "Message", Value: page.Text(r.Message)}}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		facts = append(facts, page.Fact{Name: "Field " + page.Visible(name), Value: page.Text(strings.Join(r.Fields[name], "; "))})
	}
	if v.Route.Site == console.Operators {
		facts = append(facts, page.Fact{Name: "Account", Value: page.Text(v.NameOf(r.Tenant))})
	}
	facts = append(facts, page.Fact{Name: "API key ID", Value: page.ID(r.Key)}, page.Fact{Name: "IP address", Value: page.ID(r.Origin)}, page.Fact{Name: "Duration", Value: page.Text(r.Took.String())},
		page.Fact{Name: "How to fix it", Value: page.Anchor(guides.DocURL("", r.Code), "Guide to "+r.Code)})
	return console.Answer{Title: "Failed request", Body: templ.Join(page.Head("Failed request", "Only the error is stored, not the request body."), page.Panel("Details", page.Facts(facts)))}, nil
}

// requestCalled returns the page of the failed requests with the request ID in text. It is empty if there are none that the
// visitor may see.
func (ps *Pages) requestCalled(v *console.Visit, base, text string) (string, error) {
	text = strings.TrimSpace(text)
	if !v.Can(roles.ReadRequests) || len(text) < 8 || len(text) > 64 {
		return "", nil
	}
	list, err := ps.Requests.ByRequestID(v.Ctx, v.Tenant.ID, text)
	switch {
	case err != nil || len(list) == 0:
		return "", err
	case len(list) == 1:
		return base + "/requests/" + list[0].ID, nil
	}
	return base + "/requests?" + url.Values{"request": {text}}.Encode(), nil
}
