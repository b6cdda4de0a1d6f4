package funds

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// Batch holds the commands of makola batch.
type Batch struct {
	Check   batchCheck   `cmd:"" help:"Check a file of payouts: the rows that can be paid, the rows with errors, and the rows that an earlier batch paid. Stores nothing."`
	Send    batchSend    `cmd:"" help:"Read a file of payouts and request its payment."`
	List    batchList    `cmd:"" help:"List an account's batches, newest first."`
	Status  batchStatus  `cmd:"" help:"Show the state of a batch and the number of its rows in each state."`
	Pause   batchPause   `cmd:"" help:"Pause a running batch. Payouts that were sent continue."`
	Resume  batchResume  `cmd:"" help:"Resume a paused batch."`
	Cancel  batchCancel  `cmd:"" help:"Cancel a batch, and return the money of rows that were not sent."`
	Results batchResults `cmd:"" help:"Write the rows of a batch with their results as CSV or XLSX."`
}

// batchColumns are the columns of a batch.
func batchColumns() []frame.Column[batch.Numbers] {
	columns := []frame.Column[batch.Numbers]{
		{Name: "id", Value: func(n batch.Numbers) any { return n.ID }},
		{Name: "name", Value: func(n batch.Numbers) any { return n.Name }},
		{Name: "status", Value: func(n batch.Numbers) any { return string(n.Status) }},
		{Name: "cause", Value: func(n batch.Numbers) any { return string(n.Cause) }},
		{Name: "lines", Value: func(n batch.Numbers) any { return int64(n.Lines) }},
		{Name: "amount", Value: func(n batch.Numbers) any { return n.Amount }},
		{Name: "charges", Value: func(n batch.Numbers) any { return n.Charges }},
		{Name: "reserved", Value: func(n batch.Numbers) any { return n.Rest }},
	}
	for _, status := range batch.Statuses() {
		columns = append(columns, frame.Column[batch.Numbers]{Name: status, Value: func(n batch.Numbers) any { return int64(n.Rows[status]) }})
	}
	return append(columns, frame.Column[batch.Numbers]{Name: "created_at", Value: func(n batch.Numbers) any { return n.CreatedAt }},
		frame.Column[batch.Numbers]{Name: "started_at", Value: func(n batch.Numbers) any { return n.StartedAt }},
		frame.Column[batch.Numbers]{Name: "ended_at", Value: func(n batch.Numbers) any { return n.EndedAt }})
}

// opened calls work with the batches and the account's id. It replaces a name of the account by the id.
func opened(c *frame.Common, e *frame.Env, account *string, work func(o *frame.Opened, a *changes.Changes) error) error {
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		if err := o.Known(e.Ctx, account); err != nil {
			return err
		}
		a := o.Changes(secret)
		a.Payments = o.Payments(secret)
		defer a.Payments.Close()
		a.Batches = o.Batches(secret, a.Payments)
		return work(o, a)
	})
}

// printBatch prints a batch.
func printBatch(e *frame.Env, output string, s *batch.Batches, b batch.Batch) error {
	n, err := s.Numbers(e.Ctx, b)
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, output, batchColumns(), n)
}

// batchFile is the file of a new batch.
type batchFile struct {
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	File   string `arg:"" help:"CSV or XLSX file; - is standard input. Columns: number, network, amount, name, reference, note."`
	Name   string `name:"name" placeholder:"TEXT" help:"Name of the batch, such as Salaries November. Default: the name of the file."`
	Again  string `name:"again" placeholder:"TEXT" help:"Reason for paying rows that an earlier batch already paid."`
	frame.TableFlags
}

// read makes a draft of the file, or finds the draft of an earlier run.
func (f *batchFile) read(e *frame.Env, o *frame.Opened, s *batch.Batches) (b batch.Batch, known bool, err error) {
	from := io.Reader(e.Stdin)
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return b, false, problem.Wrap(err, problem.Malformed, "no_file", "Cannot open the file: "+err.Error())
		}
		defer func() { _ = file.Close() }() // an error of closing is ignored, because the file was only read
		from = file
		if f.Name == "" {
			f.Name = strings.TrimSuffix(filepath.Base(f.File), filepath.Ext(f.File))
		}
	}
	return s.ReadFile(e.Ctx, batch.Upload{Tenant: f.Tenant, Name: f.Name, Again: f.Again, Requester: o.Actor}, from, f.Options())
}

// shownRows is the largest number of rows of each kind that a command prints.
const shownRows = 100

// report prints the errors and the warnings of a draft, line by line.
func report(e *frame.Env, s *batch.Batches, b batch.Batch) (bad int, err error) {
	n, err := s.Numbers(e.Ctx, b)
	if err != nil {
		return 0, err
	}
	bad = n.Rows[string(batch.RowBad)]
	say := func(text string, args ...any) { fmt.Fprintln(e.Stderr, frame.Cell(fmt.Sprintf(text, args...))) }
	for _, note := range b.Notes {
		say("About the file: %s", note)
	}
	rows, err := s.BadRows(e.Ctx, b, 0, shownRows)
	if err != nil {
		return bad, err
	}
	for _, r := range rows {
		for field, why := range r.Problems {
			say("line %d: %s %s", r.Source, field, strings.Join(why, ", "))
		}
	}
	if bad > len(rows) {
		say("%d more rows cannot be paid", bad-len(rows))
	}
	overlaps, err := s.Overlaps(e.Ctx, b.Tenant, b.ID)
	if err != nil {
		return bad, err
	}
	for _, o := range overlaps {
		say("%d of %d rows (GHS %s) are in the batch %s (%s)", o.Rows, n.Rows[string(batch.RowReady)], o.Amount, o.Name, o.ID)
	}
	return bad, warn(e.Ctx, s, b, say)
}

// warn prints the warnings about a draft.
func warn(ctx context.Context, s *batch.Batches, b batch.Batch, say func(text string, args ...any)) error {
	count := 0
	for from := 1; from <= b.Lines; from += 1000 {
		list, err := s.Warnings(ctx, b.Tenant, b.ID, from)
		if err != nil {
			return err
		}
		for _, w := range list {
			if count++; count <= shownRows {
				say("row %d: %s %s", w.Line, w.Field, w.Text)
			}
		}
	}
	if count > shownRows {
		say("%d more warnings", count-shownRows)
	}
	return nil
}

// badRows refuses a file with rows that cannot be paid.
func badRows(bad, lines int) error {
	return problem.New(problem.Invalid, "bad_rows", fmt.Sprintf("%d of %d rows cannot be paid: correct them in the file, or upload the file in the console and correct them there", bad, lines))
}

type batchCheck struct {
	frame.Common
	frame.Writing
	batchFile
}

// Run checks the file, and discards the draft that it needs for that.
func (c *batchCheck) Run(e *frame.Env) error {
	return opened(&c.Common, e, &c.Tenant, func(o *frame.Opened, a *changes.Changes) error {
		b, known, err := c.read(e, o, a.Batches)
		if err != nil {
			return err
		}
		if !known {
			defer func() { _ = a.Batches.Discard(context.WithoutCancel(e.Ctx), b.Tenant, b.ID) }() // otherwise it is deleted after seven days
		}
		bad, err := report(e, a.Batches, b)
		if err != nil {
			return err
		}
		n, err := a.Batches.Numbers(e.Ctx, b)
		if err != nil {
			return err
		}
		columns := slices.DeleteFunc(batchColumns(), func(col frame.Column[batch.Numbers]) bool {
			return !slices.Contains([]string{"name", "lines", "ready", "bad", "amount", "charges"}, col.Name)
		})
		if err := frame.PrintOne(e.Stdout, c.Output, columns, n); err != nil {
			return err
		}
		if bad > 0 {
			return badRows(bad, b.Lines)
		}
		return nil
	})
}

type batchSend struct {
	frame.Common
	frame.Reasoned
	batchFile
	Wait bool `name:"wait" help:"Wait until each row is paid or refused, and show the progress."`
}

// errSentByAccount is returned for a personal token. Its person belongs to the installation, where no role has
// payouts.request.
func errSentByAccount(account string) error {
	return problem.New(problem.Forbidden, "not_allowed", "Nothing was read: a personal token cannot send a batch, because no role of the installation has the permission "+
		string(roles.RequestPayouts)+". Let a person of the account upload the file in the console at /app/"+account+"/batches. In an emergency: --break-glass --reason TEXT")
}

// Run reads the file and requests the batch. If the file was sent before, Run finds its batch.
func (c *batchSend) Run(e *frame.Env) error {
	return opened(&c.Common, e, &c.Tenant, func(o *frame.Opened, a *changes.Changes) error {
		if o.By.Machine == "" {
			return errSentByAccount(c.Tenant)
		}
		b, known, err := c.read(e, o, a.Batches)
		if err != nil {
			return err
		}
		bad, err := report(e, a.Batches, b)
		if err == nil && bad > 0 {
			err = badRows(bad, b.Lines)
		}
		if err != nil {
			if !known {
				err = joined(err, a.Batches.Discard(context.WithoutCancel(e.Ctx), b.Tenant, b.ID))
			}
			return err
		}
		if e.Terminal {
			if err := c.ask(e, a.Batches, b); err != nil {
				return err
			}
		}
		q := &frame.Ask{E: e, O: o, Changes: a, Output: c.Output, Values: changes.Values{changes.FieldTenant: c.Tenant, "batch": b.ID, "again": c.Again}, Reason: c.Reason}
		return frame.Alias{Kind: changes.KindSendBatch, Show: func(*frame.Ask) error { return follow(e, c.Output, a.Batches, b, c.Wait) }}.Do(q)
	})
}

// joined returns the first error. If the second error needs attention, too, joined returns both.
func joined(err, more error) error {
	if more != nil {
		return fmt.Errorf("%w (and the draft could not be discarded: %w)", err, more)
	}
	return err
}

// ask shows the payouts and asks for a yes.
func (c *batchSend) ask(e *frame.Env, s *batch.Batches, b batch.Batch) error {
	n, err := s.Numbers(e.Ctx, b)
	if err != nil {
		return err
	}
	return e.Confirm(fmt.Sprintf("Pay %d people of the batch %s: GHS %s, with fees of GHS %s?", n.Rows[string(batch.RowReady)], frame.Cell(b.Name), n.Amount, n.Charges))
}

// followEvery is the pause between two queries of a batch.
const followEvery = time.Second

// follow prints a batch. With wait it first waits until each row is decided and each payout has ended.
func follow(e *frame.Env, output string, s *batch.Batches, b batch.Batch, wait bool) error {
	show := progressOf(e.Stderr)
	for {
		is, err := s.Get(e.Ctx, b.Tenant, b.ID)
		if err != nil {
			return err
		}
		n, err := s.Numbers(e.Ctx, is)
		if err != nil {
			return err
		}
		open := n.Rows[string(book.StatusPending)]
		if !wait || is.Status == batch.Paused || !is.EndedAt.IsZero() && open == 0 || is.Status == batch.Draft || is.Status == batch.Requested {
			show(0, 0)
			return frame.PrintOne(e.Stdout, output, batchColumns(), n)
		}
		show(min(is.Next-1, is.Lines)-open, is.Lines)
		select {
		case <-e.Ctx.Done():
			return e.Ctx.Err()
		case <-time.After(followEvery):
		}
	}
}

// barWidth is the number of characters of a progress bar.
const barWidth = 30

// progressOf returns the function that shows the progress of a batch: a bar on a terminal, otherwise a line for each
// tenth. A total of 0 ends it.
func progressOf(w io.Writer) func(done, total int) {
	if frame.Terminal(w) {
		line := frame.ProgressOn(w, func(n int64) string { return fmt.Sprint(n) })
		return func(done, total int) {
			if total == 0 {
				line("", 0, 0)
				return
			}
			full := barWidth * max(done, 0) / total
			line("["+strings.Repeat("#", full)+strings.Repeat(".", barWidth-full)+"]", int64(max(done, 0)), int64(total))
		}
	}
	last := -1
	return func(done, total int) {
		if total == 0 {
			return
		}
		if tenth := 10 * max(done, 0) / total; tenth != last {
			last = tenth
			fmt.Fprintf(w, "%d of %d rows (%d %%)\n", max(done, 0), total, 10*tenth)
		}
	}
}

type batchList struct {
	frame.Common
	Tenant string      `arg:"" name:"account" help:"Id or unique name of the account."`
	Limit  frame.Count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run lists batches.
func (c *batchList) Run(e *frame.Env) error {
	return opened(&c.Common, e, &c.Tenant, func(_ *frame.Opened, a *changes.Changes) error {
		list, err := a.Batches.List(e.Ctx, c.Tenant, "", int(c.Limit))
		if err != nil {
			return err
		}
		rows := make([]batch.Numbers, len(list))
		for i, b := range list {
			rows[i].Batch = b
		}
		columns := slices.DeleteFunc(batchColumns(), func(col frame.Column[batch.Numbers]) bool {
			return slices.Contains(batch.Statuses(), col.Name)
		})
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, columns, "created_at", "name", "status", "lines", "amount", "id"), rows)
	})
}

// batchID is a batch of an account.
type batchID struct {
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	ID     string `arg:"" help:"Id of the batch."`
}

type batchStatus struct {
	frame.Common
	batchID
	Wait bool `name:"wait" help:"Wait until each row is paid or refused, and show the progress."`
}

// Run shows a batch.
func (c *batchStatus) Run(e *frame.Env) error {
	return opened(&c.Common, e, &c.Tenant, func(_ *frame.Opened, a *changes.Changes) error {
		b, err := a.Batches.Get(e.Ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		return follow(e, c.Output, a.Batches, b, c.Wait)
	})
}

// change changes a batch with its entry in the audit log, and prints it.
func (c *batchID) change(common *frame.Common, e *frame.Env, action string, do func(o *frame.Opened, s *batch.Batches, also func(*db.Tx) error) error) error {
	return opened(common, e, &c.Tenant, func(o *frame.Opened, a *changes.Changes) error {
		b, err := a.Batches.Get(e.Ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		entry := audit.Entry{Action: action, Tenant: c.Tenant, Subject: c.ID, Details: frame.WithChanges([]frame.Change{{What: "batch " + b.Name, Before: string(b.Status), After: action}})}
		if err := do(o, a.Batches, o.Audited(entry)); err != nil {
			return err
		}
		if b, err = a.Batches.Get(e.Ctx, c.Tenant, c.ID); err != nil {
			return err
		}
		return printBatch(e, common.Output, a.Batches, b)
	})
}

type batchPause struct {
	frame.Common
	frame.Reasoned
	batchID
}

// Run pauses.
func (c *batchPause) Run(e *frame.Env) error {
	return c.change(&c.Common, e, "batch.pause", func(_ *frame.Opened, s *batch.Batches, also func(*db.Tx) error) error {
		return s.Pause(e.Ctx, c.Tenant, c.ID, also)
	})
}

type batchResume struct {
	frame.Common
	frame.Reasoned
	batchID
}

// Run resumes.
func (c *batchResume) Run(e *frame.Env) error {
	return c.change(&c.Common, e, "batch.resume", func(_ *frame.Opened, s *batch.Batches, also func(*db.Tx) error) error {
		return s.Resume(e.Ctx, c.Tenant, c.ID, also)
	})
}

type batchCancel struct {
	frame.Common
	frame.Reasoned
	batchID
}

// Run cancels.
func (c *batchCancel) Run(e *frame.Env) error {
	if c.Reason == "" {
		return problem.Field("reason", "is required")
	}
	return c.change(&c.Common, e, "batch.cancel", func(o *frame.Opened, s *batch.Batches, also func(*db.Tx) error) error {
		return s.Cancel(e.Ctx, c.Tenant, c.ID, c.Reason, o.Actor, also)
	})
}

type batchResults struct {
	frame.Common
	batchID
	File string `name:"file" placeholder:"PATH" help:"File to write, whose name ends with .csv or .xlsx. Without it CSV goes to standard output."`
}

// Run writes the results.
func (c *batchResults) Run(e *frame.Env) error {
	format := sheet.CSV
	switch ext := strings.ToLower(filepath.Ext(c.File)); {
	case ext == ".xlsx":
		format = sheet.XLSX
	case c.File != "" && ext != ".csv":
		return problem.Field("file", "must end with .csv or .xlsx")
	}
	return opened(&c.Common, e, &c.Tenant, func(_ *frame.Opened, a *changes.Changes) (err error) {
		if _, err := a.Batches.Get(e.Ctx, c.Tenant, c.ID); err != nil {
			return err
		}
		if c.File == "" {
			return a.Batches.WriteResults(e.Ctx, e.Stdout, format, c.Tenant, c.ID)
		}
		to, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // it contains numbers and names of people
		if err != nil {
			return problem.Wrap(err, problem.Malformed, "no_file", "Cannot write the file: "+err.Error())
		}
		if err := a.Batches.WriteResults(e.Ctx, to, format, c.Tenant, c.ID); err != nil {
			_, _ = to.Close(), os.Remove(c.File)
			return err
		}
		return to.Close()
	})
}
