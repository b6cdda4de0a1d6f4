package approvals

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/identity"
)

// mostShown is how long the text of what an approval's page showed may be, in characters.
const mostShown = 1000

// Routes are the acts of a site, under its base. The kind says, in the transaction, which role may check it.
func (ps *Pages) Routes(base string) []console.Route {
	digest, act := console.Input{Name: "digest", Max: mostShown}, base+"/acts/{id}"
	return []console.Route{
		{Method: http.MethodGet, Path: base + "/acts", Permission: identity.ReadActs, Inputs: []console.Input{{Name: "before", Max: 36}, {Name: "state", Max: 12}}, Handle: ps.actList},
		{Method: http.MethodGet, Path: act, Permission: identity.ReadActs, Handle: ps.actPage},
		{Method: http.MethodPost, Path: act + "/approve", Permission: identity.CheckActs, Inputs: []console.Input{digest}, Handle: ps.approveAct},
		{Method: http.MethodPost, Path: act + "/reject", Permission: identity.CheckActs, Inputs: []console.Input{digest, {Name: "note", Max: 500}}, Handle: ps.rejectAct},
		{Method: http.MethodPost, Path: act + "/withdraw", Permission: identity.MakeActs, Inputs: []console.Input{digest}, Handle: ps.withdrawAct},
		{Method: http.MethodPost, Path: act + "/reveal", Permission: identity.MakeActs, Handle: ps.revealMade},
		{Method: http.MethodPost, Path: act + "/code", Permission: identity.ReadActs, Handle: ps.revealCode},
		{Method: http.MethodPost, Path: act + "/do", Permission: identity.MakeActs, Inputs: []console.Input{digest}, Handle: ps.approveAct},
	}
}

// PolicyRoutes are the policy of a site.
func (ps *Pages) PolicyRoutes(base string, more ...console.Input) []console.Route {
	inputs := append([]console.Input{{Name: "id", Max: 36}, {Name: "kind", Max: 40}, {Name: "amount", Max: 20}, {Name: "checkers", Max: 2}, {Name: "reason", Max: 500}}, more...)
	return []console.Route{{Method: http.MethodGet, Path: base + "/policy", Permission: identity.ReadActs, Handle: ps.policyPage},
		{Method: http.MethodPost, Path: base + "/policy", Permission: identity.MakePolicy, Inputs: inputs, Handle: ps.setPolicy}}
}
