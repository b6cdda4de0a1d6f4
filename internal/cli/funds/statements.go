package funds

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/sheet"
)

// Statements holds the commands of makola statements.
type Statements struct {
	Import     statementsImport     `cmd:"" help:"Import a statement file of a provider or bank."`
	List       statementsList       `cmd:"" help:"List imported statements, newest first."`
	Exceptions statementsExceptions `cmd:"" help:"List differences between statements and our payments, newest first. makola change resolves them."`
}

func importedColumns() []frame.Column[reconcile.Statement] {
	return []frame.Column[reconcile.Statement]{
		{Name: "id", Value: func(s reconcile.Statement) any { return s.ID }},
		{Name: "source", Value: func(s reconcile.Statement) any { return s.Source }},
		{Name: "file", Value: func(s reconcile.Statement) any { return s.FileName }},
		{Name: "first", Value: func(s reconcile.Statement) any { return s.First }},
		{Name: "last", Value: func(s reconcile.Statement) any { return s.Last }},
		{Name: "lines", Value: func(s reconcile.Statement) any { return int64(s.Lines) }},
		{Name: "added", Value: func(s reconcile.Statement) any { return int64(s.Added) }},
		{Name: "changed", Value: func(s reconcile.Statement) any { return int64(s.Changed) }},
		{Name: "chains", Value: func(s reconcile.Statement) any { return s.Chains }},
		{Name: "complete", Value: func(s reconcile.Statement) any { return s.Done }},
		{Name: "uploaded_by", Value: func(s reconcile.Statement) any { return s.UploaderName }},
		{Name: "uploaded_at", Value: func(s reconcile.Statement) any { return s.UploadedAt }},
	}
}

type statementsImport struct {
	frame.Common
	frame.Reasoned
	File    string         `arg:"" help:"CSV or XLSX file; - is standard input."`
	Source  string         `name:"source" required:"" placeholder:"NAME" help:"Account of the statement, such as live/mtn/collection, test/hubtel/disbursement or live/bank/gcb. Default mode: live."`
	Confirm bool           `name:"confirm" help:"Confirm that the first file of a source is read correctly. Without it the columns and ten rows are printed, and nothing is stored."`
	Dates   string         `name:"dates" enum:"dmy,mdy," default:"" placeholder:"ORDER" help:"Order of day and month in the first file of a source: dmy or mdy."`
	Sign    string         `name:"sign" enum:"in,out,balance,columns," default:"" placeholder:"SIGN" help:"Direction of positive amounts in the first file of a source: in, out, or balance if the balance column shows it."`
	Column  map[string]int `name:"column" placeholder:"FIELD=NUMBER" help:"Column of a field in the first file of a source, counted from 1, such as date=1. Repeat the flag for every field."`
}

// answers returns the answers to the questions about a first file.
func (c *statementsImport) answers() reconcile.Layout {
	l := reconcile.Layout{Dates: reconcile.DateOrder(c.Dates), Sign: reconcile.Sign(c.Sign)}
	for name, place := range c.Column {
		if l.Columns == nil {
			l.Columns = map[reconcile.Field]int{}
		}
		l.Columns[reconcile.Field(name)] = place - 1
	}
	return l
}

// Run imports.
func (c *statementsImport) Run(e *frame.Env) error {
	for name := range c.Column {
		if !slices.Contains(reconcile.Fields(), reconcile.Field(name)) {
			return frame.Usage(fmt.Sprintf("There is no field %s: the fields are %s", name, fieldNames()))
		}
	}
	from, err := c.openFile()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // an error of closing is ignored, because the file was only read
	file, err := sheet.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // if the copy cannot be removed, the system removes it later
	return c.With(e, func(o *frame.Opened) error { return c.store(e, o, file) })
}

func (c *statementsImport) store(e *frame.Env, o *frame.Opened, file *sheet.File) error {
	done, err := o.Reconcile(nil).Import(e.Ctx, reconcile.Upload{Source: c.Source, FileName: filepath.Base(c.File), By: o.By.Visitor.Person.ID, ByName: o.Actor, Answers: c.answers(), Confirmed: c.Confirm}, file)
	switch {
	case err != nil:
		return err
	case done.Reading != nil:
		showReading(e.Stderr, done.Reading)
		return problem.New(problem.Invalid, "statement_unconfirmed", "Nothing was stored: check how the file is read, and repeat the command with --confirm and the answers")
	case done.Repeated:
		fmt.Fprintln(e.Stderr, "This file was imported before. Nothing changed.")
		return frame.PrintOne(e.Stdout, c.Output, importedColumns(), done.Statement)
	}
	s := done.Statement
	if err := o.Change(e.Ctx, audit.Entry{Action: "statements.import", Subject: s.ID}, func(*db.Tx) (any, error) {
		return map[string]any{"source": s.Source, "file": s.FileName, "digest": s.Digest, "lines": s.Lines, "added": s.Added, "changed": s.Changed}, nil
	}); err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, c.Output, importedColumns(), s)
}

// showReading prints how a first file would be read.
func showReading(to io.Writer, r *reconcile.Reading) {
	for _, field := range slices.Sorted(maps.Keys(r.Columns)) {
		if place := r.Columns[field]; place < len(r.Headings) {
			fmt.Fprintf(to, "  %-12s column %d, %s\n", field, place+1, frame.Cell(r.Headings[place]))
		}
	}
	if len(r.Columns) == 0 {
		for i, heading := range r.Headings {
			fmt.Fprintf(to, "  column %d  %s\n", i+1, frame.Cell(heading))
		}
	}
	for _, row := range r.Sample {
		fmt.Fprintln(to, "  "+frame.Cell(strings.Join(row, " | ")))
	}
	if r.Lines > 0 && len(r.Questions) == 0 {
		fmt.Fprintf(to, "  %d lines; dates %s, amounts %s\n", r.Lines, r.Dates, r.Sign)
	}
	for _, q := range r.Questions {
		fmt.Fprintf(to, "%s Answer with --%s %s\n", q.Text, flagOf(q.Name), strings.Join(q.Answers, " or "))
	}
}

// flagOf returns the flag that answers a question.
func flagOf(question string) string {
	if question == reconcile.QuestionMap {
		return "column FIELD=NUMBER for each of " + fieldNames() + "; date and amount, or debit and credit, are required."
	}
	return question
}

func fieldNames() string {
	names := make([]string, 0, len(reconcile.Fields()))
	for _, field := range reconcile.Fields() {
		names = append(names, string(field))
	}
	return strings.Join(names, ", ")
}

// openFile opens the file to read.
func (c *statementsImport) openFile() (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, problem.Wrap(err, problem.Malformed, "no_file", "Cannot open the file: "+err.Error())
	}
	return file, nil
}

type statementsList struct {
	frame.Common
	Before string      `name:"before" placeholder:"ID" help:"List statements before this one."`
	Limit  frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

// Run lists.
func (c *statementsList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		list, err := o.Reconcile(nil).Statements(e.Ctx, c.Before, int(c.Limit))
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, importedColumns(), list)
	})
}

type statementsExceptions struct {
	frame.Common
	Source string      `name:"source" placeholder:"NAME" help:"Only exceptions of this statement account, such as live/mtn/collection."`
	Kind   string      `name:"kind" enum:"theirs_only,ours_only,amount,fee,state,twice," default:"" placeholder:"KIND" help:"Only exceptions with this difference: theirs_only, ours_only, amount, fee, state or twice."`
	Ending string      `name:"ended" enum:"agreed,booked,settled,suspense,released,adopted,funded,written_off," default:"" placeholder:"HOW" help:"Only exceptions with this resolution, such as suspense. Default: open exceptions."`
	Before string      `name:"before" placeholder:"ID" help:"List exceptions before this one."`
	Limit  frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

// Run lists.
func (c *statementsExceptions) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		list, err := o.Reconcile(nil).Exceptions(e.Ctx, reconcile.Filter{Source: c.Source, Kind: reconcile.Kind(c.Kind), Ending: reconcile.Ending(c.Ending), Before: c.Before, Limit: int(c.Limit)})
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, exceptionColumns, "id", "source", "kind", "amount", "opened_at", "reason"), list)
	})
}

var exceptionColumns = []frame.Column[reconcile.Exception]{
	{Name: "id", Value: func(e reconcile.Exception) any { return e.ID }},
	{Name: "source", Value: func(e reconcile.Exception) any { return e.Source }},
	{Name: "kind", Value: func(e reconcile.Exception) any { return string(e.Kind) }},
	{Name: "line", Value: func(e reconcile.Exception) any { return e.Line }},
	{Name: "payment", Value: func(e reconcile.Exception) any { return e.Payment }},
	{Name: "amount", Value: func(e reconcile.Exception) any { return e.Amount }},
	{Name: "difference", Value: func(e reconcile.Exception) any { return e.Delta }},
	{Name: "at", Value: func(e reconcile.Exception) any { return e.At }},
	{Name: "opened_at", Value: func(e reconcile.Exception) any { return e.OpenedAt }},
	{Name: "ended_at", Value: func(e reconcile.Exception) any { return e.EndedAt }},
	{Name: "ending", Value: func(e reconcile.Exception) any { return string(e.Ending) }},
	{Name: "owner", Value: func(e reconcile.Exception) any { return e.OwnerName }},
	{Name: "reason", Value: func(e reconcile.Exception) any { return e.Reason }},
}
