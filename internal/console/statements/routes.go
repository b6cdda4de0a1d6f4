package statements

import (
	"net/http"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/page"
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
	for _, f := range ps.resolutionForms() {
		routes = append(routes, f.Routes("/ops")...)
	}
	for i := range routes {
		routes[i].Site = console.Operators
	}
	return routes
}

// resolutionForms are the pages on which people request the end of exceptions.
func (ps *Pages) resolutionForms() []approvals.Form {
	some := approvals.Choices{changes.FieldException: ps.exceptionOptions("Several exceptions, selected by the fields below", ""), "source": ps.writtenSources, "kind": writtenKinds}
	suspended := ps.exceptionOptions("Several exceptions, selected by the fields below", reconcile.EndedSuspend)
	one := approvals.Choices{changes.FieldException: ps.exceptionOptions("Choose an exception", "")}
	return []approvals.Form{
		ps.Approvals.Form(changes.KindWriteOff, "/exceptions/write-off", "Request the write-off",
			"Closes exceptions without moving money: one exception, or all of an account and kind up to an amount. Use it only if our books are already right. People who imported the lines cannot approve it.", some),
		ps.Approvals.Form(changes.KindBookFee, "/exceptions/fee", "Request the booking", "Books fees that are missing in our books: of one exception, or of all exceptions of an account.", some),
		ps.Approvals.Form(changes.KindSuspend, "/exceptions/suspend", "Request the move",
			"Books the difference against suspense, so that our books agree with the statement. It applies to one exception, or to all of an account and kind. If a line is matched later, its money leaves suspense again.", some),
		ps.Approvals.Form(changes.KindRelease, "/exceptions/release", "Request the move",
			"Moves money out of suspense: to the customer, to our earned fees, or to the costs of the provider or bank. A missing amount is taken from the chosen side instead.",
			approvals.Choices{changes.FieldException: suspended, "source": ps.writtenSources, "kind": writtenKinds, "for": releaseSides}),
		ps.Approvals.Form(changes.KindAdopt, "/exceptions/adopt", "Request the credit", "Credits a wallet with unmatched money at a provider: one credit, or all unmatched credits of a statement account up to an amount.",
			approvals.Choices{changes.FieldException: some[changes.FieldException], "source": ps.writtenSources}),
		ps.Approvals.Form(changes.KindPair, "/exceptions/match", "Request the match", "Matches the line of the statement with one of our payments. No money moves.", one),
		ps.Approvals.Form(changes.KindPairAll, "/exceptions/match-all", "Request the matches", "Matches the lines of several exceptions with our payments. No money moves.", nil),
		ps.Approvals.Form(changes.KindEndByLine, "/exceptions/end", "Request the outcome",
			"Sets an unknown outcome of a payment from the statement, or corrects an outcome from an earlier statement. An outcome that the provider reported stays.", one),
		ps.Approvals.Form(changes.KindEndAllByLine, "/exceptions/end-all", "Request the outcomes",
			"Sets the outcomes of all payments of an account and kind from the statement, up to an amount and at most 500. Outcomes are set within a minute of the approval. A payment that its provider reported, or that has changed since, keeps its exception.",
			approvals.Choices{"source": ps.sourcesToSettle, "kind": settledKinds}),
	}
}

func releaseSides(*console.Visit) ([]page.Option, error) {
	return []page.Option{{Value: "", Text: "Choose"}, {Value: string(changes.Customer), Text: "The customer's wallet"}, {Value: string(changes.House), Text: "Our earned fees"},
		{Value: string(changes.Charge), Text: "Costs of the provider or bank"}}, nil
}
