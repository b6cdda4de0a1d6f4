package records

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// Campaigns lists a tenant's campaigns and one-time passwords.
func (ps *Pages) Campaigns(v *console.Visit) (console.Answer, error) {
	list, err := ps.Messaging.Campaigns(v.Ctx, v.Tenant.ID, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Messages", Columns: campaignColumns(false),
		Empty: page.Empty{Title: "None yet", Text: "Campaigns and one-time passwords that you send appear here.", Href: "/docs/sms-otp", Do: "Read how"}}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks("/app/"+v.Tenant.ID+"/messages", "")
	}
	list = campaignPages(v, &l, list)
	l.Rows = campaignRows(list, "/app/"+v.Tenant.ID+"/messages/", nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// AllCampaigns lists what all tenants sent, or one of them.
func (ps *Pages) AllCampaigns(v *console.Visit) (console.Answer, error) {
	of, err := ps.TenantParam(v)
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Messaging.Campaigns(v.Ctx, of, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	tenants, err := ps.TenantField(v)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Messages", Lead: "Campaigns and one-time passwords of all accounts, newest first.", Columns: campaignColumns(true),
		Filters: []page.Field{tenants}, Active: v.Narrowed("tenant"), Clear: "/ops/messages",
		Empty: page.Empty{Title: "No messages yet", Text: "Campaigns and one-time passwords of all accounts appear here as they are accepted."}}
	if l.Active || v.Narrowed("before") {
		l.Empty = page.Empty{Title: "Nothing matches", Text: "There is no message that passes these filters.", Href: "/ops/messages", Do: "Clear the filters"}
	}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks("/ops/messages", v.FilterQuery("tenant"))
	}
	list = campaignPages(v, &l, list)
	names := map[string]string{}
	for _, c := range list {
		if names[c.Tenant] == "" {
			t, err := ps.Tenants.Get(v.Ctx, c.Tenant)
			if err != nil {
				return console.Answer{}, err
			}
			names[c.Tenant] = t.Name
		}
	}
	l.Rows = campaignRows(list, "/ops/messages/", names)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// campaignCalled is the page of the campaign whose id was searched for; empty: there is none, or it is not for the visitor.
func (ps *Pages) campaignCalled(v *console.Visit, base, text string) (string, error) {
	id, err := uuid.Parse(strings.TrimSpace(text))
	if err != nil || !v.Can(roles.ReadMessages) {
		return "", nil
	}
	c, err := ps.Messaging.CampaignOf(v.Ctx, id.String())
	if problem.Is(err, problem.NotFound) || err == nil && v.Route.Site == console.Tenants && c.Tenant != v.Tenant.ID {
		return "", nil
	}
	return base + "/messages/" + c.ID, err
}

// campaignPages adds the links of a list of which one row too many was read, and gives the rows of the page.
func campaignPages(v *console.Visit, l *page.List, list []messaging.Campaign) []messaging.Campaign {
	if v.Param("before") != "" {
		l.Prev = v.Query("before", "")
	}
	if len(list) <= console.PageRows {
		return list
	}
	l.Next = v.Query("before", list[console.PageRows-1].ID)
	return list[:console.PageRows]
}

// campaignColumns are the columns of campaignRows.
func campaignColumns(all bool) []page.Column {
	columns := []page.Column{{Name: "Sent"}}
	if all {
		columns = append(columns, page.Column{Name: "Account", Minor: true})
	}
	return append(columns, page.Column{Name: "Kind", Minor: true}, page.Column{Name: "Sender"}, page.Column{Name: "Recipients", Right: true},
		page.Column{Name: "Credits", Right: true, Minor: true}, page.Column{Name: "State"})
}

// campaignRows are campaigns as rows of a table. With names the second column says whose they are.
func campaignRows(list []messaging.Campaign, base string, names map[string]string) []page.Row {
	rows := make([]page.Row, len(list))
	for i, c := range list {
		cells := []templ.Component{page.Text(page.When(c.CreatedAt))}
		if names != nil {
			cells = append(cells, page.Text(names[c.Tenant]))
		}
		rows[i] = page.Row{Href: base + c.ID, Cells: append(cells, page.Text(words.MessageKinds[string(c.Kind)]), page.Text(c.Sender),
			page.Text(money.Grouped(strconv.FormatInt(c.Recipients, 10))), page.Text(money.Grouped(strconv.FormatInt(c.Cost(), 10))), page.Mark(words.Worded(words.CampaignBadges, string(c.Status))))}
	}
	return rows
}

// Campaign is the page of one campaign. On an account's site another account's campaign does not exist.
func (ps *Pages) Campaign(v *console.Visit) (console.Answer, error) {
	if v.Route.Site == console.Tenants {
		return ps.campaignOf(v, v.Tenant)
	}
	c, err := ps.Messaging.CampaignOf(v.Ctx, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	t, err := ps.Tenants.Get(v.Ctx, c.Tenant)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.campaignOf(v, t)
}

// campaignOf is the page of a campaign of a tenant, with what became of its messages.
func (ps *Pages) campaignOf(v *console.Visit, of tenant.Tenant) (console.Answer, error) {
	number := int64(1)
	if text := v.Param("page"); text != "" {
		var err error
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
			return console.Answer{}, problem.Field("page", "must be a number from 1")
		}
	}
	found, err := ps.Messaging.CampaignMessages(v.Ctx, of.ID, v.R.PathValue("id"), number, console.PageRows)
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Recipients", Count: strconv.FormatInt(found.Total, 10),
		Columns: []page.Column{{Name: "Number"}, {Name: "State"}, {Name: "Credits", Right: true, Minor: true}, {Name: "Submitted", Minor: true}, {Name: "Delivered", Minor: true}, {Name: "Why", Minor: true}},
		Empty:   page.Empty{Title: "Past the end", Text: "This campaign has fewer pages.", Href: v.Query("page", ""), Do: "To the first page"}}
	for _, m := range found.Messages {
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(Account(v, m.Recipient)), page.Mark(words.Worded(words.MessageBadges, string(m.Status))), page.Text(strconv.FormatInt(m.Credits, 10)),
			page.Time(m.SubmittedAt), page.Time(m.DeliveredAt), page.Text(words.MessageWhy(m.Error))}})
	}
	if number > 1 {
		l.Prev = v.Query("page", strconv.FormatInt(number-1, 10))
	}
	if number*console.PageRows < found.Total {
		l.Next = v.Query("page", strconv.FormatInt(number+1, 10))
	}
	live, err := v.Part("campaign", 5, campaignPage(v, of, found.Campaign, l))
	return console.Answer{Title: "Message " + found.Campaign.Sender, Body: live}, err
}

// StopForm ends a campaign, on either site.
func (ps *Pages) StopForm() approvals.Form {
	return approvals.Form{Path: "/messages/{id}/stop", Title: "Stop the campaign", May: roles.StopCampaigns, Submit: "Stop it", Danger: true,
		Lead: func(v *console.Visit) (string, error) {
			c, err := ps.Messaging.CampaignOf(v.Ctx, v.R.PathValue("id"))
			if problem.Is(err, problem.NotFound) || err == nil && v.Route.Site == console.Tenants && c.Tenant != v.Tenant.ID {
				err = console.ErrNoPage()
			}
			return "From " + c.Sender + ". What is unsent fails, and its credits go back. What was sent stays sent.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.StopCampaign(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}
