package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Site names the site of a route.
type Site int

const (
	Public    Site = iota // needs no session
	Anyone                // every person who is signed in
	Operators             // a role at the installation
	Tenants               // a role at the tenant of the path, or an operator who views the tenant's pages
)

// Input is one parameter that a route reads, from the query of a GET and the form of a POST.
type Input struct {
	Name string
	Max  int // characters
}

// Route is one page or one action.
type Route struct {
	Method, Path string // the path as net/http matches it
	Site         Site
	Permission   roles.Permission // empty if the site requires none
	Also         roles.Permission // a second required permission; empty: none
	Inputs       []Input
	Development  bool  // the route exists in development mode only
	File         bool  // the answer is a file, which may take long
	Slow         bool  // the answer may take as long as a file
	Alone        bool  // its page has no navigation
	Machine      bool  // programs send it, not people: the body is not a form
	Body         int64 // maximum bytes of a request; 0: formBytes
	Unready      bool  // open to people who have not set up a password and a factor yet
	Handle       func(*Visit) (Answer, error)
	// Resume shows the form of a POST again, with its contents, after a step-up. It does not perform the action of the
	// form. If it is nil, the contents are lost. It is nil for a form with a password or a file.
	Resume func(*Visit) (Answer, error)
}

func (r *Route) body() int64 {
	if r.Body > 0 {
		return r.Body
	}
	return formBytes
}

func (r *Route) reads() bool { return !r.Machine }

// moves reports whether the route moves money, or decides about it.
func (r *Route) moves() bool {
	moving := []roles.Permission{roles.ChangeMoney, roles.ChangeTreasury, roles.RequestPayouts, roles.ApproveChanges}
	return r.Method == http.MethodPost && (slices.Contains(moving, r.Permission) || r.Permission == roles.RequestChanges && (strings.HasSuffix(r.Path, "/do") || strings.HasSuffix(r.Path, "/withdraw")))
}

// strayRoutes answer the addresses of a site that have no page. The answer has the site's navigation.
func strayRoutes() []Route {
	noPage := func(*Visit) (Answer, error) { return Answer{}, ErrNoPage() }
	return []Route{
		{Method: http.MethodGet, Path: "/ops/{rest...}", Site: Operators, Permission: roles.ReadHome, Handle: noPage},
		{Method: http.MethodGet, Path: "/app/{tenant}/{rest...}", Site: Tenants, Permission: roles.ReadHome, Handle: noPage},
	}
}

// isText reports whether the database can store a value as text: PostgreSQL rejects NUL.
func isText(value string) bool { return utf8.ValidString(value) && !strings.Contains(value, "\x00") }

// checkForm refuses parameters that no browser sends from our pages: too long, repeated, or not text.
func (v *Visit) checkForm() error {
	if v.Route.Machine {
		return nil
	}
	for _, in := range v.Route.Inputs {
		given := v.R.Form[in.Name]
		if v.R.Method == http.MethodGet {
			given = v.R.URL.Query()[in.Name]
		}
		if len(given) > 1 {
			return problem.Field(in.Name, "was given more than once")
		}
		if len(given) == 1 && (!isText(given[0]) || utf8.RuneCountInString(given[0]) > in.Max) {
			return problem.Field(in.Name, "must be text of at most "+strconv.Itoa(in.Max)+" characters")
		}
	}
	return nil
}

// Guarded reports whether the route needs a permission.
func (r Route) Guarded() bool { return r.Site == Operators || r.Site == Tenants }

// Allows reports whether a role at a site may use the route. An operator who views an account's pages has the
// permissions that both the operator's role and the account's auditor have.
func (r Route) Allows(s roles.Site, role roles.Role) bool {
	switch {
	case r.Site == Operators:
		return s == roles.InstallationSite && r.can(s, role)
	case r.Site == Tenants && s == roles.InstallationSite:
		return r.Method == http.MethodGet && role.MayViewAs(r.Permission) && (r.Also == "" || role.MayViewAs(r.Also))
	case r.Site == Tenants:
		return r.can(s, role)
	}
	return true
}

// can reports whether a role has the route's permission.
func (r Route) can(s roles.Site, role roles.Role) bool {
	return roles.Can(s, role, r.Permission) && (r.Also == "" || roles.Can(s, role, r.Also))
}
