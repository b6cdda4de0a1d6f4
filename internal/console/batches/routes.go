package batches

import (
	"net/http"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// uploadBody is the most bytes of a form with a file.
const uploadBody = sheet.MaxBytes + 64<<10

// rowInputs are the fields of a row.
var rowInputs = []console.Input{{Name: "number", Max: 200}, {Name: "network", Max: 200}, {Name: "amount", Max: 200}, {Name: "name", Max: 200}, {Name: "reference", Max: 200}, {Name: "note", Max: 200}}

// fileInputs are the fields of the form of columns.
var fileInputs = []console.Input{{Name: "shown", Max: 200}, {Name: "sheet", Max: 200}, {Name: "number", Max: 3}, {Name: "network", Max: 3}, {Name: "amount", Max: 3}, {Name: "name", Max: 3},
	{Name: "reference", Max: 3}, {Name: "note", Max: 3}, {Name: "hidden", Max: 4}, {Name: "errors", Max: 4}, {Name: "again", Max: 500}}

// Routes are the pages of batches.
func (ps *Pages) Routes() []console.Route {
	const base = "/app/{tenant}/batches"
	const one = base + "/{id}"
	const file = "/app/{tenant}/batch-files/{id}"
	const line = one + "/rows/{line}"
	read := func(path string, handle func(*console.Visit) (console.Answer, error), inputs ...console.Input) console.Route {
		return console.Route{Method: http.MethodGet, Path: path, Permission: roles.ReadPayments, Inputs: inputs, Handle: handle}
	}
	write := func(method, path string, handle func(*console.Visit) (console.Answer, error), inputs ...console.Input) console.Route {
		return console.Route{Method: method, Path: path, Permission: roles.RequestPayouts, Inputs: inputs, Handle: handle}
	}
	routes := []console.Route{
		read(base, ps.list, console.Input{Name: "before", Max: 36}),
		write(http.MethodGet, base+"/new", ps.newBatch),
		{Method: http.MethodPost, Path: base + "/new", Permission: roles.RequestPayouts, Body: uploadBody, Slow: true, Handle: ps.upload},
		{Method: http.MethodGet, Path: file, Permission: roles.RequestPayouts, Slow: true, Inputs: []console.Input{{Name: "sheet", Max: 200}}, Handle: ps.columns},
		{Method: http.MethodPost, Path: file, Permission: roles.RequestPayouts, Slow: true, Inputs: fileInputs, Handle: ps.confirmColumns},
		write(http.MethodGet, base+"/template.csv", ps.template(sheet.CSV)),
		write(http.MethodGet, base+"/template.xlsx", ps.template(sheet.XLSX)),
		read(one, ps.batchPage),
		read(one+"/rows", ps.rows, console.Input{Name: "from", Max: 7}),
		write(http.MethodGet, line, ps.row),
		write(http.MethodPost, line, ps.mend, rowInputs...),
		write(http.MethodPost, line+"/drop", ps.drop),
		{Method: http.MethodPost, Path: one + "/settle", Permission: roles.RequestPayouts, Slow: true, Inputs: settleInputs(), Handle: ps.settle},
		write(http.MethodPost, one+"/new-rows", ps.keepNew),
		write(http.MethodPost, one+"/names", ps.lookUp),
		write(http.MethodPost, one+"/discard", ps.discard),
		{Method: http.MethodPost, Path: one + "/request", Permission: roles.RequestPayouts, Slow: true, Handle: ps.request,
			Inputs: []console.Input{{Name: "id", Max: 36}, {Name: "again", Max: 500}, {Name: "different", Max: 6}, {Name: "reason", Max: 500}}},
		write(http.MethodPost, one+"/pause", ps.pause),
		write(http.MethodPost, one+"/resume", ps.resume),
		write(http.MethodPost, one+"/cancel", ps.cancel, console.Input{Name: "reason", Max: 500}),
		{Method: http.MethodPost, Path: one + "/retry", Permission: roles.RequestPayouts, Slow: true, Handle: ps.retry},
		{Method: http.MethodPost, Path: one + "/copy", Permission: roles.RequestPayouts, Slow: true, Handle: ps.copy},
		{Method: http.MethodGet, Path: one + "/results.csv", Permission: roles.ReadPayments, Also: roles.ExportPayments, File: true, Handle: ps.results},
	}
	for i := range routes {
		routes[i].Site = console.Tenants
	}
	return routes
}
