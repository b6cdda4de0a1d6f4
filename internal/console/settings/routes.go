package settings

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/roles"
)

// AccountRoutes are the pages about an account, on either site.
func (ps *Pages) AccountRoutes(base string, more ...approvals.Form) []console.Route {
	routes := []console.Route{{Method: http.MethodGet, Path: base + "/access", Permission: roles.ReadAccess, Handle: ps.accessPage},
		{Method: http.MethodPost, Path: base + "/secret/reveal", Permission: roles.ReadSecrets, Handle: ps.revealSecret}}
	for _, o := range append(ps.accountOrders(), more...) {
		routes = append(routes, o.Routes(base)...)
	}
	return routes
}

// PeopleRoutes are the pages of people, on either site.
func (ps *Pages) PeopleRoutes(base string) []console.Route {
	routes := []console.Route{{Method: http.MethodGet, Path: base + "/people", Permission: roles.ReadPeople, Handle: ps.peopleList},
		{Method: http.MethodGet, Path: base + "/people/{person}", Permission: roles.ReadPeople, Handle: ps.personPage}}
	for _, o := range ps.peopleOrders() {
		routes = append(routes, o.Routes(base)...)
	}
	return routes
}
