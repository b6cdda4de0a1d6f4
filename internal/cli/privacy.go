package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/privacy"
	"github.com/makola/makola/internal/problem"
)

type privacyCommands struct {
	Export privacyExport `cmd:"" help:"Print what is known of a mobile number: payments, messages, contacts, of all customers."`
	Erase  privacyErase  `cmd:"" help:"Take a person off everything that is over: what moved stays, who it was goes. There is no way back."`
}

func (o *opened) privacy() privacy.Deps {
	return privacy.Deps{DB: o.db, Payments: book.NewReader(o.db, o.ledger, o.clock), Messaging: o.messaging(), Contacts: o.contacts(), Routes: o.routes()}
}

var foundColumns = []column[privacy.Found]{
	{"what", func(f privacy.Found) any { return f.What }},
	{"tenant", func(f privacy.Found) any { return f.Tenant }},
	{"id", func(f privacy.Found) any { return f.ID }},
	{"name", func(f privacy.Found) any { return f.Name }},
	{"detail", func(f privacy.Found) any { return f.Detail }},
	{"reference", func(f privacy.Found) any { return f.Reference }},
	{"at", func(f privacy.Found) any { return f.At }},
}

type privacyExport struct {
	common
	Number string `arg:"" help:"The person's mobile number."`
}

// Run prints. A backup that is older than an erasure has more.
func (c *privacyExport) Run(e *env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		found := []privacy.Found{}
		err := o.privacy().Export(e.ctx, numbers[0], func(f privacy.Found) error { found = append(found, f); return nil })
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, foundColumns, found)
	})
}

var erasureColumns = []column[privacy.Erasure]{
	{"payments", func(r privacy.Erasure) any { return int64(r.Payments) }},
	{"messages", func(r privacy.Erasure) any { return int64(r.Messages) }},
	{"contacts", func(r privacy.Erasure) any { return int64(r.Contacts) }},
	{"rows", func(r privacy.Erasure) any { return int64(r.Rows) }},
	{"exchanges", func(r privacy.Erasure) any { return int64(r.Exchanges) }},
	{"counters", func(r privacy.Erasure) any { return int64(r.Counters) }},
	{"left", func(r privacy.Erasure) any { return int64(r.Left) }},
	{"copies", func(r privacy.Erasure) any { return r.Copies }},
}

type privacyErase struct {
	common
	writing
	Number   string `arg:"" help:"The person's mobile number."`
	Reason   string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log, which gets the number masked."`
	NoVacuum bool   `name:"no-vacuum" help:"On SQLite, leave earlier copies in free space instead of rewriting the file, for which writers wait."`
}

// tablesOfPeople have rows from which an erasure takes a number.
const tablesOfPeople = "payments, messages, parts, campaigns, otps, otp_counters, early_receipts, contacts, provider_exchanges, webhook_events, webhook_attempts"

// Run erases, after the audit log has that it begins: the person of a token is looked at there. Earlier bytes of the rows are
// removed once this process has closed the database.
func (c *privacyErase) Run(e *env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	var done privacy.Erasure
	if err := c.with(e, func(o *opened) error {
		entry := audit.Entry{Action: "privacy.erase", Subject: numbers[0].Masked(), Reason: c.Reason}
		if err := o.act(e.ctx, entry, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		done, err = o.privacy().Erase(e.ctx, numbers[0])
		if file := o.db.SQLite(); file != nil {
			err = errors.Join(err, file.EmptyLog(e.ctx))
		}
		return err
	}); err != nil {
		return err
	}
	if done.Copies, err = c.clean(e, privacy.Spellings(numbers[0]), done.Left > 0); err != nil {
		return err
	}
	if done.Left > 0 {
		fmt.Fprintf(e.stderr, "%d are not over and keep the number: give the command again later\n", done.Left)
	}
	for _, where := range done.Copies {
		fmt.Fprintln(e.stderr, "makola: The number is still in "+where)
	}
	return printOne(e.stdout, c.Output, erasureColumns, done)
}

// clean removes what earlier rows left in the files of SQLite, and lists what still has the number.
func (c *privacyErase) clean(e *env, spellings []string, left bool) ([]string, error) {
	if c.Database != "" {
		return []string{"earlier versions of rows, until PostgreSQL removes them: VACUUM (FULL) " + tablesOfPeople + ", and its log and backups age"}, nil
	}
	found, err := privacy.Copies(c.SQLite(), spellings...)
	if err != nil || left || c.NoVacuum || !slices.ContainsFunc(found, c.live) {
		return found, err
	}
	d, err := db.Open(e.ctx, db.Options{Path: c.SQLite(), MaxConns: connections})
	if err != nil {
		return found, unopened(err)
	}
	if err := errors.Join(d.SQLite().Vacuum(e.ctx), d.SQLite().EmptyLog(e.ctx), d.Close()); err != nil {
		return found, problem.Wrap(err, problem.Unavailable, "not_vacuumed",
			"The person is erased, and free space of the database's file still has the number: VACUUM failed; give the command again")
	}
	return privacy.Copies(c.SQLite(), spellings...)
}

// live reports whether a file is the database or its log, and no copy that somebody made.
func (c *privacyErase) live(name string) bool {
	base := filepath.Base(c.SQLite())
	return name == base || name == base+"-wal"
}
