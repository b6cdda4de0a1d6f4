package console

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// About returns the account of a page of the installation.
func (v *Visit) About() (tenant.Tenant, error) {
	t, err := v.console.Tenants.Get(v.Ctx, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = ErrNoPage()
	}
	return t, err
}

// Subject returns the account of a page on either site.
func (v *Visit) Subject() (tenant.Tenant, error) {
	if v.Route.Site == Tenants {
		return v.Tenant, nil
	}
	return v.About()
}

// mostAccounts is the maximum number of accounts that a field lists. If there are more, the field takes a name or an ID.
const mostAccounts = 200

// AccountParam reads the filter by account. An unknown ID matches nothing.
func (v *Visit) AccountParam() (id string, err error) {
	return v.AccountIn("tenant", v.Param("tenant"))
}

// AccountIn parses a field that names an account by its ID, or by a name that only one account has. It is empty for
// an empty field.
func (v *Visit) AccountIn(field, text string) (id string, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	if _, err := uuid.Parse(text); err == nil {
		return text, nil
	}
	t, err := v.console.Tenants.Get(v.Ctx, text)
	if problem.Is(err, problem.NotFound) {
		t, err = v.console.Tenants.Named(v.Ctx, text)
	}
	if problem.Is(err, problem.NotFound) {
		err = problem.Field(field, "must be the name or ID of one account")
	}
	return t.ID, err
}

// AccountField returns the filter by account.
func (v *Visit) AccountField() (page.Field, error) {
	return v.AccountChoice("tenant", "Account", v.Param("tenant"), page.Option{Value: "", Text: "All accounts"})
}

// AccountChoice returns a field that chooses an account from a list. The list begins with the given options. If there are too many
// accounts for a list, the field takes a name or an ID.
func (v *Visit) AccountChoice(name, label, value string, others ...page.Option) (page.Field, error) {
	f := page.Field{Name: name, Label: label, Options: others, Value: value}
	all, err := v.console.Tenants.List(v.Ctx, "", mostAccounts+1)
	if err != nil {
		return f, err
	}
	if len(all) > mostAccounts {
		return page.Field{Name: name, Label: label + " (name or ID)", Value: value, Max: 120}, nil
	}
	for _, t := range all {
		f.Options = append(f.Options, page.Option{Value: t.ID, Text: AccountName(t)})
	}
	if !slices.ContainsFunc(f.Options, func(o page.Option) bool { return o.Value == value }) { // so that sending the form again keeps the value
		f.Options = append(f.Options, page.Option{Value: value, Text: v.NameOf(value)})
	}
	return f, nil
}

// AccountName returns the name of an account with its mode.
func AccountName(t tenant.Tenant) string { return t.Name + " (" + string(t.Mode) + ")" }

// PersonSite returns the site of the page, as package identity names it.
func (v *Visit) PersonSite() roles.Site { return roles.SiteOf(v.Tenant.ID) }

// NameOf returns the name of an account for a list. If the account cannot be read, it returns the ID.
func (v *Visit) NameOf(id string) string {
	if id == "" {
		return "No valid key"
	}
	t, err := v.console.Tenants.Get(v.Ctx, id)
	if err != nil {
		return id
	}
	return t.Name
}

// Now returns the time of this server's clock.
func (v *Visit) Now() time.Time { return v.console.Clock.Now() }

// Development reports whether this is a development server.
func (v *Visit) Development() bool { return v.console.Development }

// PublicURL returns the address under which browsers reach this server, without a slash at its end.
func (v *Visit) PublicURL() string { return v.console.PublicURL }

// NeedFactor returns an error unless the visitor gave their second factor in the last minutes.
func (v *Visit) NeedFactor() error { return v.console.Identity.NeedFactor(v.Ctx, v.Who) }
