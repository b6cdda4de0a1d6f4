package records

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// Campaigns lists the campaigns and one-time passwords of an account.
func (ps *Pages) Campaigns(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Messages", Empty: page.Empty{Title: "No messages yet", Text: "Campaigns and one-time passwords that you send appear here.", Href: "/docs/sms-otp", Do: "Read the guide"}}
	if v.Can(roles.SendCampaigns) && !v.Viewing {
		l.Actions = []page.Link{{Href: v.Base() + "/messages/new", Text: "New campaign"}}
	}
	return ps.campaigns(v, l, v.Tenant.ID)
}

// AllCampaigns lists the messages of all accounts, or of one of them.
func (ps *Pages) AllCampaigns(v *console.Visit) (console.Answer, error) {
	of, err := v.AccountParam()
	if err != nil {
		return console.Answer{}, err
	}
	tenants, err := v.AccountField()
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Messages", Lead: "Campaigns and one-time passwords of all accounts, newest first.", Filters: []page.Field{tenants}, Active: v.Narrowed("tenant"), Clear: "/ops/messages",
		Empty: page.Empty{Title: "No messages yet", Text: "Accepted campaigns and one-time passwords of all accounts appear here."}}
	if l.Active > 0 || v.Param("before") != "" {
		l.Empty = page.Empty{Title: "No results", Text: "No message matches these filters.", Href: "/ops/messages", Do: "Clear filters"}
	}
	return ps.campaigns(v, l, of)
}

// campaigns completes a list with the messages of an account, or of all accounts.
func (ps *Pages) campaigns(v *console.Visit, l page.List, of string) (console.Answer, error) {
	list, err := ps.Messaging.Campaigns(v.Ctx, of, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks(v.Base()+"/messages", v.FilterQuery("tenant"))
	}
	list = console.Keyed(v, &l, "before", list, func(c messaging.Campaign) string { return c.ID })
	var names map[string]string
	if v.Route.Site == console.Operators {
		if names, err = namesOf(ps, v, list, func(c messaging.Campaign) string { return c.Tenant }); err != nil {
			return console.Answer{}, err
		}
	}
	l.Grid = console.Grid(campaignColumns(names), list, func(c messaging.Campaign) string { return v.Base() + "/messages/" + c.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// campaignCalled returns the page of the campaign with the id in text. It is empty if there is none that the visitor may see.
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

// campaignColumns returns the columns of messages. names has the names of accounts by id. It is nil for a list of one
// account.
func campaignColumns(names map[string]string) []console.Column[messaging.Campaign] {
	type campaign = messaging.Campaign
	return []console.Column[campaign]{
		console.Time("Sent", "sent_at", func(c campaign) time.Time { return c.CreatedAt }).Laid(console.Under),
		console.Coded("Account", "tenant", func(c campaign) templ.Component { return page.Text(names[c.Tenant]) }, func(c campaign) string { return c.Tenant }).
			OnPage(names != nil).Laid(console.Minor),
		console.Coded("Kind", "kind", func(c campaign) templ.Component { return page.Text(words.MessageKinds[string(c.Kind)]) }, func(c campaign) string { return string(c.Kind) }).Laid(console.Under),
		console.Text("Sender ID", "sender", func(c campaign) string { return c.Sender }).Laid(console.Link),
		console.Count("Recipients", "recipients", func(c campaign) int64 { return c.Recipients }),
		console.Count("Credits", "credits", campaign.Cost).Laid(console.Minor),
		console.Coded("Status", "state", func(c campaign) templ.Component {
			return page.Mark(words.Worded(words.CampaignBadges, string(c.Status)))
		}, func(c campaign) string { return string(c.Status) }),
		console.Text("", "id", func(c campaign) string { return c.ID }),
	}
}

// Campaign shows one campaign. Campaigns of other accounts are a 404 on an account's site.
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

// campaignOf shows a campaign of an account, with the status of its messages.
func (ps *Pages) campaignOf(v *console.Visit, of tenant.Tenant) (console.Answer, error) {
	number, err := v.PageNumber(0)
	if err != nil {
		return console.Answer{}, err
	}
	found, err := ps.Messaging.CampaignMessages(v.Ctx, of.ID, v.R.PathValue("id"), int64(number), console.PageRows)
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Recipients", Count: page.Count(found.Total), Grid: console.Grid(messageColumns(v), found.Messages, nil),
		Empty: page.Empty{Title: "No such page", Text: "This campaign has fewer pages.", Href: v.Query("page", ""), Do: "Go to the first page"}}
	if number > 1 {
		l.Prev = v.Query("page", strconv.Itoa(number-1))
	}
	if int64(number)*console.PageRows < found.Total {
		l.Next = v.Query("page", strconv.Itoa(number+1))
	}
	live, err := v.Part("campaign", 5, campaignPage(v, of, found.Campaign, l))
	return console.Answer{Title: words.MessageKinds[string(found.Campaign.Kind)] + " from " + found.Campaign.Sender, Body: live}, err
}

// messageColumns returns the columns of a campaign's recipients.
func messageColumns(v *console.Visit) []console.Column[messaging.Message] {
	type message = messaging.Message
	return []console.Column[message]{
		console.Text("Number", "", func(m message) string { return Account(v, m.Recipient) }),
		console.Shown("Status", func(m message) templ.Component { return page.Mark(words.Worded(words.MessageBadges, string(m.Status))) }),
		console.Count("Credits", "", func(m message) int64 { return m.Credits }).Laid(console.Minor),
		console.Time("Submitted", "", func(m message) time.Time { return m.SubmittedAt }).Laid(console.Minor),
		console.Time("Delivered", "", func(m message) time.Time { return m.DeliveredAt }).Laid(console.Under),
		console.Text("Reason", "", func(m message) string { return words.MessageWhy(m.Error) }).Laid(console.Under),
	}
}

// StopForm returns the form that stops a campaign, on either site.
func (ps *Pages) StopForm() approvals.Form {
	return approvals.Form{Path: "/messages/{id}/stop", Title: "Stop campaign", May: roles.StopCampaigns, Submit: "Stop campaign", Danger: true,
		Lead: func(v *console.Visit) (string, error) {
			c, err := ps.Messaging.CampaignOf(v.Ctx, v.R.PathValue("id"))
			if problem.Is(err, problem.NotFound) || err == nil && v.Route.Site == console.Tenants && c.Tenant != v.Tenant.ID {
				err = console.ErrNoPage()
			}
			return "From " + c.Sender + ". Unsent messages are cancelled and their credits returned. Sent messages cannot be recalled.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.StopCampaign(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}
