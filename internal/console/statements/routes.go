package statements

import (
	"net/http"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

const base = "/ops/statements"

// uploadBody is the most bytes of a form with a file.
const uploadBody = sheet.MaxBytes + 64<<10

// Routes are the pages of statements.
func (ps *Pages) Routes() []console.Route {
	const draft = base + "/drafts/{id}"
	answers := []console.Input{{Name: reconcile.QuestionDates, Max: 3}, {Name: reconcile.QuestionSign, Max: 10}}
	for _, field := range reconcile.Fields() {
		answers = append(answers, console.Input{Name: columnInput(field), Max: 3})
	}
	routes := []console.Route{
		{Method: http.MethodGet, Path: base, Permission: roles.ReadStatements, Inputs: []console.Input{{Name: "before", Max: 36}}, Handle: ps.list},
		{Method: http.MethodGet, Path: base + "/new", Permission: roles.ImportStatements, Handle: ps.ask},
		{Method: http.MethodPost, Path: base + "/new", Permission: roles.ImportStatements, Body: uploadBody, Slow: true, Handle: ps.upload},
		{Method: http.MethodGet, Path: draft, Permission: roles.ImportStatements, Slow: true, Handle: ps.draft},
		{Method: http.MethodPost, Path: draft, Permission: roles.ImportStatements, Slow: true, Inputs: answers, Handle: ps.confirm},
		{Method: http.MethodPost, Path: draft + "/discard", Permission: roles.ImportStatements, Handle: ps.discard},
		{Method: http.MethodGet, Path: base + "/{id}", Permission: roles.ReadStatements, Inputs: []console.Input{{Name: "after", Max: 9}}, Handle: ps.statement},
	}
	const one = exceptionsPage + "/{id}"
	reason := console.Input{Name: "reason", Max: 500}
	routes = append(routes,
		console.Route{Method: http.MethodGet, Path: exceptionsPage, Permission: roles.ReadStatements, Inputs: exceptionInputs(), Handle: ps.exceptions},
		console.Route{Method: http.MethodGet, Path: one, Permission: roles.ReadStatements, Handle: ps.exception},
		console.Route{Method: http.MethodPost, Path: one + "/own", Permission: roles.ImportStatements, Handle: ps.own},
		console.Route{Method: http.MethodPost, Path: one + "/leave", Permission: roles.ImportStatements, Handle: ps.leave},
		console.Route{Method: http.MethodPost, Path: one + "/note", Permission: roles.ImportStatements, Inputs: []console.Input{{Name: "note", Max: 500}}, Handle: ps.note},
		console.Route{Method: http.MethodPost, Path: one + "/undo", Permission: roles.ImportStatements, Inputs: []console.Input{reason}, Handle: ps.undo})
	routes = append(routes, ps.Approvals.Form(changes.KindWriteOff, "/exceptions/write-off", "Request the write-off",
		"Ends exceptions without moving money, one or all of an account and kind up to an amount. Nobody who imported their lines approves it.",
		approvals.Choices{"source": ps.writtenSources, "kind": writtenKinds}).Routes("/ops")...)
	for i := range routes {
		routes[i].Site = console.Operators
	}
	return routes
}
