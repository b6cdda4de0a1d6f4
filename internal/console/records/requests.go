package records

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/roles"
)

// RequestFilters are the parameters of a list of refused requests.
var RequestFilters = []console.Input{{Name: "before", Max: 36}, {Name: "status", Max: 3}, {Name: "endpoint", Max: 100}, {Name: "request", Max: 64}}

// requestsBase is the list of refused requests of the visitor's site.
func requestsBase(v *console.Visit) string {
	if v.Route.Site == console.Tenants {
		return "/app/" + v.Tenant.ID + "/requests"
	}
	return "/ops/requests"
}

// Refused lists requests that were refused or failed, the latest first: of a tenant, or of all.
func (ps *Pages) Refused(v *console.Visit) (console.Answer, error) {
	f, err := requestFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	found, err := ps.requests(v, f)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Requests", Lead: "Requests of the JSON interface that were refused or failed, for 30 days. Of many in one minute some are left out.",
		Columns: []page.Column{{Name: "When"}, {Name: "Endpoint"}, {Name: "Answer"}, {Name: "Why", Minor: true}, {Name: "From", Wide: true}},
		Active:  v.Narrowed("tenant", "status", "endpoint", "request"), Clear: requestsBase(v),
		Filters: []page.Field{{Name: "status", Label: "Status", Value: v.Param("status"), Max: 3}, {Name: "endpoint", Label: "Endpoint", Value: f.Endpoint, Options: endpointOptions()},
			{Name: "request", Label: "Request id", Value: v.Param("request"), Max: 64}},
		Empty: page.Empty{Title: "Nothing was refused", Text: "A request that is refused appears here a moment later, with what was wrong."}}
	if v.Route.Site == console.Operators {
		l.Filters = append(l.Filters, page.Field{Name: "tenant", Label: "Account's id", Value: f.Tenant, Max: 36})
		l.Columns = append(l.Columns, page.Column{Name: "Account", Minor: true})
	}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks(requestsBase(v), v.FilterQuery("tenant", "status", "endpoint", "request"))
	}
	if l.Active {
		l.Empty = page.Empty{Title: "Nothing matches", Text: "No request that was looked at passes these filters.", Href: l.Clear, Do: "Clear the filters"}
	}
	if f.Before != "" {
		l.Prev = v.Query("before", "")
	}
	switch {
	case found.More == "":
	case len(found.Requests) == console.PageRows:
		l.Next = v.Query("before", found.More)
	default:
		l.Further, l.Shown = v.Query("before", found.More), "10,000 requests were looked at; there are older ones"
	}
	for _, r := range found.Requests {
		cells := []templ.Component{page.Minute(r.At), page.Text(r.Method + " " + r.Endpoint), page.Mark(requestBadge(r)), page.Text(r.Message), page.Text(r.Origin)}
		if v.Route.Site == console.Operators {
			cells = append(cells, page.Text(v.NameOf(r.Tenant)))
		}
		l.Rows = append(l.Rows, page.Row{Href: requestsBase(v) + "/" + r.ID, Cells: cells})
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// requestFilter reads the filters of the list.
func requestFilter(v *console.Visit) (requestlog.Filter, error) {
	f := requestlog.Filter{Tenant: v.Tenant.ID, Endpoint: v.Param("endpoint"), Before: v.Param("before"), Limit: console.PageRows}
	if v.Route.Site == console.Operators {
		f.Tenant = v.Param("tenant")
	}
	if text := v.Param("status"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 400 || status > 599 {
			return f, problem.Field("status", "must be a status from 400 to 599")
		}
		f.Status = status
	}
	return f, nil
}

// requests reads what passes the filters.
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

// RefusedOne is one of them.
func (ps *Pages) RefusedOne(v *console.Visit) (console.Answer, error) {
	r, err := ps.Requests.Get(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "Request id", Value: page.Copyable(r.RequestID)}, {Name: "When", Value: page.Time(r.At)}, {Name: "Endpoint", Value: page.ID(r.Method + " " + r.Endpoint)},
		{Name: "Answer", Value: page.Mark(requestBadge(r))}, {Name: "Message", Value: page.Text(r.Message)}}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		facts = append(facts, page.Fact{Name: "Field " + page.Visible(name), Value: page.Text(strings.Join(r.Fields[name], "; "))})
	}
	if v.Route.Site == console.Operators {
		facts = append(facts, page.Fact{Name: "Account", Value: page.Text(v.NameOf(r.Tenant))})
	}
	facts = append(facts, page.Fact{Name: "Key's id", Value: page.ID(r.Key)}, page.Fact{Name: "From", Value: page.ID(r.Origin)}, page.Fact{Name: "Took", Value: page.Text(r.Took.String())},
		page.Fact{Name: "What to do", Value: page.Anchor(guides.DocURL("", r.Code), "The page of "+r.Code)})
	return console.Answer{Title: "Request", Body: templ.Join(page.Head("Request "+r.RequestID, "It was refused, or failed. Its body is not kept."), page.Panel("What happened", page.Facts(facts)))}, nil
}

// requestCalled is the page of the refused requests whose request id was searched for; empty: there is none, or they are
// not for the visitor.
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
