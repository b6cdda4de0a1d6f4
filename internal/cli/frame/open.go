// Package frame holds the parts that every command uses: its environment, the open database, the caller's authority,
// movements of money, and output. Commands are structs of other packages that embed Common and receive an Env.
//
// Files, each above those that it uses:
//
//	alias.go          a change requested by the arguments and flags of a command
//	open.go           the flags of every command, and the database opened for it
//	report.go         exit codes, and errors on stderr
//	flags.go          values of flags: amounts, quotas, switches, days
//	tables.go         flags for a file with a table
//	books.go          the check of all books
//	order.go          a movement of money: checked and confirmed
//	journal.go        changes with their entries in the audit log and the journal
//	master_key.go     the master key of the environment, or of development
//	asked.go          a change request and its outcome
//	ask.go            a change that a command requests
//	authority.go      whether the caller may run the command
//	env.go            input, output and questions
//	services.go       the domains as commands use them
//	output.go         tables, JSON and CSV
//	given.go          the token, reason and break-glass flag of a line
//	opened.go         the open database
//	progress.go       the progress of a long command
//	readable.go       credentials that other users of the machine could read
package frame

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

// Common are the flags of every command that opens the database.
type Common struct {
	config.Storage
	Output string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
	JSON   bool   `name:"json" help:"Same as -o json."`
	Wide   bool   `name:"wide" help:"Print all columns of a table. JSON and CSV always have all columns."`
}

// AfterApply applies --json and --wide to the format of the output.
func (c *Common) AfterApply() error {
	switch {
	case c.JSON && c.Output == "csv":
		return errors.New("--json and -o csv exclude each other: leave one out")
	case c.JSON:
		c.Output = "json"
	case c.Wide && c.Output == "table":
		c.Output = wideTable
	}
	return nil
}

// There refuses a folder without a database, because opening it would create one.
func (c *Common) There() error {
	if c.Database != "" {
		return nil
	}
	if _, err := os.Stat(c.SQLite()); errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Unavailable, "no_database",
			fmt.Sprintf("No database in %s. Name its folder with --data or its URL with --database, or start makola serve first", c.Data))
	}
	return nil
}

// open opens an existing database with this program's schema. It creates no file and changes no table.
func (c *Common) open(ctx context.Context) (*Opened, error) {
	if err := c.There(); err != nil {
		return nil, err
	}
	d, err := db.Open(ctx, db.Options{URL: c.Database, Path: c.SQLite(), MaxConns: Connections})
	if err != nil {
		return nil, Unopened(err)
	}
	err = Current(ctx, d, "database")
	if err == nil {
		err = installation.New(d, clock.Real()).CheckMark(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	o := Assemble(d, clock.Real())
	o.Journal = audit.Journal{Folder: c.Data}
	return o, nil
}

// Unopened is the error for a database that cannot be opened now, or that its URL can never open.
func Unopened(err error) error {
	const code = "no_database"
	if p := problem.From(err); p.Kind == problem.Invalid || p.Code == code {
		return err
	}
	return problem.Wrap(err, problem.Unavailable, code, "Cannot open the database")
}

// Current refuses a database with a schema other than this program's.
func Current(ctx context.Context, d *db.DB, which string) error {
	pending, err := d.PendingMigrations(ctx)
	if err == nil && len(pending) > 0 {
		err = problem.New(problem.Unavailable, "migrations_pending",
			fmt.Sprintf("The %s lacks %d migrations of this program. Run makola migrate up", which, len(pending)))
	}
	return err
}

// With opens the database, calls work and closes the database again.
func (c *Common) With(e *Env, work func(*Opened) error) (err error) {
	o, err := c.open(e.Ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.DB.Close()) }()
	o.Journal.Failed = NotNoted(e)
	if err := o.recoveryLine(e); err != nil {
		return err
	}
	if err := o.authorise(e); err != nil {
		return err
	}
	return work(o)
}

// WithSecret is With for commands that need the master key. It refuses a key that differs from the servers' key,
// because it would derive other references for the same payments and seal secrets that no server can open.
func (c *Common) WithSecret(e *Env, work func(*Opened, config.Secret) error) error {
	secret, err := StoredSecret(c.Storage)
	if err != nil {
		return err
	}
	return c.With(e, func(o *Opened) error {
		err := o.Installation.CheckSecret(e.Ctx, secret)
		if errors.Is(err, installation.ErrWrongSecret) {
			return Unusable(err)
		}
		if err != nil {
			return err
		}
		return work(o, secret)
	})
}

// WithMessaging opens the database and the domain.
func (c *Common) WithMessaging(e *Env, work func(*Opened, *messaging.Messaging) error) error {
	return c.With(e, func(o *Opened) error {
		m := o.Messaging()
		defer m.Close()
		return work(o, m)
	})
}

// WithPayments opens the database and the domain.
func (c *Common) WithPayments(e *Env, work func(*Opened, *payments.Payments) error) error {
	return c.WithSecret(e, func(o *Opened, secret config.Secret) error {
		p := o.Payments(secret)
		defer p.Close()
		return work(o, p)
	})
}

// recoveryLine prints on stderr that a recovery is open.
func (o *Opened) recoveryLine(e *Env) error {
	s, err := o.Recovery().State(e.Ctx)
	if err == nil && s.Lasts() {
		fmt.Fprintf(e.Stderr, "makola: A recovery is %s since %s: %s. Run makola recovery status.\n", s.Phase, s.BegunAt.UTC().Format(time.RFC3339), Cell(s.Cause))
	}
	return err
}
