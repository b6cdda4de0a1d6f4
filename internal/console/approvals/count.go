package approvals

import (
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/roles"
)

// Count returns the number of change requests that await the approval of somebody with the visitor's role.
func (ps *Pages) Count(p console.Place) (n int, err error) {
	if !p.Can(roles.ReadChanges) {
		return 0, nil
	}
	list, err := ps.Changes.Store.List(p.Ctx, changes.Filter{Place: p.Tenant, State: changes.Waiting, Limit: console.PageRows})
	for _, request := range list {
		rule, known := ps.Changes.Rule(request.Kind)
		if known && request.Requester != p.Person && request.Needs > 0 && p.Can(rule.Check) {
			n++
		}
	}
	return n, err
}
