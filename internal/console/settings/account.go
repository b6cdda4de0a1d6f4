package settings

import (
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// accountOrders are the forms about an account, on both sites.
func (ps *Pages) accountOrders() []approvals.Form {
	day := 24 * time.Hour
	return []approvals.Form{
		{Path: "/keys/new", Title: "Create API key", May: roles.ChangeKeys, Submit: "Create API key", Inputs: []console.Input{{Name: "member", Max: 80}, {Name: "label", Max: 80}, {Name: "scopes", Max: 200}, {Name: "days", Max: 4}, {Name: "daily", Max: 20}},
			Lead: approvals.OfAccount("The key is shown once, to you, after it is created."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				t, err := v.Subject()
				if err != nil {
					return nil, err
				}
				members, err := ps.memberOptions(v, t)
				may := scopeText(changes.ScopesOf(v.PersonSite(), v.Role, t.Mode))
				return []page.Field{{Name: "scopes", Label: "Scopes", Value: v.Given("scopes", "read collect"), Required: true, Hint: "Separate scopes by spaces. Available: " + may + "."},
					{Name: "member", Label: "Holder", Value: v.Given("member", ""), Options: members, Hint: "Choose the person who will use the key. They cannot approve its payouts."},
					{Name: "label", Label: "Label", Value: v.Given("label", ""), Max: 80, Hint: "Enter a program or a place, such as Accounts server, not a person."},
					{Name: "days", Label: "Lifetime (days)", Value: v.Given("days", ""), Max: 4, Hint: "Leave empty for no expiry."},
					{Name: "daily", Label: "Daily limit (GHS)", Value: v.Given("daily", ""), Max: 20, Hint: "Leave empty for no daily limit."}}, err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, err := v.Subject()
				if err != nil {
					return changes.Request{}, err
				}
				o := changes.KeyOrder{Member: v.R.PostFormValue("member"), Label: v.R.PostFormValue("label")}
				for _, s := range strings.Fields(v.R.PostFormValue("scopes")) {
					o.Scopes = append(o.Scopes, access.Scope(s))
				}
				if len(o.Scopes) == 0 {
					return changes.Request{}, problem.Field("scopes", "are required")
				}
				days, err := v.Whole("days", 3650)
				if err != nil {
					return changes.Request{}, err
				}
				o.Expiry = time.Duration(days) * day
				if o.Daily, err = v.Amount("daily"); err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.CreateKey(v.Ctx, approvals.By(v), id, t.ID, o, v.R.PostFormValue("reason"))
			}},
		{Path: "/keys/{key}/rotate", Title: "Replace API key", May: roles.ChangeKeys, Submit: "Replace API key", Inputs: []console.Input{{Name: "hours", Max: 4}},
			Lead: ps.ofKey("The new key has the same scopes and is shown once, to you."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "hours", Label: "Keep the old key valid for (hours)", Value: v.Given("hours", "24"), Max: 4, Hint: "Enter at most 168."}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, k, err := ps.keyOfPage(v)
				if err != nil {
					return changes.Request{}, err
				}
				hours, err := v.Whole("hours", 168)
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.RotateKey(v.Ctx, approvals.By(v), id, t.ID, k.ID, time.Duration(hours)*time.Hour, v.R.PostFormValue("reason"))
			}},
		{Path: "/keys/{key}/daily", Title: "Daily limit of API key", May: roles.ChangeKeys, Submit: "Set daily limit", Inputs: []console.Input{{Name: "daily", Max: 20}},
			Lead: ps.ofKey("The limit includes fees. It applies within a second."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				_, k, err := ps.keyOfPage(v)
				usual := ""
				if k.Daily > 0 {
					usual = k.Daily.String()
				}
				return []page.Field{{Name: "daily", Label: "Daily limit (GHS)", Value: v.Given("daily", usual), Max: 20, Hint: "Leave empty for no daily limit."}}, err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, k, err := ps.keyOfPage(v)
				if err != nil {
					return changes.Request{}, err
				}
				daily, err := v.Amount("daily")
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.SetKey(v.Ctx, approvals.By(v), id, t.ID, k.ID, daily, v.R.PostFormValue("reason"))
			}},
		{Path: "/keys/{key}/revoke", Title: "Revoke API key", May: roles.ChangeKeys, Submit: "Revoke API key", Danger: true, Lead: ps.ofKey("The key stops working within a second and cannot be restored."),
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, k, err := ps.keyOfPage(v)
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.RevokeKey(v.Ctx, approvals.By(v), id, t.ID, k.ID, v.R.PostFormValue("reason"))
			}},
		{Path: "/addresses", Title: "Payout IP allow-list", May: roles.ChangeAddresses, Submit: "Save IP allow-list", Inputs: []console.Input{{Name: "add", Max: 60}, {Name: changes.PayoutIPs, Max: 4000}},
			Lead: approvals.OfAccount("Payouts by API are accepted only from these addresses. An empty list rejects all of them."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				t, err := v.Subject()
				if err != nil {
					return nil, err
				}
				list, err := ps.Access.PayoutIPs(v.Ctx, t.ID)
				texts := make([]string, len(list))
				for i, p := range list {
					texts[i] = p.String()
				}
				usual := strings.Join(texts, " ")
				if add := v.Param("add"); add != "" && v.R.Method == http.MethodGet {
					usual = strings.TrimSpace(usual + " " + add)
				}
				return []page.Field{{Name: changes.PayoutIPs, Label: "IP addresses and ranges", Value: v.Given(changes.PayoutIPs, usual), Max: 4000, Hint: "Enter the whole list, separated by spaces, such as 192.0.2.7 198.51.100.0/24."}}, err
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, err := v.Subject()
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.SetTenant(v.Ctx, approvals.By(v), id, t.ID, map[string]string{changes.PayoutIPs: v.R.PostFormValue(changes.PayoutIPs)}, v.R.PostFormValue("reason"))
			}},
		{Path: "/secret/rotate", Title: "Replace webhook secret", May: roles.ChangeKeys, Submit: "Replace webhook secret", Danger: true,
			Lead: approvals.OfAccount("Webhooks are signed with both secrets for a day. Configure the new one on your server within that day."),
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, err := v.Subject()
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.RotateSecret(v.Ctx, approvals.By(v), id, t.ID, v.R.PostFormValue("reason"))
			}},
	}
}

// SettingsForm returns the form for the settings of an account: all settings, or only the settings that the account's
// own people may change.
func (ps *Pages) SettingsForm(may roles.Permission, own bool) approvals.Form {
	o := approvals.Form{Path: "/settings", Title: "Settings", May: may, Submit: "Save settings", Lead: approvals.OfAccount("Settings that you do not edit stay unchanged.")}
	var settings []changes.Setting
	for _, s := range changes.Settings() {
		if s.Name != changes.Blocked && (s.Own || !own) {
			settings = append(settings, s)
			o.Inputs = append(o.Inputs, console.Input{Name: s.Name, Max: 120})
		}
	}
	o.Fields = func(v *console.Visit) (fields []page.Field, err error) {
		t, err := v.Subject()
		for _, s := range settings {
			f := page.Field{Name: s.Name, Label: s.Label, Value: v.Given(s.Name, s.Of(t)), Max: 120}
			for _, option := range s.Options {
				f.Options = append(f.Options, page.Option{Value: option, Text: option})
			}
			fields = append(fields, f)
		}
		return fields, err
	}
	o.Ask = func(v *console.Visit, id string) (changes.Request, error) {
		t, err := v.Subject()
		if err != nil {
			return changes.Request{}, err
		}
		values := map[string]string{}
		for _, s := range settings {
			if v.R.PostForm.Has(s.Name) {
				values[s.Name] = v.R.PostFormValue(s.Name)
			}
		}
		return ps.Approvals.Changes.SetTenant(v.Ctx, approvals.By(v), id, t.ID, values, v.R.PostFormValue("reason"))
	}
	return o
}
