package operations

import (
	"fmt"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Migrate holds the commands of makola migrate.
type Migrate struct {
	Status migrateStatus `cmd:"" help:"List the migrations and whether the database has them. Exits with 1 while one is missing."`
	Up     migrateUp     `cmd:"" help:"Apply the missing migrations."`
	Copy   migrateCopy   `cmd:"" help:"Move a stopped installation from SQLite to an empty PostgreSQL database. An interrupted run can be repeated."`
}

type migrateStatus struct{ frame.Common }

type migrateUp struct{ frame.Common }

var migrationColumns = []frame.Column[db.Migration]{
	{Name: "name", Value: func(m db.Migration) any { return m.Name }},
	{Name: "owner", Value: func(m db.Migration) any { return m.Owner }},
	{Name: "applied_at", Value: func(m db.Migration) any { return m.AppliedAt }},
}

// Run lists the migrations. It fails while one is missing, and creates no file.
func (c *migrateStatus) Run(e *frame.Env) error {
	if err := c.There(); err != nil {
		return err
	}
	return unmigrated(&c.Common, e, func(d *db.DB) error {
		all, err := d.MigrationStatus(e.Ctx)
		if err != nil {
			return err
		}
		if err := frame.PrintAll(e.Stdout, c.Output, migrationColumns, all); err != nil {
			return err
		}
		missing := 0
		for _, m := range all {
			if m.AppliedAt.IsZero() {
				missing++
			}
		}
		if missing > 0 {
			return problem.New(problem.Internal, "migrations_pending", fmt.Sprintf("The database lacks %d migrations of this program. Run makola migrate up", missing))
		}
		return nil
	})
}

// Run applies the missing migrations and prints them. The count goes to stderr.
func (c *migrateUp) Run(e *frame.Env) error {
	return unmigrated(&c.Common, e, func(d *db.DB) error {
		before, err := d.MigrationStatus(e.Ctx)
		if err != nil {
			return err
		}
		if err := d.Migrate(e.Ctx); err != nil {
			return err
		}
		after, err := d.MigrationStatus(e.Ctx)
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
			fmt.Fprintf(e.Stderr, "Nothing to apply. The database has schema %d\n", newest)
		} else {
			fmt.Fprintf(e.Stderr, "Applied %d of %d migrations. The database has schema %d\n", len(applied), len(after), newest)
		}
		return frame.PrintAll(e.Stdout, c.Output, migrationColumns, applied)
	})
}
