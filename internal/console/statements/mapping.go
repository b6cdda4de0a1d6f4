package statements

import (
	"strconv"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/sheet"
)

// columnInput is the name of the input of a field's column.
func columnInput(field reconcile.Field) string { return "column_" + string(field) }

// fieldLabels name the fields for a person.
var fieldLabels = map[reconcile.Field]string{
	reconcile.FieldDate: "Date", reconcile.FieldID: "Provider's transaction id", reconcile.FieldReference: "Our reference", reconcile.FieldSettlement: "Settlement id or bank reference",
	reconcile.FieldStatus: "Status", reconcile.FieldType: "Type", reconcile.FieldFrom: "From", reconcile.FieldTo: "To", reconcile.FieldAmount: "Amount", reconcile.FieldCurrency: "Currency",
	reconcile.FieldDebit: "Debit", reconcile.FieldCredit: "Credit", reconcile.FieldFee: "Fee", reconcile.FieldBalance: "Balance", reconcile.FieldText: "Description",
}

// answerTexts name the answers to questions.
var answerTexts = map[string]string{
	string(reconcile.DayFirst): "The day comes first", string(reconcile.MonthFirst): "The month comes first",
	string(reconcile.SignIn): "An amount above zero came in", string(reconcile.SignOut): "An amount above zero went out",
}

// open opens the draft of the path.
func (ps *Pages) open(v *console.Visit) (reconcile.Draft, *sheet.File, error) {
	d, file, err := ps.Reconcile.OpenDraft(v.Ctx, v.R.PathValue("id"), v.Who.Person.ID)
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return d, file, err
}

// draft shows how the first file of a source is read.
func (ps *Pages) draft(v *console.Visit) (console.Answer, error) {
	d, file, err := ps.open(v)
	if err != nil {
		return console.Answer{}, err
	}
	defer func() { _ = file.Close() }() // if it fails, the system removes the copy later
	done, err := ps.Reconcile.Import(v.Ctx, ps.by(v, d.Source, d.FileName), file)
	switch {
	case err != nil && !problem.Is(err, problem.Invalid):
		return console.Answer{}, err
	case err == nil && done.Reading == nil: // another person has confirmed the source meanwhile
		return ps.done(v, d, done)
	}
	return ps.mapping(d, done.Reading, reconcile.Layout{}, err), nil
}

// answers reads the form.
func (ps *Pages) answers(v *console.Visit) reconcile.Layout {
	l := reconcile.Layout{Dates: reconcile.DateOrder(v.R.PostFormValue(reconcile.QuestionDates)), Sign: reconcile.Sign(v.R.PostFormValue(reconcile.QuestionSign))}
	for _, field := range reconcile.Fields() {
		if place, err := strconv.Atoi(v.R.PostFormValue(columnInput(field))); err == nil {
			if l.Columns == nil {
				l.Columns = map[reconcile.Field]int{}
			}
			l.Columns[field] = place
		}
	}
	return l
}

// confirm imports the file as the person has confirmed.
func (ps *Pages) confirm(v *console.Visit) (console.Answer, error) {
	d, file, err := ps.open(v)
	if err != nil {
		return console.Answer{}, err
	}
	defer func() { _ = file.Close() }() // if it fails, the system removes the copy later
	upload := ps.by(v, d.Source, d.FileName)
	upload.Answers, upload.Confirmed = ps.answers(v), true
	done, err := ps.Reconcile.Import(v.Ctx, upload, file)
	switch {
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.InProgress):
		upload.Confirmed, upload.Answers.Columns = false, nil
		shown, _ := ps.Reconcile.Import(v.Ctx, upload, file) // a file that cannot be read has no preview
		return ps.mapping(d, shown.Reading, upload.Answers, err), nil
	case err != nil:
		return console.Answer{}, err
	case done.Reading != nil: // another question
		return ps.mapping(d, done.Reading, upload.Answers, problem.Field(done.Reading.Questions[0].Name, "is required")), nil
	}
	return ps.done(v, d, done)
}

func (ps *Pages) done(v *console.Visit, d reconcile.Draft, done reconcile.Imported) (console.Answer, error) {
	to, err := ps.imported(v, done)
	if err == nil {
		err = ps.Reconcile.Discard(v.Ctx, d)
	}
	return console.Answer{To: to}, err
}

// discard deletes the draft.
func (ps *Pages) discard(v *console.Visit) (console.Answer, error) {
	d, file, err := ps.open(v)
	if err != nil {
		return console.Answer{}, err
	}
	_ = file.Close() // if it fails, the system removes the copy later
	return console.Answer{To: base}, ps.Reconcile.Discard(v.Ctx, d)
}

// mapping is the page of a draft: the columns, ten rows, and the questions.
func (ps *Pages) mapping(d reconcile.Draft, r *reconcile.Reading, answers reconcile.Layout, wrong error) console.Answer {
	source, _ := reconcile.ParseSource(d.Source)
	title := "Check how the file is read"
	parts := []templ.Component{page.Head(title, "First file of "+source.Title()+": "+d.FileName+". Later files with the same headings are read in the same way.")}
	if r != nil {
		if len(r.Sample) > 0 {
			parts = append(parts, page.Panel("First rows", page.Table("First rows", preview(r))))
		}
		f := page.Form{ID: "mapping", Action: base + "/drafts/" + d.ID, Submit: "Import the file", Fields: questions(r, answers)}
		if wrong != nil {
			f = console.Faulty(f, wrong)
		}
		parts = append(parts, page.Panel("Columns", page.Asking(f)))
	} else if wrong != nil {
		parts = append(parts, page.Note(page.Bad, "The file cannot be read", console.Sentence(refusal(wrong))))
	}
	parts = append(parts, page.ActionButton(base+"/drafts/"+d.ID+"/discard", "Discard the file", "danger"))
	return console.Answer{Title: title, Wrong: wrong != nil, Body: page.Join(parts...)}
}

// refusal returns the text of a refused file.
func refusal(err error) string {
	e := problem.From(err)
	for _, texts := range e.Fields {
		return "The file: " + texts[0]
	}
	return e.Message
}

// questions are the inputs: a column for each field, and the answers that the file leaves open.
func questions(r *reconcile.Reading, answers reconcile.Layout) (fields []page.Field) {
	for _, q := range r.Questions {
		if q.Name == reconcile.QuestionMap {
			continue
		}
		options := []page.Option{{Value: "", Text: "Choose"}}
		for _, a := range q.Answers {
			options = append(options, page.Option{Value: a, Text: answerTexts[a]})
		}
		fields = append(fields, page.Field{Name: q.Name, Label: q.Text, Options: options, Required: true})
	}
	for name, value := range map[string]string{reconcile.QuestionDates: string(answers.Dates), reconcile.QuestionSign: string(answers.Sign)} {
		if value != "" {
			fields = append(fields, page.Field{Name: name, Type: "hidden", Value: value})
		}
	}
	options := []page.Option{{Value: "", Text: "None"}}
	for i, heading := range r.Headings {
		options = append(options, page.Option{Value: strconv.Itoa(i), Text: strconv.Itoa(i+1) + ": " + heading})
	}
	for _, field := range reconcile.Fields() {
		value := ""
		if place, is := r.Columns[field]; is {
			value = strconv.Itoa(place)
		}
		fields = append(fields, page.Field{Name: columnInput(field), Label: fieldLabels[field], Options: options, Value: value})
	}
	return fields
}

// preview shows the fields of the first rows.
func preview(r *reconcile.Reading) page.Grid {
	var columns []console.Column[[]string]
	for _, field := range reconcile.Fields() {
		place, is := r.Columns[field]
		if !is {
			continue
		}
		columns = append(columns, console.Text(fieldLabels[field], "", func(row []string) string {
			if place >= len(row) {
				return ""
			}
			if field == reconcile.FieldFrom || field == reconcile.FieldTo {
				return page.Masked(row[place])
			}
			return row[place]
		}))
	}
	return console.Grid(columns, r.Sample, nil)
}
