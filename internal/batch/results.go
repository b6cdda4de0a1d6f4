package batch

import (
	"context"
	"io"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
)

// Result is a row with what became of it.
type Result struct {
	Row
	Reference string
	Status    string // bad, ready, dropped, refused, returned, or the status of the payout
	Reason    string // a sentence; empty: there is none
	At        time.Time
	Unknown   bool // the provider has not reported the outcome: it must not be paid again
}

// Results reads rows from a line on, at most a set of 1,000 lines, with what became of them.
func (s *Batches) Results(ctx context.Context, tenant, id string, from int) ([]Result, error) {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, b, from)
	if err != nil {
		return nil, err
	}
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

// resultColumns are the given columns, and behind them what became of the rows.
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
