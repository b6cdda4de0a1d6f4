package settings

import (
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// shownAddresses is how many addresses are shown of those that were refused.
const shownAddresses = 10

var (
	keyColumns     = []page.Column{{Name: "Key"}, {Name: "State"}, {Name: "Whose", Minor: true}, {Name: "Scopes"}, {Name: "Made by", Minor: true}, {Name: "Made", Minor: true}, {Name: ""}}
	addressColumns = []page.Column{{Name: "Address"}, {Name: "Refused"}, {Name: ""}}
)

// accountBase is where the pages about an account begin, on either site.
func accountBase(v *console.Visit, t tenant.Tenant) string {
	if v.Route.Site == console.Tenants {
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
	may            func(p roles.Permission) bool
	changeSettings roles.Permission
	more           []page.Link // to the generated pages
}

// accessPage shows by what an account is reached: keys, addresses, the secret of webhooks, settings.
func (ps *Pages) accessPage(v *console.Visit) (console.Answer, error) {
	t, err := v.Subject()
	if err != nil {
		return console.Answer{}, err
	}
	a := accessOf{base: accountBase(v, t), may: v.Can, changeSettings: roles.ChangeTenants}
	if v.Route.Site == console.Tenants {
		a.changeSettings = roles.ChangeSettings
	}
	keys, err := ps.Access.Keys(v.Ctx, t.ID)
	if err != nil {
		return console.Answer{}, err
	}
	makers, err := ps.makers(v, t, keys)
	if err != nil {
		return console.Answer{}, err
	}
	for i := len(keys) - 1; i >= 0; i-- {
		a.keys = append(a.keys, keyRow(v, a.base, keys[i], makers[keys[i].Maker]))
	}
	list, err := ps.Access.PayoutIPs(v.Ctx, t.ID)
	if err != nil {
		return console.Answer{}, err
	}
	for _, p := range list {
		a.addresses = append(a.addresses, page.Fact{Name: "From", Value: page.ID(p.String())})
	}
	for _, s := range changes.Settings() {
		a.settings = append(a.settings, page.Fact{Name: s.Label, Value: page.Text(s.Of(t))})
	}
	a.settings = append(a.settings, page.Fact{Name: "Low-balance threshold", Value: page.Text(changes.Threshold(t))})
	for _, o := range ps.Approvals.GeneratedForms(v.PersonSite()) {
		if v.Can(o.May) {
			a.more = append(a.more, page.Link{Href: a.base + o.Path, Text: "Change: " + o.Title})
		}
	}
	a.refused, err = ps.refusedAddresses(v, t, a.base)
	return console.Answer{Title: "Keys and settings", Body: accessBody(t, a)}, err
}

// makers names the people who made keys of an account, and have seen their texts, by their ids. One who has no role there any
// more is called so: their keys are to be replaced.
func (ps *Pages) makers(v *console.Visit, t tenant.Tenant, keys []access.Key) (map[string]string, error) {
	names := map[string]string{"": "not known"}
	for _, k := range keys {
		if names[k.Maker] != "" {
			continue
		}
		list, err := ps.Identity.Members(v.Ctx, "", k.Maker, 1)
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
		case has(t.ID), has(roles.Installation) && v.Route.Site == console.Operators:
			names[k.Maker] = list[0].Email
		case has(roles.Installation):
			names[k.Maker] = "the operator"
		default:
			names[k.Maker] = list[0].Email + ", who has no role here any more"
		}
	}
	return names, nil
}

func keyRow(v *console.Visit, base string, k access.Key, maker string) page.Row {
	state := k.State(v.Now())
	tone, do := page.Declined, page.Text("")
	if state == "active" {
		tone = page.Good
		if v.Can(roles.ChangeKeys) {
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
func (ps *Pages) refusedAddresses(v *console.Visit, t tenant.Tenant, base string) (rows []page.Row, err error) {
	list, err := ps.Requests.Unlisted(v.Ctx, t.ID, shownAddresses)
	for _, r := range list {
		do := page.Text("")
		if v.Can(roles.ChangeAddresses) {
			do = page.Anchor(base+"/addresses?add="+url.QueryEscape(r.Origin), "Allow this")
		}
		rows = append(rows, page.Row{Cells: []templ.Component{page.ID(r.Origin), page.Time(r.At), do}})
	}
	return rows, err
}

// revealSecret shows the secret that signs an account's webhooks, after it is written down that it was.
func (ps *Pages) revealSecret(v *console.Visit) (console.Answer, error) {
	t, err := v.Subject()
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = accountBase(v, t) + "/access"
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	if err := v.Use(identity.Reveals, "webhook "+t.ID, v.Entry("webhook.reveal", t.ID, t.ID)); err != nil {
		return console.Answer{}, err
	}
	s, err := ps.Webhooks.Secret(v.Ctx, t.ID)
	facts := []page.Fact{{Name: "Signs now", Value: page.Copyable(s.Current)}}
	if s.Former != "" {
		facts = append(facts, page.Fact{Name: "Signs, too, until " + page.When(s.FormerUntil), Value: page.Copyable(s.Former)})
	}
	return console.Answer{Title: "Secret of webhooks", Body: page.Revealed("Secret of webhooks", "With it your receiver checks that a webhook is ours. That you saw it is in the audit log.", facts, v.FormPage)}, err
}

// ofKey is the lead of an order about a key of the account of the page.
func (ps *Pages) ofKey(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		t, k, err := ps.keyOfPage(v)
		return k.Hint + " of " + t.Name + " (" + string(t.Mode) + "), with " + scopeText(k.Scopes) + ". " + text, err
	}
}

func scopeText(scopes []access.Scope) string {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = string(s)
	}
	return strings.Join(texts, " ")
}

// memberOptions lists the people of an account, one of whom may have a key.
func (ps *Pages) memberOptions(v *console.Visit, t tenant.Tenant) ([]page.Option, error) {
	list, err := ps.Identity.Members(v.Ctx, t.ID, "", mostPeople)
	options := []page.Option{{Value: "", Text: "The account's own"}}
	for _, p := range list {
		if p.DisabledAt.IsZero() {
			options = append(options, page.Option{Value: p.ID, Text: p.Name + ", " + p.Email})
		}
	}
	return options, err
}

// keyOfPage finds the key that a page is about.
func (ps *Pages) keyOfPage(v *console.Visit) (t tenant.Tenant, k access.Key, err error) {
	if t, err = v.Subject(); err != nil {
		return t, k, err
	}
	keys, err := ps.Access.Keys(v.Ctx, t.ID)
	if err != nil {
		return t, k, err
	}
	i := slices.IndexFunc(keys, func(k access.Key) bool { return k.ID == v.R.PathValue("key") })
	if i < 0 {
		return t, k, console.ErrNoPage()
	}
	return t, keys[i], nil
}
