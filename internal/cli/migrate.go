package cli

import (
	"errors"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// migrateCommands look at the schema and bring it up to this program's.
type migrateCommands struct {
	Status migrateStatus `cmd:"" help:"List the migrations and which of them the database has. Exits with 1 while one is missing."`
	Up     migrateUp     `cmd:"" help:"Apply what is missing."`
	Copy   migrateCopy   `cmd:"" help:"Move a stopped installation from SQLite to an empty PostgreSQL database; run again, it goes on where it broke off."`
}

type migrateStatus struct{ common }

type migrateUp struct{ common }

// unmigrated opens a database whatever its schema.
func (c *common) unmigrated(e *env, work func(*db.DB) error) (err error) {
	d, err := db.Open(e.ctx, db.Options{URL: c.Database, Path: c.SQLite(), MaxConns: connections})
	if err != nil {
		return unopened(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return work(d)
}

var migrationColumns = []column[db.Migration]{
	{"name", func(m db.Migration) any { return m.Name }},
	{"owner", func(m db.Migration) any { return m.Owner }},
	{"applied_at", func(m db.Migration) any { return m.AppliedAt }},
}

// Run lists, and fails while a migration is missing. It makes no file.
func (c *migrateStatus) Run(e *env) error {
	if err := c.there(); err != nil {
		return err
	}
	return c.unmigrated(e, func(d *db.DB) error {
		all, err := d.MigrationStatus(e.ctx)
		if err != nil {
			return err
		}
		if err := printAll(e.stdout, c.Output, migrationColumns, all); err != nil {
			return err
		}
		missing := 0
		for _, m := range all {
			if m.AppliedAt.IsZero() {
				missing++
			}
		}
		if missing > 0 {
			return problem.New(problem.Internal, "migrations_pending", fmt.Sprintf("The database lacks %d migrations of this program: run makola migrate up", missing))
		}
		return nil
	})
}

// Run applies, and prints what it applied. The list of what there was to do goes to stderr.
func (c *migrateUp) Run(e *env) error {
	return c.unmigrated(e, func(d *db.DB) error {
		before, err := d.MigrationStatus(e.ctx)
		if err != nil {
			return err
		}
		if err := d.Migrate(e.ctx); err != nil {
			return err
		}
		after, err := d.MigrationStatus(e.ctx)
		if err != nil {
			return err
		}
		applied := []db.Migration{}
		for i, m := range after {
			if before[i].AppliedAt.IsZero() {
				applied = append(applied, m)
			}
		}
		newest := after[len(after)-1].Number
		if len(applied) == 0 {
			fmt.Fprintf(e.stderr, "Nothing to apply: the database has schema %d\n", newest)
		} else {
			fmt.Fprintf(e.stderr, "Applied %d of %d migrations: the database has schema %d now\n", len(applied), len(after), newest)
		}
		return printAll(e.stdout, c.Output, migrationColumns, applied)
	})
}
