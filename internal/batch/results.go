package batch

import (
	"context"
	"io"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
)

// Result is a row with its result.
type Result struct {
	Row
	Reference string
	Status    string // bad, ready, dropped, refused, returned, or the status of the payout
	Reason    string // reason as a sentence; empty: there is none
	At        time.Time
	Unknown   bool // the provider has not reported the outcome, so the row must not be paid again
}

// Results returns rows with their results, from a line on, at most a set of 1,000 lines.
func (s *Batches) Results(ctx context.Context, tenant, id string, from int) ([]Result, error) {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, b, from)
	if err != nil {
		return nil, err
	}
	return s.resultsOf(ctx, b, rows)
}

// resultsOf returns rows with their results.
func (s *Batches) resultsOf(ctx context.Context, b Batch, rows []Row) ([]Result, error) {
	var ids []string
	for _, r := range rows {
		if r.Payment != "" {
			ids = append(ids, r.Payment)
		}
	}
	payouts, err := s.payments.ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(rows))
	for i, r := range rows {
		results[i] = resultOf(b, r, payouts[r.Payment])
	}
	return results, nil
}

// Statuses are the statuses of results.
func Statuses() []string {
	return []string{string(RowBad), string(RowReady), string(RowDropped), string(RowRefused), statusReturned, string(book.StatusPending), string(book.StatusSuccess), string(book.StatusFailed)}
}

// ofStatus selects rows by their state, and accepted rows by the status of their payout.
const ofStatus = ` FROM batch_rows r LEFT JOIN payments p ON p.id = r.payment WHERE r.batch = $1 AND r.state = $2
AND ($3 = '' OR CASE p.status WHEN 'waiting' THEN 'pending' ELSE p.status END = $3)`

const (
	countOfStatus = `SELECT count(*)` + ofStatus

	linesOfStatus = `SELECT r.line` + ofStatus + ` ORDER BY r.line LIMIT $4 OFFSET $5`

	selectLines = `SELECT ` + rowColumns + ` FROM rows($1) AS r JOIN batch_rows ON batch_rows.batch IN (r.of_batch) AND batch_rows.line = r.of_line ORDER BY line`
)

// Find returns a page of the results of a batch with a status. An empty status means all. Pages count from 1. total
// is the number of such rows.
func (s *Batches) Find(ctx context.Context, b Batch, status string, page, size int) (list []Result, total int, err error) {
	var rows []Row
	first := (page - 1) * size
	err = s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		if status == "" {
			total = b.Lines
			rows, err = rowsIn(tx, b.ID, first+1, first+size)
			return err
		}
		rows, total, err = rowsOfStatus(tx, b, status, first, size)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	list, err = s.resultsOf(ctx, b, rows)
	return list, total, err
}

func rowsOfStatus(tx *db.Tx, b Batch, status string, first, size int) (rows []Row, total int, err error) {
	state, paid := RowState(status), ""
	switch {
	case status == statusReturned, status == string(RowReady):
		if b.EndedAt.IsZero() == (status == statusReturned) {
			return nil, 0, nil
		}
		state = RowReady
	case status == string(book.StatusPending), status == string(book.StatusSuccess), status == string(book.StatusFailed):
		state, paid = RowAccepted, status
	}
	if _, err := tx.One(countOfStatus, []any{b.ID, state, paid}, &total); err != nil || first >= total {
		return nil, total, err
	}
	lines, err := db.All(tx, linesOfStatus, []any{b.ID, state, paid, int64(size), int64(first)}, func(row *storedRow, r *db.Row) error {
		row.batch = b.ID
		return r.Scan(&row.Line)
	})
	if err != nil {
		return nil, total, err
	}
	rows, err = db.All(tx, selectLines, []any{db.RowsOf(foundColumns, lines)}, (*Row).scan)
	return rows, total, err
}

// foundColumns name the lines of selectLines, whose columns are those of batch_rows.
var foundColumns = []db.Column[storedRow]{
	{Name: "of_batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "of_line", Int: func(r storedRow) int64 { return int64(r.Line) }},
}

// statusReturned is the status of a row that was not sent: its money went back with the rest.
const statusReturned = "returned"

func resultOf(b Batch, r Row, pay book.Payment) Result {
	result := Result{Row: r, Reference: ReferenceOf(b.Code, r), Status: string(r.State), Reason: r.Reason}
	switch {
	case r.State == RowAccepted:
		result.Status, result.At = pay.PublicStatus(), pay.CreatedAt
		if !pay.SettledAt.IsZero() {
			result.At = pay.SettledAt
		}
		if pay.Reason != "" {
			result.Reason = provider.Sentence(pay.Reason)
		}
		result.Unknown = pay.Status.Open() && !pay.EscalatedAt.IsZero()
	case r.State == RowReady && !b.EndedAt.IsZero():
		result.Status, result.At = statusReturned, b.EndedAt
	}
	return result
}

// Numbers is a batch with the number of its rows by status. The sums of a draft are those of its ready rows.
type Numbers struct {
	Batch
	Rows map[string]int
}

// Numbers counts the rows of a batch that was read.
func (s *Batches) Numbers(ctx context.Context, b Batch) (n Numbers, err error) {
	counted, err := s.Count(ctx, b)
	if err != nil {
		return n, err
	}
	payouts, err := s.payments.StatusesOfBatch(ctx, b.ID)
	if err != nil {
		return n, err
	}
	n = Numbers{b, map[string]int{}}
	for state, rows := range counted.Rows {
		if state != RowAccepted {
			n.Rows[string(state)] = rows
		}
	}
	if !b.EndedAt.IsZero() {
		n.Rows[statusReturned] = n.Rows[string(RowReady)]
		delete(n.Rows, string(RowReady))
	}
	for status, rows := range payouts {
		n.Rows[string(status)] += rows
	}
	if b.Status == Draft {
		n.Amount, n.Charges = counted.Amount, counted.Charges
	}
	return n, nil
}

// resultColumns are the columns of the file, followed by the result of the row.
var resultColumns = []sheet.Column[Result]{
	{Head: fieldNumber, Value: func(r Result) sheet.Value { return sheet.String(r.Given.Number) }},
	{Head: "network or bank", Value: func(r Result) sheet.Value { return sheet.String(r.Given.Network) }},
	{Head: fieldAmount, Value: func(r Result) sheet.Value { return sheet.Amount(int64(r.Amount)) }},
	{Head: fieldName, Value: func(r Result) sheet.Value { return sheet.String(r.Given.Name) }},
	{Head: fieldReference, Value: func(r Result) sheet.Value { return sheet.String(r.Given.Reference) }},
	{Head: fieldNote, Value: func(r Result) sheet.Value { return sheet.String(r.Given.Note) }},
	{Head: "status", Value: func(r Result) sheet.Value { return sheet.String(r.Status) }},
	{Head: "reason", Value: func(r Result) sheet.Value { return sheet.String(r.Reason) }},
	{Head: "payment reference", Value: func(r Result) sheet.Value { return sheet.String(r.Reference) }},
	{Head: "fee", Value: func(r Result) sheet.Value { return sheet.Amount(int64(r.Charges)) }},
	{Head: "time", Value: func(r Result) sheet.Value { return sheet.Time(r.At) }},
}

// templateHead are the headings of a file of payouts.
var templateHead = []string{fieldNumber, "network or bank", fieldAmount, fieldName, fieldReference, fieldNote}

// WriteTemplate writes an empty file of payouts. An XLSX has the banks in a second sheet.
func WriteTemplate(to io.Writer, format sheet.Format, banks []route.Bank) error {
	if format == sheet.XLSX {
		names := [][]string{{"bank", "sort code"}}
		for _, bank := range banks {
			names = append(names, []string{bank.Name, bank.Code})
		}
		return sheet.WriteSheets(to, sheet.TextSheet{Name: "Payouts", Rows: [][]string{templateHead}}, sheet.TextSheet{Name: "Banks", Rows: names})
	}
	columns := make([]sheet.Column[int], len(templateHead))
	for i, head := range templateHead {
		columns[i].Head = head
	}
	w, err := sheet.NewWriter(to, format, columns)
	if err != nil {
		return err
	}
	return w.Close()
}

// WriteResults writes the results of a whole batch as a table.
func (s *Batches) WriteResults(ctx context.Context, to io.Writer, format sheet.Format, tenant, id string) error {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	w, err := sheet.NewWriter(to, format, resultColumns)
	if err != nil {
		return err
	}
	for from := 1; from <= b.Lines; from += blockRows {
		results, err := s.Results(ctx, tenant, id, from)
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := w.Write(r); err != nil {
				return err
			}
		}
	}
	return w.Close()
}
