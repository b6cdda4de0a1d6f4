package settings

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// shownAddresses is the maximum number of rejected addresses on the page.
const shownAddresses = 10

// accountBase returns the prefix of the pages about an account on the visitor's site.
func accountBase(v *console.Visit, t tenant.Tenant) string {
	if v.Route.Site == console.Tenants {
		return "/app/" + t.ID
	}
	return "/ops/tenants/" + t.ID
}

// accessOf is the data of the page of keys and settings.
type accessOf struct {
	base           string
	keys, refused  page.Grid
	addresses      []page.Fact
	settings       []page.Fact
	may            func(p roles.Permission) bool
	changeSettings roles.Permission
	more           []page.Link // links to the generated pages
}

// accessPage shows the API keys, the IP allow-list, the webhook secret and the settings of an account.
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
	creators, err := ps.creators(v, t, keys)
	if err != nil {
		return console.Answer{}, err
	}
	slices.Reverse(keys)
	a.keys = console.Grid(keyColumns(v, a.base, creators), keys, nil)
	list, err := ps.Access.PayoutIPs(v.Ctx, t.ID)
	if err != nil {
		return console.Answer{}, err
	}
	for _, p := range list {
		a.addresses = append(a.addresses, page.Fact{Name: "Allowed", Value: page.ID(p.String())})
	}
	for _, s := range changes.Settings() {
		a.settings = append(a.settings, page.Fact{Name: s.Label, Value: page.Text(s.Of(t))})
	}
	a.settings = append(a.settings, page.Fact{Name: "Low-balance threshold", Value: page.Text(changes.Threshold(t))})
	for _, o := range ps.Approvals.GeneratedForms(v.PersonSite()) {
		if v.Can(o.May) {
			a.more = append(a.more, page.Link{Href: a.base + o.Path, Text: "Change " + strings.ToLower(o.Title[:1]) + o.Title[1:]})
		}
	}
	refused, err := ps.Requests.Unlisted(v.Ctx, t.ID, shownAddresses)
	a.refused = console.Grid(addressColumns(v, a.base), refused, nil)
	return console.Answer{Title: "Keys and settings", Body: accessBody(t, a)}, err
}

// creators returns the names of the people who created keys of an account, by id. It marks people who have lost their
// role there, because their keys should be replaced.
func (ps *Pages) creators(v *console.Visit, t tenant.Tenant, keys []access.Key) (map[string]string, error) {
	names := map[string]string{"": "unknown"}
	for _, k := range keys {
		if names[k.Creator] != "" {
			continue
		}
		list, err := ps.Identity.Members(v.Ctx, "", k.Creator, 1)
		if err != nil {
			return nil, err
		}
		names[k.Creator] = "unknown"
		if len(list) == 0 {
			continue
		}
		has := func(place string) bool {
			return list[0].DisabledAt.IsZero() && slices.ContainsFunc(list[0].Memberships, func(m identity.Membership) bool { return m.Tenant == place })
		}
		switch {
		case has(t.ID), has(roles.Installation) && v.Route.Site == console.Operators:
			names[k.Creator] = list[0].Email
		case has(roles.Installation):
			names[k.Creator] = "Operator"
		default:
			names[k.Creator] = list[0].Email + " (no longer has a role here)"
		}
	}
	return names, nil
}

// keyActive is the status of a key that works.
const keyActive = "active"

// keyColumns returns the columns of API keys. creators holds the names of the people who created them.
func keyColumns(v *console.Visit, base string, creators map[string]string) []console.Column[access.Key] {
	columns := []console.Column[access.Key]{
		console.ID("Key", "", func(k access.Key) string { return k.Hint }),
		console.Shown("Status", func(k access.Key) templ.Component {
			if state := k.State(v.Now()); state != keyActive {
				return page.Mark(page.Badge{Tone: page.Declined, Word: words.Capital(state)})
			}
			return page.Mark(page.Badge{Tone: page.Good, Word: "Active"})
		}),
		console.Text("Holder", "", whose).Laid(console.Under),
		console.Text("Scopes", "", func(k access.Key) string { return scopeText(k.Scopes) }),
		console.Text("Created by", "", func(k access.Key) string { return creators[k.Creator] }).Laid(console.Minor),
		console.Time("Created", "", func(k access.Key) time.Time { return k.CreatedAt }).Laid(console.Under),
	}
	if !v.Can(roles.ChangeKeys) {
		return columns
	}
	return append(columns, console.Shown("Actions", func(k access.Key) templ.Component {
		if k.State(v.Now()) != keyActive {
			return page.Text("")
		}
		here := base + "/keys/" + k.ID
		return page.Join(page.Anchor(here+"/rotate", "Replace"), page.Text(" "), page.Anchor(here+"/daily", "Set limit"), page.Text(" "), page.Anchor(here+"/revoke", "Revoke"))
	}))
}

// whose returns the holder of a key: a person, a label or both.
func whose(k access.Key) string {
	switch {
	case k.Label == "":
		return k.Member
	case k.Member == "":
		return k.Label
	}
	return k.Member + " (" + k.Label + ")"
}

// addressColumns returns the columns of IP addresses whose payouts were rejected lately because they are not on the allow-list.
func addressColumns(v *console.Visit, base string) []console.Column[requestlog.Request] {
	columns := []console.Column[requestlog.Request]{
		console.ID("IP address", "", func(r requestlog.Request) string { return r.Origin }),
		console.Time("Rejected", "", func(r requestlog.Request) time.Time { return r.At }),
	}
	if !v.Can(roles.ChangeAddresses) {
		return columns
	}
	return append(columns, console.Shown("Actions", func(r requestlog.Request) templ.Component {
		return page.Anchor(base+"/addresses?add="+url.QueryEscape(r.Origin), "Allow address")
	}))
}

// revealSecret shows the webhook secret of an account, after an entry in the audit log.
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
	facts := []page.Fact{{Name: "Current secret", Value: page.Copyable(s.Current)}}
	if s.Former != "" {
		facts = append(facts, page.Fact{Name: "Previous secret, valid until " + page.When(s.FormerUntil), Value: page.Copyable(s.Former)})
	}
	return console.Answer{Title: "Webhook secret", Body: page.Revealed("Webhook secret", "Your server uses it to verify the signatures of webhooks. The audit log records that you viewed it.", facts, v.FormPage)}, err
}

// ofKey returns the lead of a form about an API key.
func (ps *Pages) ofKey(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		t, k, err := ps.keyOfPage(v)
		return k.Hint + " of " + console.AccountName(t) + ". Scopes: " + scopeText(k.Scopes) + ". " + text, err
	}
}

func scopeText(scopes []access.Scope) string {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = string(s)
	}
	return strings.Join(texts, " ")
}

// memberOptions lists the people of an account as holders of a key.
func (ps *Pages) memberOptions(v *console.Visit, t tenant.Tenant) ([]page.Option, error) {
	list, err := ps.Identity.Members(v.Ctx, t.ID, "", mostPeople)
	options := []page.Option{{Value: "", Text: "No person: the key belongs to the account"}}
	for _, p := range list {
		if p.DisabledAt.IsZero() {
			options = append(options, page.Option{Value: p.ID, Text: p.Name + ", " + p.Email})
		}
	}
	return options, err
}

// keyOfPage returns the key of the page.
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
