package batches

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// batchPage shows a batch with the actions on it.
func (ps *Pages) batchPage(v *console.Visit) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.show(v, b, nil)
}

// here returns the path of a batch's page.
func here(v *console.Visit, b batch.Batch) string { return path(v) + "/" + b.ID }

// show shows a batch, with the refusal of the last action if there is one.
func (ps *Pages) show(v *console.Visit, b batch.Batch, wrong error) (console.Answer, error) {
	var body templ.Component
	var err error
	switch b.Status {
	case batch.Draft:
		body, err = ps.draft(v, b, wrong)
	case batch.Requested:
		body, err = ps.requested(v, b)
	default:
		body, err = ps.sent(v, b)
	}
	if err != nil {
		return console.Answer{}, err
	}
	parts := []templ.Component{page.Head(b.Name, "")}
	if wrong != nil && b.Status != batch.Draft {
		parts = append(parts, page.Note(page.Bad, "Action refused", console.Sentence(problem.From(wrong).Message)))
	}
	return console.Answer{Title: b.Name, Wrong: wrong != nil, Body: stack(append(parts, body)...)}, nil
}

// facts returns the facts that every batch shows.
func facts(b batch.Batch, more ...page.Fact) []page.Fact {
	list := append([]page.Fact{{Name: "Status", Value: page.Mark(badges[b.Status])}}, more...)
	if b.Again != "" {
		list = append(list, page.Fact{Name: "Reason for paying again", Value: page.Text(b.Again)})
	}
	return append(list, page.Fact{Name: "Created", Value: page.Time(b.CreatedAt)}, page.Fact{Name: "Code", Value: page.ID(b.Code)}, page.Fact{Name: "ID", Value: page.Copyable(b.ID)})
}

func sums(b batch.Batch) []page.Fact {
	return []page.Fact{{Name: "Rows", Value: page.Text(strconv.Itoa(b.Ready))}, {Name: "Amount", Value: page.Money(b.Amount)}, {Name: "Fees", Value: page.Money(b.Charges)}, {Name: "Total", Value: page.Money(b.Total())}}
}

// shownBad is the maximum number of rows with problems on the page of a draft.
const shownBad = 100

// draft is the page of a draft: its counts, errors, overlaps with earlier batches, names and warnings, and the form of the request.
func (ps *Pages) draft(v *console.Visit, b batch.Batch, wrong error) (templ.Component, error) {
	n, err := ps.Batches.Count(v.Ctx, b)
	if err != nil {
		return nil, err
	}
	parts := []templ.Component{page.Panel("Draft", page.Facts(facts(b, page.Fact{Name: "Rows to pay", Value: page.Text(fmt.Sprintf("%d of %d rows", n.Rows[batch.RowReady], b.Lines))},
		page.Fact{Name: "Rows with errors", Value: page.Text(strconv.Itoa(n.Rows[batch.RowBad]))}, page.Fact{Name: "Dropped rows", Value: page.Text(strconv.Itoa(n.Rows[batch.RowDropped]))},
		page.Fact{Name: "Amount", Value: page.Money(n.Amount)}, page.Fact{Name: "Fees", Value: page.Money(n.Charges)}, page.Fact{Name: "Total", Value: page.Money(n.Amount + n.Charges)})))}
	for _, note := range b.Notes {
		parts = append(parts, page.Note(page.Open, "Notes about the file", console.Sentence(capital(note))))
	}
	overlaps, err := ps.overlaps(v, b, n)
	if err != nil {
		return nil, err
	}
	parts = append(parts, overlaps...)
	unsettled, err := ps.unsettled(v, b, n)
	if err != nil {
		return nil, err
	}
	bad, err := ps.badRows(v, b, n)
	if err != nil {
		return nil, err
	}
	names, err := ps.names(v, b, n)
	if err != nil {
		return nil, err
	}
	warnings, err := ps.warnings(v, b)
	if err != nil {
		return nil, err
	}
	parts = append(parts, unsettled, bad, names, warnings, page.Button(here(v, b)+"/rows", "Show all rows"))
	if v.Can(roles.RequestPayouts) && !v.Viewing {
		if n.Rows[batch.RowBad] == 0 && n.Rows[batch.RowReady] > 0 && !b.LooksUp() || wrong != nil {
			parts = append(parts, page.Panel("Request", page.Asking(requestForm(v, b, n, len(overlaps) > 0, wrong))))
		}
		parts = append(parts, page.ActionButton(here(v, b)+"/discard", "Discard draft", "danger"))
	}
	return stack(parts...), nil
}

// capital begins a text with a capital letter.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func requestForm(v *console.Visit, b batch.Batch, n batch.Counts, again bool, wrong error) page.Form {
	f := page.Form{ID: "request", Action: here(v, b) + "/request", Submit: "Request batch", Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: uuid.Must(uuid.NewV7()).String()},
		{Name: "reason", Label: "Reason", Value: v.Given("reason", ""), Max: 500, Required: true, Hint: "Enter the purpose, such as salaries of November. The approver sees it."}}}
	if again {
		f.Fields = append(f.Fields, page.Field{Name: "again", Label: "Reason for paying rows again", Value: v.Given("again", b.Again), Max: 500, Hint: "Fill this in only if rows must be paid a second time. The approver sees it in red."})
	}
	if differ := n.Names[batch.NameDifferent]; differ > 0 || v.R.PostFormValue("different") != "" {
		f.Fields = append(f.Fields, page.Field{Name: "different", Label: "Rows with a different registered name", Value: v.Given("different", ""), Max: 6, Required: differ > 0,
			Hint: fmt.Sprintf("Type %d to confirm that you checked these rows.", differ)})
	}
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	return f
}

// overlaps lists the rows that earlier batches paid. The first button keeps only the others.
func (ps *Pages) overlaps(v *console.Visit, b batch.Batch, n batch.Counts) (parts []templ.Component, err error) {
	list, err := ps.Batches.Overlaps(v.Ctx, v.Tenant.ID, b.ID)
	for _, o := range list {
		title, text := "%d of %d rows (%s) are also in %s", "That batch awaits approval."
		if !o.StartedAt.IsZero() {
			title, text = "%d of %d rows (%s) were paid by %s", "That batch started on "+o.StartedAt.UTC().Format("2 Jan 2006")+"."
		}
		parts = append(parts, page.Note(page.Bad, fmt.Sprintf(title, o.Rows, n.Rows[batch.RowReady], page.Cedis(o.Amount), page.Visible(o.Name)), text),
			page.Anchor(path(v)+"/"+o.ID, "Batch "+o.Name))
	}
	if len(parts) > 0 && v.Can(roles.RequestPayouts) && !v.Viewing {
		parts = append(parts, page.ActionButton(here(v, b)+"/new-rows", "Keep only new rows", "main"))
	}
	return parts, err
}

func (ps *Pages) badRows(v *console.Visit, b batch.Batch, n batch.Counts) (templ.Component, error) {
	if n.Rows[batch.RowBad] == 0 {
		return nil, nil
	}
	rows, err := ps.Batches.BadRows(v.Ctx, b, 0, shownBad)
	if err != nil {
		return nil, err
	}
	results := make([]batch.Result, len(rows))
	for i, r := range rows {
		results[i].Row = r
	}
	title := "Rows with errors"
	if n.Rows[batch.RowBad] > len(rows) {
		title += fmt.Sprintf(": first %d of %d", len(rows), n.Rows[batch.RowBad])
	}
	next := page.Note(page.Plain, "Correct or drop the rows with errors", "Open each row. You can request the batch when no row has an error.")
	return page.Join(next, page.Panel(title, page.Table(title, grid(v, b, results)))), nil
}

var warningColumns = []console.Column[batch.Warning]{
	console.Text("Row", "", func(w batch.Warning) string { return "Row " + strconv.Itoa(w.Line) }),
	console.Text("Warning", "", func(w batch.Warning) string { return w.Field + " " + w.Text }),
}

// warnings lists the warnings of the first 1,000 rows.
func (ps *Pages) warnings(v *console.Visit, b batch.Batch) (templ.Component, error) {
	list, err := ps.Batches.Warnings(v.Ctx, v.Tenant.ID, b.ID, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	grid := console.Grid(warningColumns, list[:min(len(list), shownBad)], mendsAt(v, b, func(w batch.Warning) int { return w.Line }))
	return page.Panel("Check these rows", page.Table("Warnings", grid)), nil
}

// requested is the page of a batch that waits for approval.
func (ps *Pages) requested(v *console.Visit, b batch.Batch) (templ.Component, error) {
	parts := []templ.Component{page.Panel("Batch", page.Facts(facts(b, sums(b)...)))}
	if b.Overlap > 0 {
		parts = append(parts, page.Note(page.Bad, fmt.Sprintf("%d of %d rows were paid by an earlier batch", b.Overlap, b.Ready), "Reason for paying again: "+b.Again))
	}
	n, err := ps.Batches.Count(v.Ctx, b)
	if err != nil {
		return nil, err
	}
	names, err := ps.names(v, b, n)
	if err != nil {
		return nil, err
	}
	parts = append(parts, names)
	if v.Can(roles.ReadChanges) {
		r, found, err := ps.Approvals.Changes.RequestOfBatch(v.Ctx, v.Tenant.ID, b.ID)
		if err != nil {
			return nil, err
		}
		if found {
			parts = append(parts, page.Panel("Change request", page.Table("Change request", approvals.Grid(v, []changes.Request{r}))))
		}
	}
	warnings, err := ps.warnings(v, b)
	return stack(append(parts, warnings, page.Button(here(v, b)+"/rows", "Show all rows"))...), err
}

// sent returns the page of a batch that has been sent.
func (ps *Pages) sent(v *console.Visit, b batch.Batch) (templ.Component, error) {
	n, err := ps.Payments.StatusesOfBatch(v.Ctx, b.ID)
	if err != nil {
		return nil, err
	}
	decided := min(b.Next-1, b.Lines)
	text := fmt.Sprintf("%d of %d rows sent: %d paid, %d failed, %d open", b.Accepted, b.Ready, n[book.StatusSuccess], n[book.StatusFailed], n[book.StatusPending])
	parts := []templ.Component{page.Panel("Batch", page.Facts(facts(b, append(sums(b), page.Fact{Name: "Reserved", Value: page.Money(b.Rest)}, page.Fact{Name: "Started", Value: page.Time(b.StartedAt)},
		page.Fact{Name: "Ended", Value: page.Time(b.EndedAt)})...)))}
	if b.Status == batch.Void {
		return stack(parts...), nil
	}
	live := templ.Component(progress(decided, b.Lines, text))
	switch waits, err := ps.Batches.CircuitOpen(v.Ctx, b); {
	case err != nil:
		return nil, err
	case waits:
		live = stack(live, page.Note(page.Open, "Batch waits", "The provider of the next row fails. Makola tries again and pauses the batch if the failure lasts."))
	}
	if b.EndedAt.IsZero() || n[book.StatusPending] > 0 {
		if live, err = v.Part("progress", 3, live); err != nil {
			return nil, err
		}
	}
	parts = append(parts, live)
	if b.Status == batch.Paused {
		why := causes[b.Cause]
		if why == "" {
			why = "Cause: " + strings.ReplaceAll(string(b.Cause), "_", " ")
		}
		parts = append(parts, page.Note(page.Open, "Batch paused", why+" Makola cancels a paused batch after seven days."))
	}
	if v.Can(roles.RequestPayouts) && !v.Viewing {
		parts = append(parts, ps.actions(v, b))
	}
	parts = append(parts, page.Button(here(v, b)+"/rows", "Show all rows"))
	if v.Can(roles.ExportPayments) {
		parts = append(parts, buttons(page.Button(here(v, b)+"/results.xlsx", "Results (XLSX)"), page.Button(here(v, b)+"/results.csv", "Results (CSV)")))
	}
	return stack(parts...), nil
}

// actions returns the actions on a batch that has been sent.
func (ps *Pages) actions(v *console.Visit, b batch.Batch) templ.Component {
	at := here(v, b)
	switch b.Status {
	case batch.Running:
		return buttons(page.ActionButton(at+"/pause", "Pause batch", ""))
	case batch.Paused:
		return stack(page.ActionButton(at+"/resume", "Resume batch", "main"), page.Asking(page.Form{ID: "cancel", Action: at + "/cancel", Submit: "Cancel remaining rows", Danger: true,
			Fields: []page.Field{{Name: "reason", Label: "Reason", Max: 500, Required: true, Hint: "Enter the reason. The money of rows that were not sent goes back to the wallet."}}}))
	}
	return buttons(page.ActionButton(at+"/retry", "Create draft from failed rows", ""), page.ActionButton(at+"/copy", "Create draft from all rows", ""))
}
