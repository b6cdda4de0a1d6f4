package batches

import (
	"net/http"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// maxText is the most bytes of a text of the form.
const maxText = 2000

// newBatch asks for a file. The second factor is required before a person chooses a file, because a chosen file is
// lost on another page.
func (ps *Pages) newBatch(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.ask(v, "", nil), nil
}

func uploadForm(v *console.Visit, name string) page.Form {
	return page.Form{ID: "upload", Action: path(v) + "/new", Submit: "Upload the file", Fields: []page.Field{
		{Name: "name", Label: "Name of the batch", Value: name, Max: 100, Required: true, Hint: "Such as Salaries November. The same file under the same name is paid once."},
		{Name: "file", Label: "File (XLSX or CSV)", Type: "file", Required: true, Hint: "At most 20 MB and 100,000 rows."}}}
}

// ask shows the form, with its errors.
func (ps *Pages) ask(v *console.Visit, name string, wrong error) console.Answer {
	f := uploadForm(v, name)
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	return console.Answer{Title: "Upload a file", Wrong: wrong != nil, Body: uploadPage(path(v), f)}
}

// codeDuplicate is the error code for a file whose rows are a batch already.
const codeDuplicate = "duplicate_batch"

// upload reads the file as it arrives, and redirects to the page of its columns.
func (ps *Pages) upload(v *console.Visit) (console.Answer, error) {
	v.FormPage = path(v) + "/new"
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	name := ""
	part, err := v.Upload(maxText, func(field, text string) {
		if field == "name" {
			name = text
		}
	})
	switch {
	case err != nil:
		return console.Answer{}, err
	case part == nil:
		return ps.ask(v, name, problem.Field("file", "is required")), nil
	}
	r, err := ps.Batches.Receive(v.Ctx, batch.Upload{Tenant: v.Tenant.ID, Name: name, Requester: v.Who.Person.ID}, part)
	switch {
	case err == nil:
		return console.Answer{To: filePath(v, r.ID)}, nil
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.InProgress), problem.Is(err, problem.Forbidden):
		return ps.ask(v, name, err), nil
	}
	return console.Answer{}, console.BrokenUpload(err)
}

// template returns an empty file with the right headings.
func (ps *Pages) template(format sheet.Format) func(*console.Visit) (console.Answer, error) {
	return func(v *console.Visit) (console.Answer, error) {
		banks, err := ps.Batches.Banks(v.Ctx, v.Tenant.ID)
		if err != nil {
			return console.Answer{}, err
		}
		return console.Answer{File: "payouts-template." + string(format), Media: format.MediaType(), Write: func(w http.ResponseWriter) error { return batch.WriteTemplate(w, format, banks) }}, nil
	}
}
