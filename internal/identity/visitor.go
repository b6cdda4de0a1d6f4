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
	TokensFrom  time.Time // when a first factor lets personal tokens be made and used; zero: they do not wait
	hash        string    // of the session's token; empty: it is a command's, by a personal token
	token       string    // the hash of that one
}

// ByToken reports whether the visitor is a command with a personal token, and not a browser.
func (v Visitor) ByToken() bool { return v.token != "" }

// Can reports whether a role of the visitor at a tenant or at the Installation has a permission.
func (v Visitor) Can(tenant string, p roles.Permission) bool {
	r := v.Role(tenant)
	return r != "" && roles.Can(roles.SiteOf(tenant), r, p)
}

// Session is one browser in which a person is signed in.
type Session struct {
	ID        string
	Agent     string // the name that the browser sent
	CreatedAt time.Time
	UsedAt    time.Time // to the minute
	FactorAt  time.Time // when the second factor was last given; zero: never
	Source    string    // the network that it began from; empty: not known
	First     bool      // of an invitation or of the bootstrap
}

// Role is the visitor's role at a tenant or at the Installation; empty: none.
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

// Lacks reports the proofs that a visitor in production must set up before anything else.
func (v Visitor) Lacks() (password, factor bool) {
	for _, m := range v.Memberships {
		factor = factor || m.Role.NeedsFactor(roles.SiteOf(m.Tenant))
	}
	return !v.HasPassword, factor && !v.HasFactor
}
