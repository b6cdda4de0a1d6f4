package console

import (
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// About finds the tenant that a page of the installation is about.
func (v *Visit) About() (tenant.Tenant, error) {
	t, err := v.console.Tenants.Get(v.Ctx, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = ErrNoPage()
	}
	return t, err
}

// Subject is the tenant that a page of either site is about.
func (v *Visit) Subject() (tenant.Tenant, error) {
	if v.Route.Site == Tenants {
		return v.Tenant, nil
	}
	return v.About()
}

// PersonSite is the site of identity that the page belongs to.
func (v *Visit) PersonSite() roles.Site { return roles.SiteOf(v.Tenant.ID) }

// NameOf is the name of a tenant for a list; one that cannot be read now is named by its id.
func (v *Visit) NameOf(id string) string {
	if id == "" {
		return "no valid key"
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

// NeedFactor refuses a visitor whose second factor is older than what they ask for may have.
func (v *Visit) NeedFactor() error { return v.console.Identity.NeedFactor(v.Ctx, v.Who) }
