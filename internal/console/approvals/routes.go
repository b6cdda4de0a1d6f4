package approvals

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/roles"
)

// mostShown is the maximum length of the facts that an approval's page showed, in characters.
const mostShown = 1000

// Routes returns the pages of a site's change requests, under its base. The kind checks the approver's role in the
// transaction.
func (ps *Pages) Routes(base string) []console.Route {
	digest, request := console.Input{Name: "digest", Max: mostShown}, base+"/acts/{id}"
	return []console.Route{
		{Method: http.MethodGet, Path: base + "/acts", Permission: roles.ReadChanges, Inputs: []console.Input{{Name: "before", Max: 36}, {Name: "state", Max: 12}}, Handle: ps.requestList},
		{Method: http.MethodGet, Path: base + "/acts/alike", Permission: roles.ApproveChanges, Inputs: []console.Input{{Name: "kind", Max: 40}, {Name: "tenant", Max: 36}, {Name: "without", Max: mostLeft}}, Slow: true, Handle: ps.alikePage},
		{Method: http.MethodPost, Path: base + "/acts/alike", Permission: roles.ApproveChanges, Inputs: []console.Input{{Name: "kind", Max: 40}, {Name: "tenant", Max: 36}, {Name: "shown", Max: mostAlikeShown}}, Slow: true, Handle: ps.approveAlike},
		{Method: http.MethodGet, Path: request, Permission: roles.ReadChanges, Handle: ps.requestPage},
		{Method: http.MethodPost, Path: request + "/approve", Permission: roles.ApproveChanges, Inputs: []console.Input{digest}, Handle: ps.approveRequest},
		{Method: http.MethodPost, Path: request + "/reject", Permission: roles.ApproveChanges, Inputs: []console.Input{digest, {Name: "note", Max: 500}}, Handle: ps.rejectRequest, Resume: ps.resumeReject},
		{Method: http.MethodPost, Path: request + "/withdraw", Permission: roles.RequestChanges, Inputs: []console.Input{digest}, Handle: ps.withdrawRequest},
		{Method: http.MethodPost, Path: request + "/reveal", Permission: roles.RequestChanges, Handle: ps.revealMade},
		{Method: http.MethodPost, Path: request + "/code", Permission: roles.ReadChanges, Handle: ps.revealCode},
		{Method: http.MethodPost, Path: request + "/do", Permission: roles.RequestChanges, Inputs: []console.Input{digest}, Handle: ps.approveRequest},
	}
}

// PolicyRoutes returns the routes of a site's page about the approval policy.
func (ps *Pages) PolicyRoutes(base string, more ...console.Input) []console.Route {
	inputs := append([]console.Input{{Name: "id", Max: 36}, {Name: "kind", Max: 40}, {Name: "amount", Max: 20}, {Name: "approvers", Max: 2}, {Name: "checkers", Max: 2}, {Name: "reason", Max: 500}}, more...)
	return []console.Route{{Method: http.MethodGet, Path: base + "/policy", Permission: roles.ReadChanges, Handle: ps.policyPage},
		{Method: http.MethodPost, Path: base + "/policy", Permission: roles.ChangePolicy, Inputs: inputs, Handle: ps.setPolicy, Resume: ps.resumePolicy}}
}
