package console

import (
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// shownAddresses is how many addresses are shown of those that were refused.
const shownAddresses = 10

var (
	keyColumns     = []page.Column{{Name: "Key"}, {Name: "State"}, {Name: "Whose", Minor: true}, {Name: "Scopes"}, {Name: "Made by", Minor: true}, {Name: "Made", Minor: true}, {Name: ""}}
	addressColumns = []page.Column{{Name: "Address"}, {Name: "Refused"}, {Name: ""}}
	senderColumns  = []page.Column{{Name: "Name"}, {Name: "Customer"}, {Name: "For"}, {Name: "Comes near", Minor: true}, {Name: "Asked", Minor: true}, {Name: ""}}
)

// accountBase is where the pages about an account begin, on either site.
func (v *visit) accountBase(t tenant.Tenant) string {
	if v.route.Site == tenants {
		return "/app/" + t.ID
	}
	return "/ops/tenants/" + t.ID
}

// accessOf is what the page of keys, addresses and settings shows.
type accessOf struct {
	base           string
	keys, refused  []page.Row
	addresses      []page.Fact
	settings       []page.Fact
	may            func(p identity.Permission) bool
	changeSettings identity.Permission
	more           []page.Link // to the generated pages
}

// accessPage shows by what an account is reached: keys, addresses, the secret of webhooks, settings.
func accessPage(v *visit) (answer, error) {
	t, err := v.subject()
	if err != nil {
		return answer{}, err
	}
	a := accessOf{base: v.accountBase(t), may: v.can, changeSettings: identity.MakeTenants}
	if v.route.Site == tenants {
		a.changeSettings = identity.MakeSettings
	}
	keys, err := v.console.Access.Keys(v.ctx, t.ID)
	if err != nil {
		return answer{}, err
	}
	makers, err := v.makers(t, keys)
	if err != nil {
		return answer{}, err
	}
	for i := len(keys) - 1; i >= 0; i-- {
		a.keys = append(a.keys, v.keyRow(a.base, keys[i], makers[keys[i].Maker]))
	}
	list, err := v.console.Access.PayoutIPs(v.ctx, t.ID)
	if err != nil {
		return answer{}, err
	}
	for _, p := range list {
		a.addresses = append(a.addresses, page.Fact{Name: "From", Value: page.ID(p.String())})
	}
	for _, s := range changes.Settings() {
		a.settings = append(a.settings, page.Fact{Name: s.Label, Value: page.Text(s.Of(t))})
	}
	a.settings = append(a.settings, page.Fact{Name: "Low-balance threshold", Value: page.Text(changes.Threshold(t))})
	for _, o := range generatedOrders(v.site()) {
		if v.can(o.may) {
			a.more = append(a.more, page.Link{Href: a.base + o.path, Text: "Change: " + o.title})
		}
	}
	a.refused, err = v.refusedAddresses(t, a.base)
	return answer{title: "Keys and settings", body: accessBody(t, a)}, err
}

// makers names the people who made keys of an account, and have seen their texts, by their ids. One who has no role there any
// more is called so: their keys are to be replaced.
func (v *visit) makers(t tenant.Tenant, keys []access.Key) (map[string]string, error) {
	names := map[string]string{"": "not known"}
	for _, k := range keys {
		if names[k.Maker] != "" {
			continue
		}
		list, err := v.console.Identity.Members(v.ctx, "", k.Maker, 1)
		if err != nil {
			return nil, err
		}
		names[k.Maker] = "not known"
		if len(list) == 0 {
			continue
		}
		has := func(place string) bool {
			return list[0].DisabledAt.IsZero() && slices.ContainsFunc(list[0].Memberships, func(m identity.Membership) bool { return m.Tenant == place })
		}
		switch {
		case has(t.ID), has(identity.Installation) && v.route.Site == operators:
			names[k.Maker] = list[0].Email
		case has(identity.Installation):
			names[k.Maker] = "the operator"
		default:
			names[k.Maker] = list[0].Email + ", who has no role here any more"
		}
	}
	return names, nil
}

func (v *visit) keyRow(base string, k access.Key, maker string) page.Row {
	state := k.State(v.console.Clock.Now())
	tone, do := page.Declined, page.Text("")
	if state == "active" {
		tone = page.Good
		if v.can(identity.MakeKeys) {
			here := base + "/keys/" + k.ID
			do = page.Join(page.Anchor(here+"/rotate", "Replace"), page.Text(" "), page.Anchor(here+"/daily", "Limit"), page.Text(" "), page.Anchor(here+"/revoke", "Revoke"))
		}
	}
	return page.Row{Cells: []templ.Component{page.ID(k.Hint), page.Mark(page.Badge{Tone: tone, Word: state}), page.Text(whose(k)), page.Text(scopeText(k.Scopes)), page.Text(maker), page.Time(k.CreatedAt), do}}
}

// whose is the person or the text by which people tell keys apart.
func whose(k access.Key) string {
	switch {
	case k.Label == "":
		return k.Member
	case k.Member == "":
		return k.Label
	}
	return k.Member + " (" + k.Label + ")"
}

// refusedAddresses are the addresses whose payouts were refused of late because they are not listed.
func (v *visit) refusedAddresses(t tenant.Tenant, base string) (rows []page.Row, err error) {
	list, err := v.console.Requests.Unlisted(v.ctx, t.ID, shownAddresses)
	for _, r := range list {
		do := page.Text("")
		if v.can(identity.MakeAddresses) {
			do = page.Anchor(base+"/addresses?add="+url.QueryEscape(r.Origin), "Allow this")
		}
		rows = append(rows, page.Row{Cells: []templ.Component{page.ID(r.Origin), page.Time(r.At), do}})
	}
	return rows, err
}

// revealSecret shows the secret that signs an account's webhooks, after it is written down that it was.
func revealSecret(v *visit) (answer, error) {
	t, err := v.subject()
	if err != nil {
		return answer{}, err
	}
	v.formPage = v.accountBase(t) + "/access"
	if err := v.console.Identity.NeedFactor(v.ctx, v.who); err != nil {
		return answer{}, err
	}
	if err := v.console.Identity.Use(v.ctx, identity.Reveals, v.who.Person.ID, "webhook "+t.ID, v.entry("webhook.reveal", t.ID, t.ID)); err != nil {
		return answer{}, err
	}
	s, err := v.console.Webhooks.Secret(v.ctx, t.ID)
	facts := []page.Fact{{Name: "Signs now", Value: page.Copyable(s.Current)}}
	if s.Former != "" {
		facts = append(facts, page.Fact{Name: "Signs, too, until " + page.When(s.FormerUntil), Value: page.Copyable(s.Former)})
	}
	return answer{title: "Secret of webhooks", body: secretBody("Secret of webhooks", "With it your receiver checks that a webhook is ours. That you saw it is in the audit log.", facts, v.formPage)}, err
}

// revealMade shows the maker of an act what it made: the text of a key, or a link.
func revealMade(v *visit) (answer, error) {
	v.formPage = v.actPath()
	text, err := v.console.Changes.Reveal(v.ctx, v.by(), changes.Secret, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	a, err := v.console.Changes.Get(v.ctx, v.tenant.ID, v.r.PathValue("id"))
	title, lead := "The API key", "It is not stored and will not be shown again. Copy it now to where it is used."
	if a.Kind == changes.KindInvite || a.Kind == changes.KindReset {
		text = v.console.PublicURL + "/first?t=" + text
		title, lead = "The link", "Send it to the person. It works once, for 24 hours, with a code that whoever approved this tells the person. It will not be shown again."
		if a.Needs == 0 {
			lead = "Send it to the person. It works once, for 24 hours, with the code that the page of the act shows you, too. It will not be shown again."
		}
	}
	return answer{title: title, body: secretBody(title, lead, []page.Fact{{Name: title, Value: page.Copyable(text)}}, v.formPage)}, err
}

// revealCode shows the approver of an invitation or a reset the code without which its link does not work.
func revealCode(v *visit) (answer, error) {
	v.formPage = v.actPath()
	code, err := v.console.Changes.Reveal(v.ctx, v.by(), changes.Code, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	const title = "The code"
	return answer{title: title, body: secretBody(title, "Tell it to the person yourself, such as by a call to a number that you know: not to who requested this. It will not be shown again.",
		[]page.Fact{{Name: title, Value: page.Copyable(code)}}, v.formPage)}, nil
}

// senderList lists the sender IDs that wait for a review.
func senderList(v *visit) (answer, error) {
	list, err := v.console.Senders.Waiting(v.ctx, pageRows)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Sender IDs", Lead: "Names that customers ask for and that wait for a review, the oldest first.", Columns: senderColumns, Empty: page.Empty{Title: "Nothing waits", Text: "Names that customers ask for appear here."}}
	for _, s := range list {
		do := page.Text("")
		if v.can(identity.ReviewSenders) {
			do = page.Join(page.Anchor("/ops/senders/"+s.ID+"/approve", "Approve"), page.Text(" "), page.Anchor("/ops/senders/"+s.ID+"/reject", "Reject"))
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(s.Name), page.Text(v.nameOf(s.Tenant)), page.Text(s.Description), page.Text(senderid.Near(s.Name)), page.Time(s.CreatedAt), do}})
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}
