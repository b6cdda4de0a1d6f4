package cli

import (
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// migrateCommands look at the schema and bring it up to this program's.
type migrateCommands struct {
	Status migrateStatus `cmd:"" help:"List the migrations and which of them the database has."`
	Up     migrateUp     `cmd:"" help:"Apply what is missing."`
}

type migrateStatus struct{ common }

type migrateUp struct{ common }

// unmigrated opens a database whatever its schema.
func (c *common) unmigrated(e *env, work func(*db.DB) error) (err error) {
	d, err := db.Open(e.ctx, db.Options{URL: c.Database, Path: c.SQLite(), MaxConns: connections})
	if err != nil {
		return problem.Wrap(err, problem.Unavailable, "no_database", "The database cannot be opened")
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return work(d)
}

var migrationColumns = []column[db.Migration]{
	{"name", func(m db.Migration) any { return m.Name }},
	{"owner", func(m db.Migration) any { return m.Owner }},
	{"applied_at", func(m db.Migration) any { return m.AppliedAt }},
}

// Run lists. It makes no file.
func (c *migrateStatus) Run(e *env) error {
	if err := c.there(); err != nil {
		return err
	}
	return c.unmigrated(e, func(d *db.DB) error {
		all, err := d.MigrationStatus(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, migrationColumns, all)
	})
}

// Run applies.
func (c *migrateUp) Run(e *env) error {
	return c.unmigrated(e, func(d *db.DB) error {
		if err := d.Migrate(e.ctx); err != nil {
			return err
		}
		all, err := d.MigrationStatus(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, migrationColumns, all)
	})
}
