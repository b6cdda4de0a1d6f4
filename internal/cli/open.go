package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// common is what every command that opens the database takes.
type common struct {
	config.Storage
	Output string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"table, json or csv."`
	Wide   bool   `name:"wide" help:"A table with all its columns. JSON and CSV always have all."`
}

// AfterApply makes of --wide a form of the output.
func (c *common) AfterApply() error {
	if c.Wide && c.Output == "table" {
		c.Output = wideTable
	}
	return nil
}

// node is under which name commands write: beside the servers' names, and one
// for all, because commands are short.
const node = "cli"

// connections of one command, which runs one transaction at a time.
const connections = 2

// opened is the database with what commands use of it.
type opened struct {
	db           *db.DB
	clock        *clock.Clock
	ledger       *ledger.Ledger
	tenants      *tenant.Store
	answers      *idempotency.Answers
	access       *access.Access
	installation *installation.Store
	log          *audit.Log
	people       *identity.Identity
	journal      audit.Journal

	actor      string     // in the audit log
	by         changes.By // the person of a token, or the user of this machine
	permission identity.Permission
	reason     string // that the command was given
	production bool
}

// there refuses a folder without a database, which opening would make.
func (c *common) there() error {
	if c.Database != "" {
		return nil
	}
	if _, err := os.Stat(c.SQLite()); errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Unavailable, "no_database",
			fmt.Sprintf("There is no database in %s: name its folder with --data or its URL with --database, or start makola serve first", c.Data))
	}
	return nil
}

// open opens a database that exists and whose schema is this program's. It
// makes no file and changes no table.
func (c *common) open(ctx context.Context) (*opened, error) {
	if err := c.there(); err != nil {
		return nil, err
	}
	d, err := db.Open(ctx, db.Options{URL: c.Database, Path: c.SQLite(), MaxConns: connections})
	if err != nil {
		return nil, unopened(err)
	}
	err = current(ctx, d, "database")
	if err == nil {
		err = installation.New(d, clock.Real()).CheckMark(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	o := assemble(d, clock.Real())
	o.journal = audit.Journal{Folder: c.Data}
	return o, nil
}

// unopened is a database that cannot be opened now, or never under the URL that was given.
func unopened(err error) error {
	const code = "no_database"
	if p := problem.From(err); p.Kind == problem.Invalid || p.Code == code {
		return err
	}
	return problem.Wrap(err, problem.Unavailable, code, "The database cannot be opened")
}

// current refuses a database whose schema is not this program's.
func current(ctx context.Context, d *db.DB, which string) error {
	pending, err := d.PendingMigrations(ctx)
	if err == nil && len(pending) > 0 {
		err = problem.New(problem.Unavailable, "migrations_pending",
			fmt.Sprintf("The %s lacks %d migrations of this program: run makola migrate up", which, len(pending)))
	}
	return err
}

// assemble puts together what commands use of a database.
func assemble(d *db.DB, c *clock.Clock) *opened {
	l := ledger.New(d, c, node)
	log := audit.New(d, c)
	actor := "cli:" + loggedIn()
	return &opened{db: d, clock: c, ledger: l, people: identity.New(d, c, log, identity.Options{}), tenants: tenant.New(d, l, c), answers: idempotency.NewAnswers(d, c), access: access.New(d, c), installation: installation.New(d, c), log: log, actor: actor,
		by: changes.By{Machine: actor, Origin: origin(), Place: identity.Installation}}
}

// with opens the database, does the work and closes it again.
func (c *common) with(e *env, work func(*opened) error) (err error) {
	o, err := c.open(e.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.db.Close()) }()
	o.journal.Failed = notNoted(e)
	if err := o.recoveryLine(e); err != nil {
		return err
	}
	if err := o.authorise(e); err != nil {
		return err
	}
	return work(o)
}

// withSecret is with for what needs the master key. Another one than the servers'
// makes other references for the same payments, and seals secrets that no server
// can open: it is refused.
func (c *common) withSecret(e *env, work func(*opened, config.Secret) error) error {
	secret, err := storedSecret(c.Storage)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		err := o.installation.CheckSecret(e.ctx, secret)
		if errors.Is(err, installation.ErrWrongSecret) {
			return unusable(err)
		}
		if err != nil {
			return err
		}
		return work(o, secret)
	})
}

// storedSecret finds the master key that a server on this storage uses: the one
// of the environment, else that of development.
func storedSecret(s config.Storage) (config.Secret, error) {
	secret, err := masterKey()
	if err == nil && secret.Empty() {
		secret, err = app.DevelopmentSecret(s, false)
	}
	if err != nil {
		return secret, unusable(err)
	}
	return secret, nil
}

// unusable says what an operator can do about a master key that err is about.
func unusable(err error) error {
	return problem.Wrap(err, problem.Invalid, "master_key",
		fmt.Sprintf("The master key cannot be used: %v; set %s or %s as for the server", err, config.EnvMasterKey, config.EnvMasterKeyFile))
}

// tenant finds a customer by its id, or by its name where no other has it.
func (o *opened) tenant(ctx context.Context, name string) (tenant.Tenant, error) {
	t, err := o.tenants.Get(ctx, name)
	if !problem.Is(err, problem.NotFound) {
		return t, err
	}
	return o.tenants.Named(ctx, name)
}

// known puts a tenant's id in the place of its name, and refuses one that is not
// there, because an empty list would be taken for an answer. No tenant is everybody.
func (o *opened) known(ctx context.Context, name *string) error {
	if *name == "" {
		return nil
	}
	t, err := o.tenant(ctx, *name)
	if err == nil {
		*name = t.ID
	}
	return err
}

// named are the names of customers by their ids.
func (o *opened) named(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range ids {
		if _, seen := names[id]; seen || id == "" {
			continue
		}
		t, err := o.tenants.Get(ctx, id)
		if err != nil && !problem.Is(err, problem.NotFound) {
			return nil, err
		}
		names[id] = t.Name
	}
	return names, nil
}

// act does what an operator asked for, in one transaction with its entry in
// the audit log, by which an act whose answer was lost is recognised. work may
// run twice; what it returns becomes the entry's details.
func (o *opened) act(ctx context.Context, e audit.Entry, work func(*db.Tx) (details any, err error)) error {
	e.ID, e.Actor = newID(), o.actor
	done := func(tx *db.Tx) (bool, error) { return o.log.Landed(tx, e.Tenant, e.ID) }
	return o.db.WriteRecognising(ctx, done, func(tx *db.Tx) error {
		details, err := work(tx)
		if err != nil {
			return err
		}
		entry := e
		entry.Details = details
		return o.audit(tx, entry)
	})
}

// notNoted tells the operator of an act that is done and not in the journal.
func notNoted(e *env) func(string, error) {
	return func(path string, err error) {
		fmt.Fprintf(e.stderr, "makola: This is done, and could not be noted in %s: %v\n", path, err)
	}
}

// audit writes an entry in the transaction of its act, and into the file of acts once that is committed. The person of a
// token is looked at in the same transaction.
func (o *opened) audit(tx *db.Tx, e audit.Entry) error {
	if err := o.allow(tx); err != nil {
		return err
	}
	e.Person = o.by.Visitor.Person.ID
	if e.Reason == "" {
		e.Reason = o.reason
	}
	if e.ID == "" {
		e.ID = newID()
	}
	if err := o.journalReady(); err != nil {
		return err
	}
	e.At, e.Origin = o.clock.Now(), origin()
	tx.AfterCommit(func() { o.journal.Add(e) })
	return o.log.Write(tx, e)
}

// journalReady refuses a change that could not be appended to the journal. In development a database that has no data folder
// here may do without one.
func (o *opened) journalReady() error {
	err := o.journal.Ready()
	if err == nil || !o.production && errors.Is(err, audit.ErrNoFolder) {
		return nil
	}
	return problem.Wrap(err, problem.Unavailable, "journal_unavailable", fmt.Sprintf("Nothing was changed, because the change could not be noted in %s: %v. "+
		"Name a data folder that this user can write to with --data or MAKOLA_DATA", o.journal.Path(), err))
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
