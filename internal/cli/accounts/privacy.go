package accounts

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/privacy"
	"github.com/makola/makola/internal/problem"
)

// Privacy holds the commands of makola privacy.
type Privacy struct {
	Export privacyExport `cmd:"" help:"Print all data about a phone number: payments, messages and contacts of all accounts."`
	Erase  privacyErase  `cmd:"" help:"Erase a person's data from finished payments and messages for good. Amounts stay."`
}

// privacyOf returns the stores that hold data of people.
func privacyOf(o *frame.Opened) privacy.Deps {
	return privacy.Deps{DB: o.DB, Payments: book.NewReader(o.DB, o.Ledger, o.Clock), Messaging: o.Messaging(), Contacts: o.Contacts(), Inbox: o.Inbox(), Routes: o.Routes()}
}

var foundColumns = []frame.Column[privacy.Found]{
	{Name: "what", Value: func(f privacy.Found) any { return f.What }},
	{Name: "tenant", Value: func(f privacy.Found) any { return f.Tenant }},
	{Name: "id", Value: func(f privacy.Found) any { return f.ID }},
	{Name: "name", Value: func(f privacy.Found) any { return f.Name }},
	{Name: "detail", Value: func(f privacy.Found) any { return f.Detail }},
	{Name: "reference", Value: func(f privacy.Found) any { return f.Reference }},
	{Name: "at", Value: func(f privacy.Found) any { return f.At }},
}

type privacyExport struct {
	frame.Common
	Number string `arg:"" help:"Mobile number of the person."`
}

// Run prints the data of a number. A backup from before an erasure has more data.
func (c *privacyExport) Run(e *frame.Env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		found := []privacy.Found{}
		err := privacyOf(o).Export(e.Ctx, numbers[0], func(f privacy.Found) error { found = append(found, f); return nil })
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, foundColumns, found)
	})
}

var erasureColumns = []frame.Column[privacy.Erasure]{
	{Name: "payments", Value: func(r privacy.Erasure) any { return int64(r.Payments) }},
	{Name: "messages", Value: func(r privacy.Erasure) any { return int64(r.Messages) }},
	{Name: "contacts", Value: func(r privacy.Erasure) any { return int64(r.Contacts) }},
	{Name: "rows", Value: func(r privacy.Erasure) any { return int64(r.Rows) }},
	{Name: "exchanges", Value: func(r privacy.Erasure) any { return int64(r.Exchanges) }},
	{Name: "counters", Value: func(r privacy.Erasure) any { return int64(r.Counters) }},
	{Name: "left", Value: func(r privacy.Erasure) any { return int64(r.Left) }},
	{Name: "copies", Value: func(r privacy.Erasure) any { return r.Copies }},
}

type privacyErase struct {
	frame.Common
	frame.Writing
	Number   string `arg:"" help:"Mobile number of the person."`
	Reason   string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log. The log stores the number masked."`
	NoVacuum bool   `name:"no-vacuum" help:"On SQLite: do not rewrite the file. Deleted data then stays in its free space, but writers do not wait."`
}

// tablesOfPeople are the tables from whose rows an erasure removes a number.
const tablesOfPeople = "payments, payment_notes, messages, parts, campaigns, otps, otp_counters, early_receipts, inbox_texts, inbox_parts, contacts, provider_exchanges, webhook_events, webhook_attempts"

// Run erases a person. First it writes the beginning of the erasure into the audit log, in a transaction that also
// checks the person of the token. The old bytes of the rows are removed after this process has closed the database.
func (c *privacyErase) Run(e *frame.Env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	var done privacy.Erasure
	if err := c.With(e, func(o *frame.Opened) error {
		entry := audit.Entry{Action: "privacy.erase", Subject: numbers[0].Masked(), Reason: c.Reason}
		if err := o.Change(e.Ctx, entry, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		done, err = privacyOf(o).Erase(e.Ctx, numbers[0])
		if file := o.DB.SQLite(); file != nil {
			err = errors.Join(err, file.EmptyLog(e.Ctx))
		}
		return err
	}); err != nil {
		return err
	}
	if done.Copies, err = c.clean(e, privacy.Spellings(numbers[0]), done.Left > 0); err != nil {
		return err
	}
	if done.Left > 0 {
		fmt.Fprintf(e.Stderr, "%d entries are not finished and keep the number. Repeat the command later\n", done.Left)
	}
	for _, where := range done.Copies {
		fmt.Fprintln(e.Stderr, "makola: The number remains in "+where)
	}
	return frame.PrintOne(e.Stdout, c.Output, erasureColumns, done)
}

// clean removes the remains of earlier rows from SQLite's files, and lists the places that still have the number.
func (c *privacyErase) clean(e *frame.Env, spellings []string, left bool) ([]string, error) {
	if c.Database != "" {
		return []string{"earlier versions of rows, until PostgreSQL removes them: VACUUM (FULL) " + tablesOfPeople + ", and its log and backups age"}, nil
	}
	found, err := privacy.Copies(c.SQLite(), spellings...)
	if err != nil || left || c.NoVacuum || !slices.ContainsFunc(found, c.live) {
		return found, err
	}
	d, err := db.Open(e.Ctx, db.Options{Path: c.SQLite(), MaxConns: frame.Connections})
	if err != nil {
		return found, frame.Unopened(err)
	}
	if err := errors.Join(d.SQLite().Vacuum(e.Ctx), d.SQLite().EmptyLog(e.Ctx), d.Close()); err != nil {
		return found, problem.Wrap(err, problem.Unavailable, "not_vacuumed",
			"The person is erased, but free space of the database file still has the number, because VACUUM failed. Repeat the command")
	}
	return privacy.Copies(c.SQLite(), spellings...)
}

// live reports whether a file is the database or its log. It returns false for a copy.
func (c *privacyErase) live(name string) bool {
	base := filepath.Base(c.SQLite())
	return name == base || name == base+"-wal"
}
