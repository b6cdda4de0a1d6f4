package batches

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

func rowPath(v *console.Visit, b batch.Batch, line int) string {
	return here(v, b) + "/rows/" + strconv.Itoa(line)
}

// whole reports whether the visitor may see whole numbers. Approvers may see those of a batch that they decide about.
func whole(v *console.Visit, b batch.Batch) bool {
	return v.Can(roles.ReadNumbers) || b.Status == batch.Requested && v.Can(roles.ApprovePayouts)
}

// number returns a row's number as far as the visitor may see it.
func number(v *console.Visit, b batch.Batch, r batch.Row) string {
	text := r.Given.Number
	if r.Account != "" {
		text = r.Account
	}
	if whole(v, b) {
		return text
	}
	return page.Masked(text)
}

// rowColumns returns the columns of rows with their states.
func rowColumns(v *console.Visit, b batch.Batch, became func(batch.Result) templ.Component) []console.Column[batch.Result] {
	return []console.Column[batch.Result]{
		console.Count("Row", "", func(r batch.Result) int64 { return int64(r.Line) }),
		console.Text("Number", "", func(r batch.Result) string { return number(v, b, r.Row) }).Laid(console.Under),
		console.Text("Network or bank", "", func(r batch.Result) string { return batch.PlaceOf(r.Row) }).Laid(console.Under),
		console.Shown("Amount", amount).Laid(console.Right),
		console.Text("Name", "", func(r batch.Result) string { return name(v, b, r.Row) }).Laid(console.Minor),
		console.Text("Registered name", "", func(r batch.Result) string { return registered(v, b, r.Row) }).Laid(console.Wide),
		console.Shown("Status", became),
	}
}

// amount returns the amount of a row, or the given text if it is not an amount.
func amount(r batch.Result) templ.Component {
	if r.Amount == 0 {
		return page.Text(r.Given.Amount)
	}
	return page.Money(r.Amount)
}

func name(v *console.Visit, b batch.Batch, r batch.Row) string {
	if !whole(v, b) {
		return ""
	}
	return r.Name
}

// mendsAt returns the page on which a row of a draft is corrected. It is nil for visitors who cannot correct rows,
// and for other batches.
func mendsAt[T any](v *console.Visit, b batch.Batch, line func(T) int) func(T) string {
	if b.Status != batch.Draft || !v.Can(roles.RequestPayouts) || v.Viewing {
		return nil
	}
	return func(row T) string { return rowPath(v, b, line(row)) }
}

// grid returns rows as a table. Rows of a draft link to the page that mends them.
func grid(v *console.Visit, b batch.Batch, rows []batch.Result) page.Grid {
	became := func(r batch.Result) templ.Component {
		if r.State != batch.RowAccepted { // for accepted rows people look for the outcome of the payout
			return page.Text(state(r.Row))
		}
		text := r.Status
		if r.Reason != "" {
			text += ": " + r.Reason
		}
		return page.Anchor(v.Base()+"/payments/"+r.Payment, text)
	}
	return console.Grid(rowColumns(v, b, became), rows, mendsAt(v, b, func(r batch.Result) int { return r.Line }))
}

// stateWords are the texts of the states of rows.
var stateWords = map[batch.RowState]string{batch.RowReady: "Ready", batch.RowDropped: "Dropped", batch.RowRefused: "Refused", batch.RowAccepted: "Sent"}

// state is the state of a row, or the reasons against paying it.
func state(r batch.Row) string {
	if r.State != batch.RowBad {
		if r.Reason != "" {
			return stateWords[r.State] + ": " + r.Reason
		}
		return stateWords[r.State]
	}
	var texts []string
	for _, field := range slices.Sorted(maps.Keys(r.Problems)) {
		texts = append(texts, field+" "+strings.Join(r.Problems[field], ", "))
	}
	return strings.Join(texts, "; ")
}

// shownRows is the maximum number of rows on a page.
const shownRows = 200

// viewedEvery is how often the audit log records that somebody views the rows of a batch.
const viewedEvery = time.Hour

// viewed records that the visitor saw whole numbers and names of a batch.
func (ps *Pages) viewed(v *console.Visit, b batch.Batch) error {
	if !whole(v, b) {
		return nil
	}
	return ps.Audit.RecordOnce(v.Ctx, v.Who.Session.ID+" "+b.ID, viewedEvery, v.Entry("batch.rows", v.Tenant.ID, b.ID))
}

// rows shows the rows of a batch from a line on.
func (ps *Pages) rows(v *console.Visit) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	from := 1
	if text := v.Param("from"); text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 1 {
			return console.Answer{}, problem.Field("from", "must be the number of a row")
		}
	}
	if err := ps.viewed(v, b); err != nil {
		return console.Answer{}, err
	}
	results, err := ps.Batches.Results(v.Ctx, v.Tenant.ID, b.ID, from)
	if err != nil {
		return console.Answer{}, err
	}
	results = results[:min(len(results), shownRows)]
	l := page.List{Title: "Rows of " + b.Name, Grid: grid(v, b, results), Empty: page.Empty{Title: "No rows", Text: "The batch has no more rows."}}
	if from > 1 {
		l.Prev = v.Query("from", strconv.Itoa(max(1, from-shownRows)))
	}
	if from+shownRows <= b.Lines {
		l.Next = v.Query("from", strconv.Itoa(from+shownRows))
	}
	return console.Answer{Title: l.Title, Body: stack(page.Anchor(here(v, b), "Back to the batch"), page.Listing(l))}, nil
}

// one finds the row of the path.
func (ps *Pages) one(v *console.Visit) (b batch.Batch, r batch.Row, err error) {
	if b, err = ps.find(v); err != nil {
		return b, r, err
	}
	line, err := strconv.Atoi(v.R.PathValue("line"))
	if err != nil || line < 1 || line > batch.MaxRows {
		return b, r, console.ErrNoPage()
	}
	if r, err = ps.Batches.Row(v.Ctx, b, line); problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return b, r, err
}

// row shows the form that corrects a row.
func (ps *Pages) row(v *console.Visit) (console.Answer, error) {
	b, r, err := ps.one(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.askRow(v, b, r, nil), nil
}

func (ps *Pages) askRow(v *console.Visit, b batch.Batch, r batch.Row, wrong error) console.Answer {
	g := r.Given
	if !whole(v, b) {
		g.Number, g.Name = page.Masked(g.Number), ""
	}
	f := page.Form{ID: "row", Action: rowPath(v, b, r.Line), Submit: "Save row"}
	for _, in := range []struct{ name, label, value string }{{"number", "Phone or account number", g.Number}, {"network", "Network or bank", g.Network}, {"amount", "Amount in GHS", g.Amount}, {"name", "Name", g.Name},
		{"reference", "Reference", g.Reference}, {"note", "Note", g.Note}} {
		f.Fields = append(f.Fields, page.Field{Name: in.name, Label: in.label, Value: in.value, Max: 200, Wrong: strings.Join(r.Problems[in.name], ", ")})
	}
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	title := "Row " + strconv.Itoa(r.Line) + " of " + b.Name
	return console.Answer{Title: title, Wrong: wrong != nil, Body: stack(page.Head(title, ""), page.Asking(f), page.ActionButton(rowPath(v, b, r.Line)+"/drop", "Drop row", "danger"), page.Anchor(here(v, b), "Back to the batch"))}
}

// mend stores a corrected row, and shows it again if it still cannot be paid.
func (ps *Pages) mend(v *console.Visit) (console.Answer, error) {
	b, r, err := ps.one(v)
	if err != nil {
		return console.Answer{}, err
	}
	value := v.R.PostFormValue
	mended, err := ps.Batches.Mend(v.Ctx, b.Tenant, b.ID, r.Line, batch.Given{Number: value("number"), Network: value("network"), Amount: value("amount"), Name: value("name"),
		Reference: value("reference"), Note: value("note")})
	if problem.Is(err, problem.Invalid) {
		return ps.askRow(v, b, r, err), nil
	}
	if err == nil && mended.State == batch.RowBad {
		a := ps.askRow(v, b, mended, nil)
		a.Wrong = true
		return a, nil
	}
	return console.Answer{To: here(v, b)}, err
}

// drop leaves a row out.
func (ps *Pages) drop(v *console.Visit) (console.Answer, error) {
	b, r, err := ps.one(v)
	if err == nil {
		err = ps.Batches.Drop(v.Ctx, b.Tenant, b.ID, r.Line)
	}
	return ps.done(v, b, err)
}
