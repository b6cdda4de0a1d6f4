package compose

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// uploadBody is the maximum size in bytes of the form with its file.
const uploadBody = sheet.MaxBytes + 4<<20

// textInputs are the fields of the form that changes a draft.
var textInputs = []console.Input{{Name: "sender_id", Max: 64}, {Name: "message", Max: maxText}, {Name: "at", Max: 16}}

// Routes are the pages of campaigns that people write.
func (ps *Pages) Routes() []console.Route {
	const form, draft = "/app/{tenant}/messages/new", "/app/{tenant}/campaign-drafts/{id}"
	routes := []console.Route{
		{Method: http.MethodGet, Path: form, Handle: ps.newCampaign},
		{Method: http.MethodPost, Path: form, Body: uploadBody, Slow: true, Handle: ps.create},
		{Method: http.MethodGet, Path: draft, Slow: true, Handle: ps.draft},
		{Method: http.MethodGet, Path: draft + "/text", Handle: ps.edit},
		{Method: http.MethodPost, Path: draft + "/text", Slow: true, Inputs: textInputs, Handle: ps.change},
		{Method: http.MethodPost, Path: draft + "/send", Slow: true, Handle: ps.send, Resume: ps.draft,
			Inputs: []console.Input{{Name: "id", Max: 36}, {Name: "digest", Max: 64}, {Name: "credits", Max: 12}, {Name: "reason", Max: 500}}},
		{Method: http.MethodPost, Path: draft + "/discard", Handle: ps.discard},
	}
	for i := range routes {
		routes[i].Site, routes[i].Permission = console.Tenants, roles.SendCampaigns
	}
	return routes
}
