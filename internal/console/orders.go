package console

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// asking is a form by which somebody asks for an act. Its page asks for the second factor first; its form has the id of the
// act, so that one that is sent twice makes one act.
type asking struct {
	path   string // under the base of its site
	title  string
	may    identity.Permission
	inputs []Input
	submit string
	danger bool
	lead   func(v *visit) (string, error)
	fields func(v *visit) ([]page.Field, error)
	ask    func(v *visit, id string) (changes.Request, error)
}

// routes are the page of an order and what its form sends.
func (o asking) routes(base string) []Route {
	inputs := append([]Input{{"id", 36}, {"reason", 500}}, o.inputs...)
	return []Route{
		{Method: http.MethodGet, Path: base + o.path, Permission: o.may, Inputs: o.inputs, handle: o.page},
		{Method: http.MethodPost, Path: base + o.path, Permission: o.may, Inputs: inputs, handle: o.do},
	}
}

func (o asking) form(v *visit, id, reason string) (page.Form, string, error) {
	f := page.Form{ID: "order", Action: v.r.URL.EscapedPath(), Submit: o.submit, Danger: o.danger, Fields: []page.Field{{Name: "id", Type: "hidden", Value: id}}}
	lead, err := o.lead(v)
	if err != nil {
		return f, "", err
	}
	if o.fields != nil {
		more, err := o.fields(v)
		if err != nil {
			return f, "", err
		}
		f.Fields = append(f.Fields, more...)
	}
	f.Fields = append(f.Fields, page.Field{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true, Hint: "For whoever checks it, and for the audit log."})
	return f, lead, nil
}

func (o asking) page(v *visit) (answer, error) {
	f, lead, err := o.form(v, uuid.Must(uuid.NewV7()).String(), "")
	if err != nil {
		return answer{}, err
	}
	if err := v.console.Identity.NeedFactor(v.ctx, v.who); err != nil {
		return answer{}, err
	}
	return answer{title: o.title, body: orderBody(o.title, lead, f)}, nil
}

func (o asking) do(v *visit) (answer, error) {
	v.formPage = v.r.URL.EscapedPath()
	f, lead, err := o.form(v, v.r.PostFormValue("id"), v.r.PostFormValue("reason"))
	if err != nil {
		return answer{}, err
	}
	act, err := o.ask(v, v.r.PostFormValue("id"))
	var e *problem.Error
	if errors.As(err, &e) && e.Code != codeStepUp && slices.Contains(shown, e.Kind) {
		return answer{title: o.title, wrong: true, body: orderBody(o.title, lead, faulty(f, err))}, nil
	}
	return answer{to: v.actsPath() + "/" + act.ID}, err
}

// given is what the form has for a name, or what the address has; usual where neither has any.
func (v *visit) given(name, usual string) string {
	if v.r.Method == http.MethodPost {
		return v.r.PostFormValue(name)
	}
	if text := v.param(name); text != "" {
		return text
	}
	return usual
}

// subject is the tenant that a page of either site is about.
func (v *visit) subject() (tenant.Tenant, error) {
	if v.route.Site == tenants {
		return v.tenant, nil
	}
	return v.about()
}

// ofAccount is the lead of an order about the account of the page.
func ofAccount(text string) func(v *visit) (string, error) {
	return func(v *visit) (string, error) {
		t, err := v.subject()
		return "Of " + t.Name + " (" + string(t.Mode) + "). " + text, err
	}
}

// ofKey is the lead of an order about a key of the account of the page.
func ofKey(text string) func(v *visit) (string, error) {
	return func(v *visit) (string, error) {
		t, k, err := v.keyOfPage()
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
func (v *visit) memberOptions(t tenant.Tenant) ([]page.Option, error) {
	list, err := v.console.Identity.Members(v.ctx, t.ID, "", mostPeople)
	options := []page.Option{{Value: "", Text: "The account's own"}}
	for _, p := range list {
		if p.DisabledAt.IsZero() {
			options = append(options, page.Option{Value: p.ID, Text: p.Name + ", " + p.Email})
		}
	}
	return options, err
}

// keyOfPage finds the key that a page is about.
func (v *visit) keyOfPage() (t tenant.Tenant, k access.Key, err error) {
	if t, err = v.subject(); err != nil {
		return t, k, err
	}
	keys, err := v.console.Access.Keys(v.ctx, t.ID)
	if err != nil {
		return t, k, err
	}
	i := slices.IndexFunc(keys, func(k access.Key) bool { return k.ID == v.r.PathValue("key") })
	if i < 0 {
		return t, k, errNoPage()
	}
	return t, keys[i], nil
}

// amountOf reads an amount of the form that may be absent.
func (v *visit) amountOf(name string) (money.Pesewas, error) {
	text := v.r.PostFormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := money.Parse(text)
	if errors.Is(err, money.ErrRange) {
		return 0, problem.Field(name, err.Error())
	}
	if err != nil || n < 0 {
		return 0, problem.Field(name, "must be an amount, such as 1250.00")
	}
	return n, nil
}

// wholeOf reads a whole number of the form that may be absent.
func (v *visit) wholeOf(name string, most int) (int, error) {
	text := v.r.PostFormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, problem.Field(name, "must be a whole number from 0 to "+strconv.Itoa(most))
	}
	return n, nil
}

// accountOrders are those about an account, on both sites.
func accountOrders() []asking {
	day := 24 * time.Hour
	return []asking{
		{path: "/keys/new", title: "Make an API key", may: identity.MakeKeys, submit: "Make the key", inputs: []Input{{"member", 80}, {"label", 80}, {"scopes", 200}, {"days", 4}, {"daily", 20}},
			lead: ofAccount("Its text is shown once, to you, when it is made."),
			fields: func(v *visit) ([]page.Field, error) {
				t, err := v.subject()
				if err != nil {
					return nil, err
				}
				members, err := v.memberOptions(t)
				may := scopeText(changes.ScopesOf(v.site(), v.role, t.Mode))
				return []page.Field{{Name: "scopes", Label: "Scopes", Value: v.given("scopes", "read collect"), Required: true, Hint: "With spaces between. You may give: " + may + "."},
					{Name: "member", Label: "Whose it is", Value: v.given("member", ""), Options: members, Hint: "Choose the person who will have it. They approve no payout that it asks for."},
					{Name: "label", Label: "Label", Value: v.given("label", ""), Max: 80, Hint: "A program or a place, such as Accounts server. It names nobody."},
					{Name: "days", Label: "Works for days", Value: v.given("days", ""), Max: 4, Hint: "Empty: without end."},
					{Name: "daily", Label: "Spends in a day at most", Value: v.given("daily", ""), Max: 20, Hint: "In cedis; empty: all that is there."}}, err
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				t, err := v.subject()
				if err != nil {
					return changes.Request{}, err
				}
				o := changes.KeyOrder{Member: v.r.PostFormValue("member"), Label: v.r.PostFormValue("label")}
				for _, s := range strings.Fields(v.r.PostFormValue("scopes")) {
					o.Scopes = append(o.Scopes, access.Scope(s))
				}
				if len(o.Scopes) == 0 {
					return changes.Request{}, problem.Field("scopes", "are required")
				}
				days, err := v.wholeOf("days", 3650)
				if err != nil {
					return changes.Request{}, err
				}
				o.Expiry = time.Duration(days) * day
				if o.Daily, err = v.amountOf("daily"); err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.CreateKey(v.ctx, v.by(), id, t.ID, o, v.r.PostFormValue("reason"))
			}},
		{path: "/keys/{key}/rotate", title: "Replace an API key", may: identity.MakeKeys, submit: "Replace the key", inputs: []Input{{"hours", 4}},
			lead: ofKey("The new one has the same rights; its text is shown once, to you."),
			fields: func(v *visit) ([]page.Field, error) {
				return []page.Field{{Name: "hours", Label: "The old one works for hours more", Value: v.given("hours", "24"), Max: 4, Hint: "At most 168."}}, nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				t, k, err := v.keyOfPage()
				if err != nil {
					return changes.Request{}, err
				}
				hours, err := v.wholeOf("hours", 168)
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.RotateKey(v.ctx, v.by(), id, t.ID, k.ID, time.Duration(hours)*time.Hour, v.r.PostFormValue("reason"))
			}},
		{path: "/keys/{key}/daily", title: "What an API key may spend", may: identity.MakeKeys, submit: "Change it", inputs: []Input{{"daily", 20}},
			lead: ofKey("With charges, in a day, in force within a second."),
			fields: func(v *visit) ([]page.Field, error) {
				_, k, err := v.keyOfPage()
				usual := ""
				if k.Daily > 0 {
					usual = k.Daily.String()
				}
				return []page.Field{{Name: "daily", Label: "Spends in a day at most", Value: v.given("daily", usual), Max: 20, Hint: "In cedis; empty: all that is there."}}, err
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				t, k, err := v.keyOfPage()
				if err != nil {
					return changes.Request{}, err
				}
				daily, err := v.amountOf("daily")
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.SetKey(v.ctx, v.by(), id, t.ID, k.ID, daily, v.r.PostFormValue("reason"))
			}},
		{path: "/keys/{key}/revoke", title: "Revoke an API key", may: identity.MakeKeys, submit: "Revoke the key", danger: true, lead: ofKey("It stops working within a second, for good."),
			ask: func(v *visit, id string) (changes.Request, error) {
				t, k, err := v.keyOfPage()
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.RevokeKey(v.ctx, v.by(), id, t.ID, k.ID, v.r.PostFormValue("reason"))
			}},
		{path: "/addresses", title: "Addresses of payouts", may: identity.MakeAddresses, submit: "Change the addresses", inputs: []Input{{"add", 60}, {changes.PayoutIPs, 4000}},
			lead: ofAccount("Payouts are taken from these addresses alone; without any, none is taken."),
			fields: func(v *visit) ([]page.Field, error) {
				t, err := v.subject()
				if err != nil {
					return nil, err
				}
				list, err := v.console.Access.PayoutIPs(v.ctx, t.ID)
				texts := make([]string, len(list))
				for i, p := range list {
					texts[i] = p.String()
				}
				usual := strings.Join(texts, " ")
				if add := v.param("add"); add != "" && v.r.Method == http.MethodGet {
					usual = strings.TrimSpace(usual + " " + add)
				}
				return []page.Field{{Name: changes.PayoutIPs, Label: "Addresses and ranges", Value: v.given(changes.PayoutIPs, usual), Max: 4000, Hint: "Such as 192.0.2.7 or 198.51.100.0/24, with spaces between. This is the whole list."}}, err
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				t, err := v.subject()
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.SetTenant(v.ctx, v.by(), id, t.ID, map[string]string{changes.PayoutIPs: v.r.PostFormValue(changes.PayoutIPs)}, v.r.PostFormValue("reason"))
			}},
		{path: "/secret/rotate", title: "Change the secret of webhooks", may: identity.MakeKeys, submit: "Change the secret", danger: true,
			lead: ofAccount("The one before signs beside the new one for a day. Take the new one into your receiver within it."),
			ask: func(v *visit, id string) (changes.Request, error) {
				t, err := v.subject()
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.RotateSecret(v.ctx, v.by(), id, t.ID, v.r.PostFormValue("reason"))
			}},
	}
}

// templated are the kinds whose pages say more than their fields do.
var templated = []string{changes.KindFund, changes.KindAdjust, changes.KindTransfer, changes.KindRecover, changes.KindAddFloat, changes.KindSellCredits, changes.KindRefundCredits,
	changes.KindFees, changes.KindRoute, changes.KindCreateSender, changes.KindReopen, changes.KindPolicy, changes.KindTenant, changes.KindBlock, changes.KindSettings, changes.KindAddresses,
	changes.KindCreateKey, changes.KindRotateKey, changes.KindRevokeKey, changes.KindSetKey, changes.KindRotateSecret, changes.KindInvite, changes.KindRole}

// generatedOrders are the pages of kinds without a template that are about an account, made from their fields.
func generatedOrders(at identity.Site) (orders []asking) {
	for _, form := range changes.Forms() {
		may := func(r identity.Role) bool { return identity.Can(at, r, form.Request) }
		if slices.Contains(templated, form.Kind) || !form.About() || !slices.ContainsFunc(identity.Roles(at), may) {
			continue
		}
		orders = append(orders, generated(form))
	}
	return orders
}

// generated is the page of a kind that is about an account.
func generated(form changes.Form) asking {
	o := asking{path: "/changes/" + form.Kind, title: form.Title, may: form.Request, submit: "Request the change", lead: ofAccount("")}
	var own []changes.Field
	for _, f := range form.Fields {
		if f.Name != changes.FieldTenant {
			own = append(own, f)
			o.inputs = append(o.inputs, Input{f.Name, f.Max})
		}
	}
	o.fields = func(v *visit) (fields []page.Field, _ error) {
		for _, f := range own {
			field := page.Field{Name: f.Name, Label: f.Label, Hint: f.Hint, Value: v.given(f.Name, ""), Max: f.Max, Required: f.Required}
			for _, option := range f.Options {
				field.Options = append(field.Options, page.Option{Value: option, Text: option})
			}
			fields = append(fields, field)
		}
		return fields, nil
	}
	o.ask = func(v *visit, id string) (changes.Request, error) {
		t, err := v.subject()
		if err != nil {
			return changes.Request{}, err
		}
		values := changes.Values{changes.FieldTenant: t.ID}
		for _, f := range own {
			values[f.Name] = strings.TrimSpace(v.r.PostFormValue(f.Name))
		}
		return v.console.Changes.Do(v.ctx, v.by(), form.Kind, id, values, v.r.PostFormValue("reason"))
	}
	return o
}

// settingsOrder changes settings of an account: all of them, or its own.
func settingsOrder(may identity.Permission, own bool) asking {
	o := asking{path: "/settings", title: "Settings", may: may, submit: "Change the settings", lead: ofAccount("What you leave as it is stays as it is.")}
	var settings []changes.Setting
	for _, s := range changes.Settings() {
		if s.Name != changes.Blocked && (s.Own || !own) {
			settings = append(settings, s)
			o.inputs = append(o.inputs, Input{s.Name, 120})
		}
	}
	o.fields = func(v *visit) (fields []page.Field, err error) {
		t, err := v.subject()
		for _, s := range settings {
			f := page.Field{Name: s.Name, Label: s.Label, Value: v.given(s.Name, s.Of(t)), Max: 120}
			for _, option := range s.Options {
				f.Options = append(f.Options, page.Option{Value: option, Text: option})
			}
			fields = append(fields, f)
		}
		return fields, err
	}
	o.ask = func(v *visit, id string) (changes.Request, error) {
		t, err := v.subject()
		if err != nil {
			return changes.Request{}, err
		}
		values := map[string]string{}
		for _, s := range settings {
			if v.r.PostForm.Has(s.Name) {
				values[s.Name] = v.r.PostFormValue(s.Name)
			}
		}
		return v.console.Changes.SetTenant(v.ctx, v.by(), id, t.ID, values, v.r.PostFormValue("reason"))
	}
	return o
}

// blockOrder blocks an account, or lets it go on.
func blockOrder() asking {
	return asking{path: "/block", title: "Block the account", may: identity.BlockTenants, submit: "Change it", danger: true, inputs: []Input{{changes.Blocked, 3}},
		lead: ofAccount("A blocked account is refused everything but status checks. What is under way is settled."),
		fields: func(v *visit) ([]page.Field, error) {
			t, err := v.subject()
			usual := "on"
			if t.Blocked {
				usual = "off"
			}
			return []page.Field{{Name: changes.Blocked, Label: "Blocked", Value: v.given(changes.Blocked, usual), Options: []page.Option{{Value: "on", Text: "Blocked"}, {Value: "off", Text: "Not blocked"}}}}, err
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			t, err := v.subject()
			if err != nil {
				return changes.Request{}, err
			}
			return v.console.Changes.SetTenant(v.ctx, v.by(), id, t.ID, map[string]string{changes.Blocked: v.r.PostFormValue(changes.Blocked)}, v.r.PostFormValue("reason"))
		}}
}

// newTenantOrder makes an account.
func newTenantOrder() asking {
	return asking{path: "/tenants/new", title: "Make an account", may: identity.MakeTenants, submit: "Make the account", inputs: []Input{{"name", 120}, {"mode", 4}, {"collections", 3}},
		lead: func(*visit) (string, error) {
			return "With its wallet and its SMS credits. Its mode never changes.", nil
		},
		fields: func(v *visit) ([]page.Field, error) {
			return []page.Field{{Name: "name", Label: "Name", Value: v.given("name", ""), Max: 120, Required: true},
				{Name: "mode", Label: "Money", Value: v.given("mode", "test"), Options: []page.Option{{Value: "test", Text: "Test"}, {Value: "live", Text: "Live"}}},
				{Name: "collections", Label: "Collections", Value: v.given("collections", "off"), Options: []page.Option{{Value: "off", Text: "off"}, {Value: "on", Text: "on"}}}}, nil
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			value := v.r.PostFormValue
			return v.console.Changes.CreateTenant(v.ctx, v.by(), id, "", strings.TrimSpace(value("name")), value("mode"), map[string]string{"collections": value("collections")}, value("reason"))
		}}
}

// senderOrders are the two reviews of a sender ID.
func senderOrders() (orders []asking) {
	for _, to := range []senderid.Status{senderid.Approved, senderid.Rejected} {
		does := map[senderid.Status]string{senderid.Approved: "approve", senderid.Rejected: "reject"}[to]
		orders = append(orders, asking{path: "/senders/{id}/" + does, title: strings.ToUpper(does[:1]) + does[1:] + " a sender ID", may: identity.ReviewSenders, submit: strings.ToUpper(does[:1]) + does[1:] + " it", danger: to == senderid.Rejected,
			lead: func(v *visit) (string, error) {
				s, err := v.console.Senders.Find(v.ctx, v.r.PathValue("id"))
				if problem.Is(err, problem.NotFound) {
					err = errNoPage()
				}
				text := s.Name + ": " + s.Description
				if to == senderid.Rejected {
					text += ". The customer reads the reason."
				}
				return page.Visible(text), err
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				return v.console.Changes.ReviewSender(v.ctx, v.by(), id, v.r.PathValue("id"), to, v.r.PostFormValue("reason"))
			}})
	}
	return orders
}
