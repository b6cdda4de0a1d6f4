package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/requestlog"
)

// requestFilters are the parameters of a list of refused requests.
var requestFilters = []Input{{"before", 36}, {"status", 3}, {"endpoint", 100}, {"request", 64}}

// requestsBase is the list of refused requests of the visitor's site.
func (v *visit) requestsBase() string {
	if v.route.Site == tenants {
		return "/app/" + v.tenant.ID + "/requests"
	}
	return "/ops/requests"
}

// requestList lists requests that were refused or failed, the latest first: of a tenant, or of all.
func requestList(v *visit) (answer, error) {
	f, err := v.requestFilter()
	if err != nil {
		return answer{}, err
	}
	found, err := v.requests(f)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Requests", Lead: "Requests of the JSON interface that were refused or failed, for 30 days. Of many in one minute some are left out.",
		Columns: []page.Column{{Name: "When"}, {Name: "Endpoint"}, {Name: "Answer"}, {Name: "Why", Minor: true}, {Name: "From", Wide: true}},
		Active:  v.narrowed("tenant", "status", "endpoint", "request"), Clear: v.requestsBase(),
		Filters: []page.Field{{Name: "status", Label: "Status", Value: v.param("status"), Max: 3}, {Name: "endpoint", Label: "Endpoint", Value: f.Endpoint, Options: endpointOptions()},
			{Name: "request", Label: "Request id", Value: v.param("request"), Max: 64}},
		Empty: page.Empty{Title: "Nothing was refused", Text: "A request that is refused appears here a moment later, with what was wrong."}}
	if v.route.Site == operators {
		l.Filters = append(l.Filters, page.Field{Name: "tenant", Label: "Account's id", Value: f.Tenant, Max: 36})
		l.Columns = append(l.Columns, page.Column{Name: "Account", Minor: true})
	}
	if v.can(identity.ExportPayments) {
		l.Files = exportLinks(v.requestsBase(), v.filterQuery("tenant", "status", "endpoint", "request"))
	}
	if l.Active {
		l.Empty = page.Empty{Title: "Nothing matches", Text: "No request that was looked at passes these filters.", Href: l.Clear, Do: "Clear the filters"}
	}
	if f.Before != "" {
		l.Prev = v.query("before", "")
	}
	switch {
	case found.More == "":
	case len(found.Requests) == pageRows:
		l.Next = v.query("before", found.More)
	default:
		l.Further, l.Shown = v.query("before", found.More), "10,000 requests were looked at; there are older ones"
	}
	for _, r := range found.Requests {
		cells := []templ.Component{page.Minute(r.At), page.Text(r.Method + " " + r.Endpoint), page.Mark(requestBadge(r)), page.Text(r.Message), page.Text(r.Origin)}
		if v.route.Site == operators {
			cells = append(cells, page.Text(v.nameOf(r.Tenant)))
		}
		l.Rows = append(l.Rows, page.Row{Href: v.requestsBase() + "/" + r.ID, Cells: cells})
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// requestFilter reads the filters of the list.
func (v *visit) requestFilter() (requestlog.Filter, error) {
	f := requestlog.Filter{Tenant: v.tenant.ID, Endpoint: v.param("endpoint"), Before: v.param("before"), Limit: pageRows}
	if v.route.Site == operators {
		f.Tenant = v.param("tenant")
	}
	if text := v.param("status"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 400 || status > 599 {
			return f, problem.Field("status", "must be a status from 400 to 599")
		}
		f.Status = status
	}
	return f, nil
}

// requests reads what passes the filters.
func (v *visit) requests(f requestlog.Filter) (found requestlog.Found, err error) {
	if id := v.param("request"); id != "" {
		found.Requests, err = v.console.Requests.ByRequestID(v.ctx, f.Tenant, id)
		return found, err
	}
	return v.console.Requests.List(v.ctx, f)
}

// nameOf is the name of a tenant for a list; one that cannot be read now is named by its id.
func (v *visit) nameOf(id string) string {
	if id == "" {
		return "no valid key"
	}
	t, err := v.console.Tenants.Get(v.ctx, id)
	if err != nil {
		return id
	}
	return t.Name
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

// requestPage is one of them.
func requestPage(v *visit) (answer, error) {
	r, err := v.console.Requests.Get(v.ctx, v.tenant.ID, v.r.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = errNoPage()
	}
	if err != nil {
		return answer{}, err
	}
	facts := []page.Fact{{Name: "Request id", Value: page.Copyable(r.RequestID)}, {Name: "When", Value: page.Time(r.At)}, {Name: "Endpoint", Value: page.ID(r.Method + " " + r.Endpoint)},
		{Name: "Answer", Value: page.Mark(requestBadge(r))}, {Name: "Message", Value: page.Text(r.Message)}}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		facts = append(facts, page.Fact{Name: "Field " + page.Visible(name), Value: page.Text(strings.Join(r.Fields[name], "; "))})
	}
	if v.route.Site == operators {
		facts = append(facts, page.Fact{Name: "Account", Value: page.Text(v.nameOf(r.Tenant))})
	}
	facts = append(facts, page.Fact{Name: "Key's id", Value: page.ID(r.Key)}, page.Fact{Name: "From", Value: page.ID(r.Origin)}, page.Fact{Name: "Took", Value: page.Text(r.Took.String())},
		page.Fact{Name: "What to do", Value: page.Anchor(guides.DocURL("", r.Code), "The page of "+r.Code)})
	return answer{title: "Request", body: templ.Join(page.Head("Request "+r.RequestID, "It was refused, or failed. Its body is not kept."), page.Panel("What happened", page.Facts(facts)))}, nil
}

// requestCalled is the page of the refused requests whose request id was searched for; empty: there is none, or they are
// not for the visitor.
func (v *visit) requestCalled(base, text string) (string, error) {
	text = strings.TrimSpace(text)
	if !v.can(identity.ReadRequests) || len(text) < 8 || len(text) > 64 {
		return "", nil
	}
	list, err := v.console.Requests.ByRequestID(v.ctx, v.tenant.ID, text)
	switch {
	case err != nil || len(list) == 0:
		return "", err
	case len(list) == 1:
		return base + "/requests/" + list[0].ID, nil
	}
	return base + "/requests?" + url.Values{"request": {text}}.Encode(), nil
}
