package ops

import (
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
)

// senderList lists the sender IDs that await review.
func (ps *Pages) senderList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Senders.Waiting(v.Ctx, console.PageRows)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Sender IDs", Lead: "Sender IDs that await review, oldest first.", Grid: console.Grid(senderColumns(v), list, nil),
		Empty: page.Empty{Title: "Nothing awaits review", Text: "Sender IDs that customers request appear here."}}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// senderColumns returns the columns of the sender IDs that await review.
func senderColumns(v *console.Visit) []console.Column[senderid.Sender] {
	type sender = senderid.Sender
	columns := []console.Column[sender]{
		console.Text("Sender ID", "", func(s sender) string { return s.Name }),
		console.Text("Account", "", func(s sender) string { return v.NameOf(s.Tenant) }),
		console.Text("Purpose", "", func(s sender) string { return s.Description }),
		console.Text("Class", "", func(s sender) string { return string(s.Class) }).Laid(console.Minor),
		console.Text("Similar to", "", func(s sender) string { return senderid.Near(s.Name) }).Laid(console.Under),
		console.Time("Requested", "", func(s sender) time.Time { return s.CreatedAt }).Laid(console.Under),
	}
	if v.Can(roles.ReviewSenders) {
		columns = append(columns, console.Shown("Actions", func(s sender) templ.Component {
			return page.Join(page.Anchor("/ops/senders/"+s.ID+"/approve", "Approve"), page.Text(" "), page.Anchor("/ops/senders/"+s.ID+"/reject", "Reject"))
		}))
	}
	return columns
}

// blockOrder blocks or unblocks an account.
func (ps *Pages) blockOrder() approvals.Form {
	return approvals.Form{Path: "/block", Title: "Block account", May: roles.BlockTenants, Submit: "Save", Danger: true, Inputs: []console.Input{{Name: changes.Blocked, Max: 3}},
		Lead: approvals.OfAccount("A blocked account can only query statuses. Payments in progress still settle."),
		Fields: func(v *console.Visit) ([]page.Field, error) {
			t, err := v.Subject()
			usual := "on"
			if t.Blocked {
				usual = "off"
			}
			return []page.Field{{Name: changes.Blocked, Label: "Access", Value: v.Given(changes.Blocked, usual), Options: []page.Option{{Value: "on", Text: "Blocked"}, {Value: "off", Text: "Allowed"}}}}, err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			t, err := v.Subject()
			if err != nil {
				return changes.Request{}, err
			}
			return ps.Approvals.Changes.SetTenant(v.Ctx, approvals.By(v), id, t.ID, map[string]string{changes.Blocked: v.R.PostFormValue(changes.Blocked)}, v.R.PostFormValue("reason"))
		}}
}

// newTenantOrder creates an account.
func (ps *Pages) newTenantOrder() approvals.Form {
	return approvals.Form{Path: "/tenants/new", Title: "Create account", May: roles.ChangeTenants, Submit: "Create account", Inputs: []console.Input{{Name: "name", Max: 120}, {Name: "mode", Max: 4}, {Name: "collections", Max: 3}},
		Lead: func(*console.Visit) (string, error) {
			return "The account gets a wallet and an SMS credit balance. Its mode cannot be changed later.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			return []page.Field{{Name: "name", Label: "Name", Value: v.Given("name", ""), Max: 120, Required: true},
				{Name: "mode", Label: "Mode", Value: v.Given("mode", "test"), Options: []page.Option{{Value: "test", Text: "Test"}, {Value: "live", Text: "Live"}}},
				{Name: "collections", Label: "Collections", Value: v.Given("collections", "off"), Options: []page.Option{{Value: "off", Text: "Off"}, {Value: "on", Text: "On"}}}}, nil
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			value := v.R.PostFormValue
			return ps.Approvals.Changes.CreateTenant(v.Ctx, approvals.By(v), id, "", strings.TrimSpace(value("name")), value("mode"), map[string]string{"collections": value("collections")}, value("reason"))
		}}
}

// senderOrders are the forms that approve or reject a sender ID.
func (ps *Pages) senderOrders() (orders []approvals.Form) {
	for _, to := range []senderid.Status{senderid.Approved, senderid.Rejected} {
		does := map[senderid.Status]string{senderid.Approved: "approve", senderid.Rejected: "reject"}[to]
		orders = append(orders, approvals.Form{Path: "/senders/{id}/" + does, Title: strings.ToUpper(does[:1]) + does[1:] + " sender ID", May: roles.ReviewSenders, Submit: strings.ToUpper(does[:1]) + does[1:] + " sender ID", Danger: to == senderid.Rejected,
			Lead: func(v *console.Visit) (string, error) {
				s, err := ps.Senders.Find(v.Ctx, v.R.PathValue("id"))
				if problem.Is(err, problem.NotFound) {
					err = console.ErrNoPage()
				}
				text := s.Name + ": " + s.Description
				if to == senderid.Rejected {
					text += ". The customer sees the reason."
				}
				return page.Visible(text), err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				return ps.Approvals.Changes.ReviewSender(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), to, v.R.PostFormValue("reason"))
			}})
	}
	return orders
}
