package ops

import (
	"strings"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
)

// senderList lists the sender IDs that wait for a review.
func (ps *Pages) senderList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Senders.Waiting(v.Ctx, console.PageRows)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Sender IDs", Lead: "Names that customers ask for and that wait for a review, the oldest first.", Columns: senderColumns, Empty: page.Empty{Title: "Nothing waits", Text: "Names that customers ask for appear here."}}
	for _, s := range list {
		do := page.Text("")
		if v.Can(roles.ReviewSenders) {
			do = page.Join(page.Anchor("/ops/senders/"+s.ID+"/approve", "Approve"), page.Text(" "), page.Anchor("/ops/senders/"+s.ID+"/reject", "Reject"))
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(s.Name), page.Text(v.NameOf(s.Tenant)), page.Text(s.Description), page.Text(senderid.Near(s.Name)), page.Time(s.CreatedAt), do}})
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// blockOrder blocks an account, or lets it go on.
func (ps *Pages) blockOrder() approvals.Form {
	return approvals.Form{Path: "/block", Title: "Block the account", May: roles.BlockTenants, Submit: "Change it", Danger: true, Inputs: []console.Input{{Name: changes.Blocked, Max: 3}},
		Lead: approvals.OfAccount("A blocked account is refused everything but status checks. What is under way is settled."),
		Fields: func(v *console.Visit) ([]page.Field, error) {
			t, err := v.Subject()
			usual := "on"
			if t.Blocked {
				usual = "off"
			}
			return []page.Field{{Name: changes.Blocked, Label: "Blocked", Value: v.Given(changes.Blocked, usual), Options: []page.Option{{Value: "on", Text: "Blocked"}, {Value: "off", Text: "Not blocked"}}}}, err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			t, err := v.Subject()
			if err != nil {
				return changes.Request{}, err
			}
			return ps.Approvals.Changes.SetTenant(v.Ctx, approvals.By(v), id, t.ID, map[string]string{changes.Blocked: v.R.PostFormValue(changes.Blocked)}, v.R.PostFormValue("reason"))
		}}
}

// newTenantOrder makes an account.
func (ps *Pages) newTenantOrder() approvals.Form {
	return approvals.Form{Path: "/tenants/new", Title: "Make an account", May: roles.ChangeTenants, Submit: "Make the account", Inputs: []console.Input{{Name: "name", Max: 120}, {Name: "mode", Max: 4}, {Name: "collections", Max: 3}},
		Lead: func(*console.Visit) (string, error) {
			return "With its wallet and its SMS credits. Its mode never changes.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			return []page.Field{{Name: "name", Label: "Name", Value: v.Given("name", ""), Max: 120, Required: true},
				{Name: "mode", Label: "Money", Value: v.Given("mode", "test"), Options: []page.Option{{Value: "test", Text: "Test"}, {Value: "live", Text: "Live"}}},
				{Name: "collections", Label: "Collections", Value: v.Given("collections", "off"), Options: []page.Option{{Value: "off", Text: "off"}, {Value: "on", Text: "on"}}}}, nil
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			value := v.R.PostFormValue
			return ps.Approvals.Changes.CreateTenant(v.Ctx, approvals.By(v), id, "", strings.TrimSpace(value("name")), value("mode"), map[string]string{"collections": value("collections")}, value("reason"))
		}}
}

// senderOrders are the two reviews of a sender ID.
func (ps *Pages) senderOrders() (orders []approvals.Form) {
	for _, to := range []senderid.Status{senderid.Approved, senderid.Rejected} {
		does := map[senderid.Status]string{senderid.Approved: "approve", senderid.Rejected: "reject"}[to]
		orders = append(orders, approvals.Form{Path: "/senders/{id}/" + does, Title: strings.ToUpper(does[:1]) + does[1:] + " a sender ID", May: roles.ReviewSenders, Submit: strings.ToUpper(does[:1]) + does[1:] + " it", Danger: to == senderid.Rejected,
			Lead: func(v *console.Visit) (string, error) {
				s, err := ps.Senders.Find(v.Ctx, v.R.PathValue("id"))
				if problem.Is(err, problem.NotFound) {
					err = console.ErrNoPage()
				}
				text := s.Name + ": " + s.Description
				if to == senderid.Rejected {
					text += ". The customer reads the reason."
				}
				return page.Visible(text), err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				return ps.Approvals.Changes.ReviewSender(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), to, v.R.PostFormValue("reason"))
			}})
	}
	return orders
}

var senderColumns = []page.Column{{Name: "Name"}, {Name: "Customer"}, {Name: "For"}, {Name: "Comes near", Minor: true}, {Name: "Asked", Minor: true}, {Name: ""}}
