package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/problem"
)

// VerifyOptions configure the place of a trial restore.
type VerifyOptions struct {
	RestoreOptions
	Folder string // for SQLite: parent of the temporary folder; empty: the system's default
	Server string // for PostgreSQL: URL of the server for the temporary database
	// Check checks the restored database, migrated to this program's schema, and returns a list of problems.
	Check func(context.Context, *db.DB) ([]string, error)
}

// Verified is the result of Verify.
type Verified struct {
	Took     time.Duration // time from the first byte read to the last check
	Problems []string      // empty: the backup can be restored, and the books balance
}

// Verify restores a backup into a temporary place, checks the result, and removes it. A backup that cannot be
// restored is a problem in the report. An error means that nothing is known about the backup.
func (b Backup) Verify(ctx context.Context, o VerifyOptions) (v Verified, err error) {
	begun := o.Clock.Now()
	target, remove, err := b.scratch(ctx, o)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx))) }()
	err = b.Restore(ctx, target, o.RestoreOptions)
	if err == nil {
		v.Problems, err = check(ctx, target, o)
	}
	if p := problem.From(err); err != nil && p.Code == "backup_damaged" {
		v.Problems, err = append(v.Problems, p.Message), nil
	}
	v.Took = o.Clock.Now().Sub(begun)
	return v, err
}

// scratch creates the temporary database. remove deletes it.
func (b Backup) scratch(ctx context.Context, o VerifyOptions) (target db.Options, remove func(context.Context) error, err error) {
	if b.Engine == db.Postgres.String() {
		if o.Server == "" {
			return target, nil, problem.Field("scratch", "must be the URL of a PostgreSQL server, where the backup is restored into a temporary database")
		}
		target.MaxConns = 2
		target.URL, remove, err = postgres.Scratch(ctx, o.Server, b.Namespace)
		if err != nil {
			err = problem.Wrap(err, problem.Unavailable, "no_scratch",
				"No temporary database could be created: set --scratch to the URL of a server with a role that may create databases (ALTER ROLE name CREATEDB)")
		}
		return target, remove, err
	}
	folder := o.Folder
	if folder == "" {
		folder = os.TempDir()
	}
	work, removeFolder, err := workshop(folder)
	if err != nil {
		return target, nil, problem.Wrap(err, problem.Unavailable, "no_scratch", "No temporary folder could be created: name a folder with --scratch")
	}
	target.Path = filepath.Join(work, "restored", "makola.db")
	return target, func(context.Context) error { return removeFolder() }, nil
}

// check migrates a restored database to this program's schema and checks it.
func check(ctx context.Context, target db.Options, o VerifyOptions) (problems []string, err error) {
	d, err := db.Open(ctx, target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	found, err := d.Damage(ctx)
	if err != nil {
		return nil, err
	}
	for _, line := range found {
		problems = append(problems, fmt.Sprintf("the database file is damaged: %s", line))
	}
	if err := d.Migrate(ctx); err != nil {
		return nil, err
	}
	more, err := o.Check(ctx, d)
	return append(problems, more...), err
}
