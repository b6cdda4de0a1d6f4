package console

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// campaigns lists a tenant's campaigns and one-time passwords.
func campaigns(v *visit) (answer, error) {
	list, err := v.console.Messaging.Campaigns(v.ctx, v.tenant.ID, v.param("before"), pageRows+1)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Messages", Columns: campaignColumns(false),
		Empty: page.Empty{Title: "None yet", Text: "Campaigns and one-time passwords that you send appear here.", Href: "/docs/sms-otp", Do: "Read how"}}
	if v.can(identity.ExportPayments) {
		l.Files = exportLinks("/app/"+v.tenant.ID+"/messages", "")
	}
	list = v.campaignPages(&l, list)
	l.Rows = campaignRows(list, "/app/"+v.tenant.ID+"/messages/", nil)
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// allCampaigns lists what all tenants sent, or one of them.
func allCampaigns(v *visit) (answer, error) {
	of, err := v.tenantParam()
	if err != nil {
		return answer{}, err
	}
	list, err := v.console.Messaging.Campaigns(v.ctx, of, v.param("before"), pageRows+1)
	if err != nil {
		return answer{}, err
	}
	tenants, err := v.tenantField()
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Messages", Lead: "Campaigns and one-time passwords of all accounts, newest first.", Columns: campaignColumns(true),
		Filters: []page.Field{tenants}, Active: v.narrowed("tenant"), Clear: "/ops/messages",
		Empty: page.Empty{Title: "No messages yet", Text: "Campaigns and one-time passwords of all accounts appear here as they are accepted."}}
	if l.Active || v.narrowed("before") {
		l.Empty = page.Empty{Title: "Nothing matches", Text: "There is no message that passes these filters.", Href: "/ops/messages", Do: "Clear the filters"}
	}
	if v.can(identity.ExportPayments) {
		l.Files = exportLinks("/ops/messages", v.filterQuery("tenant"))
	}
	list = v.campaignPages(&l, list)
	names := map[string]string{}
	for _, c := range list {
		if names[c.Tenant] == "" {
			t, err := v.console.Tenants.Get(v.ctx, c.Tenant)
			if err != nil {
				return answer{}, err
			}
			names[c.Tenant] = t.Name
		}
	}
	l.Rows = campaignRows(list, "/ops/messages/", names)
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// campaignCalled is the page of the campaign whose id was searched for; empty: there is none, or it is not for the visitor.
func (v *visit) campaignCalled(base, text string) (string, error) {
	id, err := uuid.Parse(strings.TrimSpace(text))
	if err != nil || !v.can(identity.ReadMessages) {
		return "", nil
	}
	c, err := v.console.Messaging.CampaignOf(v.ctx, id.String())
	if problem.Is(err, problem.NotFound) || err == nil && v.route.Site == tenants && c.Tenant != v.tenant.ID {
		return "", nil
	}
	return base + "/messages/" + c.ID, err
}

// campaignPages adds the links of a list of which one row too many was read, and gives the rows of the page.
func (v *visit) campaignPages(l *page.List, list []messaging.Campaign) []messaging.Campaign {
	if v.param("before") != "" {
		l.Prev = v.query("before", "")
	}
	if len(list) <= pageRows {
		return list
	}
	l.Next = v.query("before", list[pageRows-1].ID)
	return list[:pageRows]
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
		rows[i] = page.Row{Href: base + c.ID, Cells: append(cells, page.Text(messageKinds[string(c.Kind)]), page.Text(c.Sender),
			page.Text(money.Grouped(strconv.FormatInt(c.Recipients, 10))), page.Text(money.Grouped(strconv.FormatInt(c.Cost(), 10))), page.Mark(worded(campaignBadges, string(c.Status))))}
	}
	return rows
}

// campaign is one of a tenant's campaigns.
func campaign(v *visit) (answer, error) { return v.campaignOf(v.tenant) }

// opsCampaign is a campaign of any tenant.
func opsCampaign(v *visit) (answer, error) {
	c, err := v.console.Messaging.CampaignOf(v.ctx, v.r.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = errNoPage()
	}
	if err != nil {
		return answer{}, err
	}
	t, err := v.console.Tenants.Get(v.ctx, c.Tenant)
	if err != nil {
		return answer{}, err
	}
	return v.campaignOf(t)
}

// campaignOf is the page of a campaign of a tenant, with what became of its messages.
func (v *visit) campaignOf(of tenant.Tenant) (answer, error) {
	number := int64(1)
	if text := v.param("page"); text != "" {
		var err error
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
			return answer{}, problem.Field("page", "must be a number from 1")
		}
	}
	found, err := v.console.Messaging.CampaignMessages(v.ctx, of.ID, v.r.PathValue("id"), number, pageRows)
	if problem.Is(err, problem.NotFound) {
		err = errNoPage()
	}
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Recipients", Count: strconv.FormatInt(found.Total, 10),
		Columns: []page.Column{{Name: "Number"}, {Name: "State"}, {Name: "Credits", Right: true, Minor: true}, {Name: "Submitted", Minor: true}, {Name: "Delivered", Minor: true}, {Name: "Why", Minor: true}},
		Empty:   page.Empty{Title: "Past the end", Text: "This campaign has fewer pages.", Href: v.query("page", ""), Do: "To the first page"}}
	for _, m := range found.Messages {
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(v.account(m.Recipient)), page.Mark(worded(messageBadges, string(m.Status))), page.Text(strconv.FormatInt(m.Credits, 10)),
			page.Time(m.SubmittedAt), page.Time(m.DeliveredAt), page.Text(messageWhy(m.Error))}})
	}
	if number > 1 {
		l.Prev = v.query("page", strconv.FormatInt(number-1, 10))
	}
	if number*pageRows < found.Total {
		l.Next = v.query("page", strconv.FormatInt(number+1, 10))
	}
	live, err := v.part("campaign", 5, campaignPage(v, of, found.Campaign, l))
	return answer{title: "Message " + found.Campaign.Sender, body: live}, err
}
