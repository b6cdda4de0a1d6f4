package identity

import (
	"time"

	"github.com/makola/makola/internal/roles"
)

// Visitor is the person behind a request, with the session and the roles.
type Visitor struct {
	Person      Person
	Session     Session
	Memberships []Membership
	HasPassword bool
	HasFactor   bool
	TokensFrom  time.Time // when personal tokens begin to work after a first factor; zero: at once
	hash        string    // hash of the session's token; empty for a command with a personal token
	token       string    // hash of the personal token
}

// ByToken reports whether the visitor is a command with a personal token, and not a browser.
func (v Visitor) ByToken() bool { return v.token != "" }

// Can reports whether the visitor's role at a tenant or at the Installation has a permission.
func (v Visitor) Can(tenant string, p roles.Permission) bool {
	r := v.Role(tenant)
	return r != "" && roles.Can(roles.SiteOf(tenant), r, p)
}

// Session is one browser in which a person is signed in.
type Session struct {
	ID        string
	Agent     string // User-Agent of the browser
	CreatedAt time.Time
	UsedAt    time.Time // to the minute
	FactorAt  time.Time // when the second factor was last given; zero: never
	Source    string    // network from which the session began; empty: unknown
	First     bool      // the session began with an invitation or the bootstrap
}

// Role returns the visitor's role at a tenant or at the Installation, or "" if there is none.
func (v Visitor) Role(tenant string) roles.Role {
	for _, m := range v.Memberships {
		if m.Tenant == tenant {
			return m.Role
		}
	}
	return ""
}

// Operator reports whether the visitor has a role at the installation.
func (v Visitor) Operator() bool { return v.Role(roles.Installation) != "" }

// Lacks reports which proofs a visitor must set up in production before anything else.
func (v Visitor) Lacks() (password, factor bool) {
	for _, m := range v.Memberships {
		factor = factor || m.Role.NeedsFactor(roles.SiteOf(m.Tenant))
	}
	return !v.HasPassword, factor && !v.HasFactor
}
