package handsets

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/roles"
)

// Routes are the pages of the simulator. Webhooks come without a session: programs send them.
func (ps *Pages) Routes() []console.Route {
	shown := console.Input{Name: "h", Max: 200}
	routes := []console.Route{
		{Method: http.MethodGet, Path: "/sim", Inputs: []console.Input{shown, {Name: "add", Max: 20}}, Handle: ps.simPage},
		{Method: http.MethodPost, Path: "/sim/collect", Inputs: []console.Input{shown, {Name: "amount", Max: 12}, {Name: "phone", Max: 20}, {Name: "reference", Max: 36}}, Handle: ps.collect},
		{Method: http.MethodPost, Path: "/sim/prompts/{msisdn}/{id}", Inputs: []console.Input{shown, {Name: "action", Max: 20}}, Handle: ps.answerPrompt},
		{Method: http.MethodPost, Path: "/sim/faults", Inputs: []console.Input{shown, {Name: "provider", Max: 20}, {Name: "fault", Max: 40}, {Name: "count", Max: 4}}, Handle: ps.addFault},
		{Method: http.MethodPost, Path: "/sim/faults/clear", Inputs: []console.Input{shown}, Handle: ps.clearFaults},
		{Method: http.MethodPost, Path: "/sim/clock", Inputs: []console.Input{shown, {Name: "seconds", Max: 6}}, Handle: ps.moveClock},
	}
	for i := range routes {
		routes[i].Site, routes[i].Permission = console.Operators, roles.UseSimulator
	}
	routes = append(routes, console.Route{Method: http.MethodPost, Path: "/sim/hooks/{name}", Machine: true, Body: hookBytes, Handle: ps.receiveHook})
	for i := range routes {
		routes[i].Development, routes[i].Alone = true, true
	}
	return routes
}
