package batches

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// filePath is the page of a file whose columns are not confirmed yet.
func filePath(v *console.Visit, id string) string { return v.Base() + "/batch-files/" + id }

// mappedFields are the fields of a row that a column of a file may hold, with their labels.
var mappedFields = []struct{ name, label, hint string }{
	{"number", "Phone or account number", ""},
	{"network", "Network or bank", ""},
	{"amount", "Amount in GHS", ""},
	{"name", "Name of the payee", "It is compared with the registered name."},
	{"reference", "Reference", "Texts of 12 to 36 letters, digits, dots, dashes and underscores become references of payouts. All other texts become notes."},
	{"note", "Note", ""},
}

// The answers to questions about rows of a file.
const (
	answerKeep = "keep"
	answerSkip = "skip"
)

// columns shows the first rows of a file, and asks what each column holds.
func (ps *Pages) columns(v *console.Visit) (console.Answer, error) {
	r, err := ps.received(v)
	if err != nil {
		return ps.goneFile(v, err)
	}
	if name := v.Param("sheet"); name != "" && name != r.Preview.Sheet {
		if r, err = ps.Batches.PreviewSheet(v.Ctx, r, name); err != nil {
			return ps.goneFile(v, err)
		}
	}
	return ps.askColumns(v, r, nil)
}

func (ps *Pages) received(v *console.Visit) (batch.Received, error) {
	return ps.Batches.Received(v.Ctx, v.Tenant.ID, v.Who.Person.ID, v.R.PathValue("id"))
}

// goneFile asks for a file again if the file can no longer be read. A file that does not exist, or belongs to another
// person, is a 404.
func (ps *Pages) goneFile(v *console.Visit, err error) (console.Answer, error) {
	if problem.Is(err, problem.Invalid) {
		return ps.ask(v, "", err), nil
	}
	return console.Answer{}, err
}

func (ps *Pages) askColumns(v *console.Visit, r batch.Received, wrong error) (console.Answer, error) {
	proposed := r.Preview.Columns
	old, found, err := ps.Batches.Remember(v.Ctx, r)
	if err != nil {
		return console.Answer{}, err
	}
	parts := []templ.Component{page.Head("Columns of the file", "Confirm the contents of each column. Rows are checked after this step, and paid only after a request.")}
	if found {
		parts = append(parts, rememberedNote(old))
		if old.Same() {
			proposed = old.Columns
		} else {
			proposed = joined(proposed, old.Columns)
		}
	}
	parts = append(parts, page.Panel(firstRows(r), page.Table("First rows of the file", sampleGrid(r))))
	f := columnsForm(v, r, proposed, wrong)
	if wrong != nil {
		f = console.Faulty(f, wrong)
		if b, is := problem.From(wrong).Data.(batch.Batch); is {
			parts = append(parts, page.Anchor(path(v)+"/"+b.ID, "Batch "+b.Name))
		}
	}
	parts = append(parts, page.Panel("Contents of the columns", page.Asking(f)), page.Anchor(path(v)+"/new", "Upload another file"))
	return console.Answer{Title: "Columns of the file", Wrong: wrong != nil, Body: stack(parts...)}, nil
}

func firstRows(r batch.Received) string {
	if r.Preview.Rows <= len(r.Preview.Sample) {
		return "All rows of " + r.Name
	}
	return fmt.Sprintf("First %d of %s rows of %s", len(r.Preview.Sample), page.Count(int64(r.Preview.Rows)), r.Name)
}

// rememberedNote names the differences between this file and an earlier one of the account.
func rememberedNote(old batch.Remembered) templ.Component {
	day := old.At.UTC().Format("2 Jan 2006")
	if old.Same() {
		return page.Note(page.Plain, "Columns of an earlier file", "The headings match the file of "+day+". The same columns are chosen below. Check them against the rows.")
	}
	var texts []string
	if len(old.New) > 0 {
		texts = append(texts, "New or moved headings: "+strings.Join(old.New, ", ")+".")
	}
	if len(old.Gone) > 0 {
		texts = append(texts, "Missing headings: "+strings.Join(old.Gone, ", ")+".")
	}
	return page.Note(page.Open, "The headings changed since the file of "+day, strings.Join(texts, " ")+" Check each column.")
}

// joined returns the columns of an earlier file, with the proposed columns for the other fields.
func joined(proposed, old map[string]int) map[string]int {
	both, taken := map[string]int{}, map[int]bool{}
	for _, list := range []map[string]int{old, proposed} {
		for _, field := range mappedFields {
			column, is := list[field.name]
			if _, has := both[field.name]; is && !has && !taken[column] {
				both[field.name], taken[column] = column, true
			}
		}
	}
	return both
}

// sampleGrid shows the first rows with the headings of the file.
func sampleGrid(r batch.Received) page.Grid {
	var list []console.Column[[]string]
	for i, name := range r.Preview.Names {
		list = append(list, console.Text(name, "", func(row []string) string {
			if i < len(row) {
				return row[i]
			}
			return ""
		}))
	}
	return console.Grid(list, r.Preview.Sample, nil)
}

func columnsForm(v *console.Visit, r batch.Received, proposed map[string]int, wrong error) page.Form {
	f := page.Form{ID: "columns", Action: filePath(v, r.ID), Submit: "Check the rows", Fields: []page.Field{{Name: "shown", Type: "hidden", Value: r.Preview.Sheet}}}
	choices := make([]page.Option, 1, len(r.Preview.Names)+1)
	choices[0].Text = "No column"
	for i, name := range r.Preview.Names {
		text := name
		if len(r.Preview.Sample) > 0 && i < len(r.Preview.Sample[0]) && r.Preview.Sample[0][i] != "" {
			text += " (" + r.Preview.Sample[0][i] + ")"
		}
		choices = append(choices, page.Option{Value: strconv.Itoa(i), Text: text})
	}
	for _, field := range mappedFields {
		usual := ""
		if column, is := proposed[field.name]; is {
			usual = strconv.Itoa(column)
		}
		f.Fields = append(f.Fields, page.Field{Name: field.name, Label: field.label, Hint: field.hint, Value: v.Given(field.name, usual), Options: choices})
	}
	f.Fields = append(f.Fields, questions(v, r)...)
	if e := problem.From(wrong); e != nil && e.Code == codeDuplicate || v.R.PostFormValue("again") != "" {
		f.Fields = append(f.Fields, page.Field{Name: "again", Label: "Reason for a second payment", Value: v.Given("again", ""), Max: 500,
			Hint: "Fill this in only if the same rows must be paid a second time. The approver sees it in red."})
	}
	return f
}

// questions returns questions about the parts of a file that a spreadsheet does not show, or shows as errors.
func questions(v *console.Visit, r batch.Received) (list []page.Field) {
	if len(r.Preview.Others) > 0 {
		sheets := []page.Option{{Value: r.Preview.Sheet, Text: r.Preview.Sheet}}
		for _, name := range r.Preview.Others {
			sheets = append(sheets, page.Option{Value: name, Text: name})
		}
		list = append(list, page.Field{Name: "sheet", Label: fmt.Sprintf("Sheet (1 of %d)", len(sheets)), Value: r.Preview.Sheet, Options: sheets,
			Hint: "Only this sheet is paid. Choose another one to see its columns."})
	}
	if r.Preview.Hidden > 0 {
		list = append(list, page.Field{Name: "hidden", Label: fmt.Sprintf("Hidden rows (%d)", r.Preview.Hidden), Value: v.Given("hidden", ""), Required: true,
			Options: []page.Option{{Text: "Choose"}, {Value: answerKeep, Text: "Pay hidden rows, too"}, {Value: answerSkip, Text: "Leave hidden rows out"}}})
	}
	if r.Preview.Errors > 0 {
		list = append(list, page.Field{Name: "errors", Label: fmt.Sprintf("Cells with an error such as #N/A (%d)", r.Preview.Errors), Value: v.Given("errors", ""), Required: true,
			Options: []page.Option{{Text: "Choose"}, {Value: answerKeep, Text: "Keep these rows for correction"}, {Value: answerSkip, Text: "Leave out rows with errors"}}})
	}
	return list
}

// confirmColumns makes a draft of a file. A change of the sheet shows the columns of that sheet first.
func (ps *Pages) confirmColumns(v *console.Visit) (console.Answer, error) {
	r, err := ps.received(v)
	if err != nil {
		return ps.goneFile(v, err)
	}
	value := v.R.PostFormValue
	if shown := value("shown"); shown != r.Preview.Sheet {
		if r, err = ps.Batches.PreviewSheet(v.Ctx, r, shown); err != nil {
			return ps.goneFile(v, err)
		}
	}
	if chosen := value("sheet"); chosen != "" && chosen != r.Preview.Sheet {
		return console.Answer{To: filePath(v, r.ID) + "?" + url.Values{"sheet": {chosen}}.Encode()}, nil
	}
	m, err := givenMapping(r, value)
	if err != nil {
		return ps.askColumns(v, r, err)
	}
	b, _, err := ps.Batches.Confirm(v.Ctx, batch.Upload{Tenant: v.Tenant.ID, Requester: v.Who.Person.ID, Again: strings.TrimSpace(value("again"))}, r.ID, m)
	switch {
	case err == nil:
		return console.Answer{To: path(v) + "/" + b.ID}, nil
	case problem.Is(err, problem.NotFound):
		return ps.goneFile(v, err)
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.Duplicate), problem.Is(err, problem.InProgress), problem.Is(err, problem.Forbidden):
		return ps.askColumns(v, r, err)
	}
	return console.Answer{}, err
}

// givenMapping parses the form of columns.
func givenMapping(r batch.Received, value func(string) string) (batch.Mapping, error) {
	m := batch.Mapping{Sheet: r.Preview.Sheet, Columns: map[string]int{}, SkipHidden: value("hidden") == answerSkip, SkipErrors: value("errors") == answerSkip}
	var bad problem.Fields
	for _, field := range mappedFields {
		text := value(field.name)
		if text == "" {
			continue
		}
		column, err := strconv.Atoi(text)
		if err != nil || column < 0 || column >= len(r.Preview.Names) {
			bad.Add(field.name, "must be a column of the file")
			continue
		}
		m.Columns[field.name] = column
	}
	for name, count := range map[string]int{"hidden": r.Preview.Hidden, "errors": r.Preview.Errors} {
		if answer := value(name); count > 0 && answer != answerKeep && answer != answerSkip {
			bad.Add(name, "needs an answer")
		}
	}
	return m, bad.Err()
}
