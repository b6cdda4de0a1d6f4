package approvals

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// By returns who acts on a change request: the visitor, from where, at the site of the page.
func By(v *console.Visit) changes.By {
	return changes.By{Visitor: v.Who, Place: v.Tenant.ID, Origin: v.Origin()}
}

// Path returns the path of the list of requests on the site of the visit.
func Path(v *console.Visit) string { return v.Base() + "/acts" }

// stateBadge returns the badge of a request's state.
func stateBadge(a changes.Request) page.Badge {
	switch a.State {
	case changes.Waiting:
		return page.Badge{Tone: page.Open, Word: "Awaiting approval"}
	case changes.Done:
		return page.Badge{Tone: page.Good, Word: "Applied"}
	case changes.Failed:
		return page.Badge{Tone: page.Bad, Word: "Failed"}
	}
	return page.Badge{Tone: page.Declined, Word: map[changes.State]string{changes.Rejected: "Rejected", changes.Withdrawn: "Withdrawn", changes.Expired: "Expired"}[a.State]}
}

// columns are the columns of change requests.
var columns = []console.Column[changes.Request]{
	console.Text("Change", "", func(a changes.Request) string { return a.Sentence }).Laid(console.Link),
	console.Shown("Status", func(a changes.Request) templ.Component { return page.Mark(stateBadge(a)) }),
	console.Text("Requested by", "", func(a changes.Request) string { return a.RequesterName }).Laid(console.Under),
	console.Time("Requested", "", func(a changes.Request) time.Time { return a.MadeAt }).Laid(console.Under),
}

// fateColumns are the columns of similar requests that were approved together.
var fateColumns = []console.Column[fate]{
	console.Text("Change", "", func(f fate) string { return f.request.Sentence }).Laid(console.Link),
	console.Shown("Status", func(f fate) templ.Component {
		if f.left != "" && f.request.State == changes.Waiting {
			return page.Mark(page.Badge{Tone: page.Open, Word: "Not approved"})
		}
		return page.Mark(stateBadge(f.request))
	}),
	console.Text("Reason", "", func(f fate) string { return f.left }).Laid(console.Under),
}

// Grid returns change requests as a table.
func Grid(v *console.Visit, list []changes.Request) page.Grid {
	return console.Grid(columns, list, func(a changes.Request) string { return Path(v) + "/" + a.ID })
}

// requestList lists the change requests of the place, filtered by state.
func (ps *Pages) requestList(v *console.Visit) (console.Answer, error) {
	f := changes.Filter{Place: v.Tenant.ID, State: changes.State(v.Param("state")), Before: v.Param("before"), Limit: console.PageRows + 1}
	list, err := ps.Changes.Store.List(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Approvals", Lead: "Changes that need approval, and their outcome.", Active: v.Narrowed("state"), Clear: Path(v),
		Filters: []page.Field{{Name: "state", Label: "Status", Value: string(f.State), Options: []page.Option{{Text: "All"}, {Value: string(changes.Waiting), Text: "Waiting"},
			{Value: string(changes.Done), Text: "Applied"}, {Value: string(changes.Rejected), Text: "Rejected"}, {Value: string(changes.Withdrawn), Text: "Withdrawn"},
			{Value: string(changes.Expired), Text: "Expired"}, {Value: string(changes.Failed), Text: "Failed"}}}},
		Empty: page.Empty{Title: "No requests", Text: "Changes that people request appear here."}}
	if l.Active > 0 {
		l.Empty = page.Empty{Title: "No results", Text: "No request has this status.", Href: l.Clear, Do: "Clear filters"}
	}
	l.Grid = Grid(v, console.Keyed(v, &l, "before", list, func(a changes.Request) string { return a.ID }))
	if v.R.URL.RawQuery != "" { // a filtered list and its further pages have no introduction
		return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
	}
	forYou, byYou, err := ps.waiting(v)
	return console.Answer{Title: l.Title, Body: requestsBody(ps.alikeLinks(v, forYou), Grid(v, forYou), Grid(v, byYou), l)}, err
}

// requestPage shows one request with the actions that the visitor may take.
func (ps *Pages) requestPage(v *console.Visit) (console.Answer, error) {
	return ps.request(v, rejectForm(v), "")
}

// may holds the actions that a visitor may take on a request, as far as the page can check them.
type may struct {
	approve, withdraw, again bool
	barred                   string // why the visitor, whose role approves such requests, may not approve this one
	note                     string // the remark that others will see next to the approval
}

func (ps *Pages) may(v *console.Visit, a changes.Request) (m may, err error) {
	rule, known := ps.Changes.Rule(a.Kind)
	if !known || a.State != changes.Waiting {
		return m, nil
	}
	own := a.Requester == v.Who.Person.ID
	m = may{withdraw: own, again: own && a.Needs == 0}
	if own || a.Needs == 0 || !v.Can(rule.Check) {
		return m, nil
	}
	outlook, err := ps.Changes.Store.Outlook(v.Ctx, By(v), rule, a)
	m.approve, m.note = outlook.Refused == nil, outlook.Note
	if outlook.Refused != nil {
		m.barred = problem.From(outlook.Refused).Message
	}
	return m, err
}

// requestPath returns the path of the page's request.
func requestPath(v *console.Visit) string { return Path(v) + "/" + v.R.PathValue("id") }

func rejectForm(v *console.Visit) page.Form {
	return page.Form{ID: "reject", Action: requestPath(v) + "/reject", Submit: "Reject request", Danger: true, Fields: []page.Field{
		{Name: "digest", Type: "hidden"}, {Name: "note", Label: "Reason for rejection", Max: 500, Required: true}}}
}

func (ps *Pages) request(v *console.Visit, reject page.Form, wrong string) (console.Answer, error) {
	seen, err := ps.Changes.Review(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	a := seen.Request
	a.Shown = seen.Shown
	reject.Fields[0].Value = a.Digest
	facts := []page.Fact{{Name: "Status", Value: page.Mark(stateBadge(a))}, {Name: "Reason", Value: page.Text(a.Reason)}, {Name: "Requested by", Value: page.Text(a.RequesterName)}, {Name: "Requested from", Value: page.Text(a.Origin)},
		{Name: "Requested", Value: page.Time(a.MadeAt)}, {Name: "Approvals", Value: page.Text(strconv.Itoa(a.Approvals()) + " of " + strconv.Itoa(a.Needs))}}
	facts = append(facts, ps.factsOf(v, seen)...)
	for _, c := range a.Checks {
		by := c.Name + ", " + page.When(c.At)
		if c.Note != "" {
			by += " (" + c.Note + ")"
		}
		if c.Lapsed {
			by += " (no longer counts: this person may not approve now)"
		}
		facts = append(facts, page.Fact{Name: "Approved by", Value: page.Text(by)})
	}
	if a.State == changes.Waiting {
		facts = append(facts, page.Fact{Name: "Expires", Value: page.Time(a.ExpiresAt)})
	} else {
		facts = append(facts, page.Fact{Name: "Ended", Value: page.Time(a.EndedAt)})
	}
	if text := map[string]string{changes.KindSendPayout: "Payout", changes.KindRefund: "Refund"}[a.Kind]; text != "" && v.Can(roles.ReadPayments) { // the id of the request is the id of the payment
		facts = append(facts, page.Fact{Name: text, Value: page.Anchor(v.Base()+"/payments/"+a.ID, "Open the "+strings.ToLower(text))})
	}
	if id := changes.BatchOf(a); id != "" && v.Route.Site == console.Tenants {
		facts = append(facts, page.Fact{Name: "Batch", Value: page.Anchor(v.Base()+"/batches/"+id, "Open the batch with all rows")})
	}
	if a.Note != "" {
		facts = append(facts, page.Fact{Name: "Note", Value: page.Text(a.Note)})
	}
	kept, err := ps.kept(v, a)
	if err != nil {
		return console.Answer{}, err
	}
	if rule, known := ps.Changes.Rule(a.Kind); known && a.State == changes.Done && a.Needs == 0 && !rule.Light && !v.Development() {
		facts = append(facts, page.Fact{Name: "Approved by", Value: page.Mark(page.Badge{Tone: page.Bad, Word: "nobody else: applied at once"})})
	}
	may, err := ps.may(v, a)
	if err != nil {
		return console.Answer{}, err
	}
	facts = append(facts, page.Fact{Name: "Digest", Value: page.ID(a.Digest)}, page.Fact{Name: "ID", Value: page.Copyable(a.ID)})
	return console.Answer{Title: "Change request", Wrong: v.R.Method != http.MethodGet, Body: requestBody(a, requestPath(v), may, kept, facts, reject, wrong)}, nil
}

// factsOf are the facts of a request: as its requester saw them and, while it waits, as they are now. Facts with a name are for the
// requester and those who may approve.
func (ps *Pages) factsOf(v *console.Visit, seen changes.Review) (list []page.Fact) {
	rule, _ := ps.Changes.Rule(seen.Kind)
	personal := seen.Requester == v.Who.Person.ID || v.Can(rule.Check)
	var warnings []page.Fact // warnings come first
	show := func(name string, f changes.Fact) {
		switch {
		case f.Personal && !personal:
		case f.Warning:
			warnings = append(warnings, page.Fact{Name: name, Value: page.Mark(page.Badge{Tone: page.Bad, Word: f.Value})})
		default:
			list = append(list, page.Fact{Name: name, Value: linked(v, f)})
		}
	}
	for _, f := range seen.Now.List {
		show(f.Name, f)
	}
	before := ", when it was requested"
	if seen.State != changes.Waiting {
		before = ""
	}
	for _, f := range seen.Missing() {
		show(f.Name+before, f)
	}
	if seen.Refused != nil {
		show("Warning", changes.Fact{Value: "It would be refused now: " + seen.Refused.Message, Warning: true})
	}
	return append(warnings, list...)
}

// linked returns the value of a fact, linked to its subject if the visitor may open it.
func linked(v *console.Visit, f changes.Fact) templ.Component {
	kind, id, _ := strings.Cut(f.Of, ":")
	switch {
	case kind == "payment" && v.Can(roles.ReadPayments):
		return page.Anchor(v.Base()+"/payments/"+id, f.Value)
	case kind == "account" && v.Route.Site == console.Operators && v.Can(roles.ReadTenants):
		return page.Anchor("/ops/tenants/"+id, f.Value)
	case kind == "provider" && v.Route.Site == console.Operators && v.Can(roles.ReadProviders):
		return page.Anchor("/ops/providers", f.Value)
	}
	return page.Text(f.Value)
}

// shownRefusals are the kinds of refusals that the page of a request shows.
var shownRefusals = []problem.Kind{problem.Duplicate, problem.InProgress, problem.Gone, problem.Forbidden, problem.Invalid, problem.InsufficientFunds, problem.InsufficientCredits}

// decide performs an action on the request of the page. If the domain refuses it, decide shows the request again.
func (ps *Pages) decide(v *console.Visit, do func(by changes.By, id, digest string) error) (console.Answer, error) {
	v.FormPage = requestPath(v)
	err := do(By(v), v.R.PathValue("id"), v.R.PostFormValue("digest"))
	var e *problem.Error
	switch {
	case !errors.As(err, &e) || e.Code == console.CodeStepUp || !slices.Contains(shownRefusals, e.Kind):
		return console.Answer{To: v.FormPage}, err
	case e.Kind == problem.Invalid:
		return ps.request(v, console.Faulty(rejectForm(v), err), "")
	}
	return ps.request(v, rejectForm(v), console.Sentence(e.Message))
}

func (ps *Pages) approveRequest(v *console.Visit) (console.Answer, error) {
	return ps.decide(v, func(by changes.By, id, digest string) error {
		_, err := ps.Changes.Approve(v.Ctx, by, id, digest)
		return err
	})
}

func (ps *Pages) rejectRequest(v *console.Visit) (console.Answer, error) {
	return ps.decide(v, func(by changes.By, id, digest string) error {
		_, err := ps.Changes.Reject(v.Ctx, by, id, digest, v.R.PostFormValue("note"))
		return err
	})
}

// resumeReject shows the request with the reason that the person entered before the code.
func (ps *Pages) resumeReject(v *console.Visit) (console.Answer, error) {
	reject := rejectForm(v)
	reject.Fields[1].Value = v.R.PostFormValue("note")
	a, err := ps.request(v, reject, "")
	a.Wrong = false
	return a, err
}

func (ps *Pages) withdrawRequest(v *console.Visit) (console.Answer, error) {
	return ps.decide(v, func(by changes.By, id, digest string) error {
		_, err := ps.Changes.Withdraw(v.Ctx, by, id, digest)
		return err
	})
}

// WaitingFor are the requests that wait about a tenant.
func (ps *Pages) WaitingFor(v *console.Visit, t tenant.Tenant) (page.Grid, error) {
	if !v.Can(roles.ReadChanges) {
		return page.Grid{}, nil
	}
	list, err := ps.Changes.Store.List(v.Ctx, changes.Filter{Tenant: t.ID, State: changes.Waiting, Limit: console.PageRows})
	return Grid(v, list), err
}

// Waiting returns the requests that wait for the visitor, and the visitor's own requests that wait for other people.
func (ps *Pages) Waiting(v *console.Visit) (forYou, byYou page.Grid, err error) {
	check, own, err := ps.waiting(v)
	return Grid(v, check), Grid(v, own), err
}

func (ps *Pages) waiting(v *console.Visit) (forYou, byYou []changes.Request, err error) {
	if !v.Can(roles.ReadChanges) {
		return nil, nil, nil
	}
	list, err := ps.Changes.Store.List(v.Ctx, changes.Filter{Place: v.Tenant.ID, State: changes.Waiting, Limit: console.PageRows})
	if err != nil {
		return nil, nil, err
	}
	for _, a := range list {
		m, err := ps.may(v, a)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case m.approve:
			forYou = append(forYou, a)
		case m.withdraw:
			byYou = append(byYou, a)
		}
	}
	return forYou, byYou, nil
}
