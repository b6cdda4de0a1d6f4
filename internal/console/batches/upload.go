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

// codeDuplicate is the code of the refusal of rows that are a batch already.
const codeDuplicate = "duplicate_batch"

// upload reads the file as it arrives, and leads to the page of its columns.
func (ps *Pages) upload(v *console.Visit) (console.Answer, error) {
	v.FormPage = path(v) + "/new"
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	parts, err := v.R.MultipartReader()
	if err != nil {
		return console.Answer{}, errForm(err)
	}
	name := ""
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return ps.ask(v, name, problem.Field("file", "is required")), nil
		}
		if err != nil {
			return console.Answer{}, errForm(err)
		}
		if part.FormName() == "file" {
			return ps.read(v, name, part)
		}
		text, err := io.ReadAll(io.LimitReader(part, maxText))
		if err != nil {
			return console.Answer{}, errForm(err)
		}
		if part.FormName() == "name" {
			name = strings.TrimSpace(string(text))
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

func (ps *Pages) read(v *console.Visit, name string, part *multipart.Part) (console.Answer, error) {
	_ = http.NewResponseController(v.W).SetReadDeadline(time.Now().Add(readTime)) // a connection without one keeps its own
	r, err := ps.Batches.Receive(v.Ctx, batch.Upload{Tenant: v.Tenant.ID, Name: name, Maker: v.Who.Person.ID}, part)
	switch {
	case err == nil:
		return console.Answer{To: filePath(v, r.ID)}, nil
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.InProgress), problem.Is(err, problem.Forbidden):
		return ps.ask(v, name, err), nil
	}
	var broken *http.MaxBytesError
	if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		return console.Answer{}, errForm(err)
	}
	return console.Answer{}, err
}

// template gives an empty file with the right headings.
func (ps *Pages) template(format sheet.Format) func(*console.Visit) (console.Answer, error) {
	return func(v *console.Visit) (console.Answer, error) {
		banks, err := ps.Batches.Banks(v.Ctx, v.Tenant.ID)
		if err != nil {
			return console.Answer{}, err
		}
		return console.Answer{File: "payouts-template." + string(format), Media: format.MediaType(), Write: func(w http.ResponseWriter) error { return batch.WriteTemplate(w, format, banks) }}, nil
	}
}
