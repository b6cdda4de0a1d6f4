package batches

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// maxText is the most bytes of a text of the form.
const maxText = 2000

// newBatch asks for a file. The second factor is asked for before a file is chosen: a file does not survive another page.
func (ps *Pages) newBatch(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.ask(v, uploaded{}, nil), nil
}

// uploaded is the form of an upload, but for the file.
type uploaded struct{ name, again string }

func uploadForm(v *console.Visit, u uploaded, duplicate bool) page.Form {
	f := page.Form{ID: "upload", Action: path(v) + "/new", Submit: "Check the file", Fields: []page.Field{
		{Name: "name", Label: "Name of the batch", Value: u.name, Max: 100, Required: true, Hint: "Such as Salaries November. The same file under the same name is paid once."}}}
	if duplicate {
		f.Fields = append(f.Fields, page.Field{Name: "again", Label: "Why it is paid again", Value: u.again, Max: 500, Hint: "Fill this in only if the same rows must be paid a second time. The approver sees it in red."})
	}
	f.Fields = append(f.Fields, page.Field{Name: "file", Label: "File (XLSX or CSV)", Type: "file", Required: true, Hint: "At most 20 MB and 100,000 rows."})
	return f
}

// ask shows the form, with what was wrong.
func (ps *Pages) ask(v *console.Visit, u uploaded, wrong error) console.Answer {
	e := problem.From(wrong)
	f := uploadForm(v, u, e != nil && e.Code == codeDuplicate)
	var old page.Link
	if wrong != nil {
		f = console.Faulty(f, wrong)
		if b, is := e.Data.(batch.Batch); is {
			old = page.Link{Href: path(v) + "/" + b.ID, Text: b.Name}
		}
	}
	return console.Answer{Title: "Upload a file", Wrong: wrong != nil, Body: uploadPage(path(v), f, old)}
}

// codeDuplicate is the code of the refusal of rows that are a batch already.
const codeDuplicate = "duplicate_batch"

// upload reads the file as it arrives, and shows the draft that it makes.
func (ps *Pages) upload(v *console.Visit) (console.Answer, error) {
	v.FormPage = path(v) + "/new"
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	parts, err := v.R.MultipartReader()
	if err != nil {
		return console.Answer{}, errForm(err)
	}
	var u uploaded
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return ps.ask(v, u, problem.Field("file", "is required")), nil
		}
		if err != nil {
			return console.Answer{}, errForm(err)
		}
		if part.FormName() == "file" {
			return ps.read(v, u, part)
		}
		text, err := io.ReadAll(io.LimitReader(part, maxText))
		if err != nil {
			return console.Answer{}, errForm(err)
		}
		switch part.FormName() {
		case "name":
			u.name = strings.TrimSpace(string(text))
		case "again":
			u.again = strings.TrimSpace(string(text))
		}
	}
}

func errForm(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return problem.Wrap(err, problem.Invalid, "file_too_large", "The file must be at most 20 MB: divide it")
	}
	return problem.Wrap(err, problem.Malformed, "form_unreadable", "The form did not arrive whole. Go back and send it again.")
}

// readTime is how long a file may take to arrive.
const readTime = 55 * time.Second

func (ps *Pages) read(v *console.Visit, u uploaded, part *multipart.Part) (console.Answer, error) {
	_ = http.NewResponseController(v.W).SetReadDeadline(time.Now().Add(readTime)) // a connection without one keeps its own
	b, _, err := ps.Batches.ReadFile(v.Ctx, batch.Upload{Tenant: v.Tenant.ID, Name: u.name, Maker: v.Who.Person.ID, Again: u.again}, part, sheet.Options{})
	switch {
	case err == nil:
		return console.Answer{To: path(v) + "/" + b.ID}, nil
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.Duplicate), problem.Is(err, problem.InProgress), problem.Is(err, problem.Forbidden):
		return ps.ask(v, u, err), nil
	}
	var broken *http.MaxBytesError
	if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		return console.Answer{}, errForm(err)
	}
	return console.Answer{}, err
}

// template gives an empty file with the right headings.
func (ps *Pages) template(format sheet.Format) func(*console.Visit) (console.Answer, error) {
	return func(*console.Visit) (console.Answer, error) {
		return console.Answer{File: "payouts-template." + string(format), Media: format.MediaType(), Write: func(w http.ResponseWriter) error { return batch.WriteTemplate(w, format) }}, nil
	}
}
