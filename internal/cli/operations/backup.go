// Package operations holds the commands for the installation itself: its schema, backups, recovery after a restore,
// master keys, clocks, jobs, and the sample.
//
// Files, each above those that it uses:
//
//	keys.go, clock.go, jobs.go, sample.go     master keys; changed clocks; jobs; an installation with sample data
//	figures.go                                the figures of pages
//	recovery.go                               the steps after a restore
//	migrate.go                                the schema
//	migrate_copy.go                           a move to PostgreSQL
//	claims.go                                 payments of a provider's statement to look up
//	backup.go                                 backups made, checked and restored
//	recovery_step.go                          a step with its entry in the audit log
//	recovery_state.go                         open points of a recovery, and the access to review
//	schema.go                                 a database opened with any schema
package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
)

// Backup holds the commands of makola backup.
type Backup struct {
	Create backupCreate `cmd:"" help:"Create a backup of the database: a dump and its manifest. Servers keep running."`
	Verify backupVerify `cmd:"" help:"Restore a backup into a temporary place and check it as makola ledger check does. Fails if something is wrong."`
	List   backupList   `cmd:"" help:"List the backups of a folder, newest first."`
	Drill  backupDrill  `cmd:"" help:"Verify the newest backup of a folder, and report its age and the time of the restore."`
	Record backupRecord `cmd:"" help:"Record a backup of another tool, such as pgBackRest or WAL-G, for makola doctor and the alert on old backups."`
}

// backupFolder is the folder of the backups.
type backupFolder struct {
	Folder string `name:"folder" env:"MAKOLA_BACKUP_FOLDER" default:"./makola-backups" placeholder:"FOLDER" help:"Folder of the backups."`
}

// Validate refuses an empty folder, which would mean the current folder.
func (f backupFolder) Validate() error {
	if f.Folder == "" {
		return errors.New("--folder must not be empty")
	}
	return nil
}

// backupKey is the private key of encrypted backups.
type backupKey struct {
	Identity string `name:"identity" env:"MAKOLA_BACKUP_IDENTITY" placeholder:"PATH" help:"File with the private key of encrypted backups, made by age-keygen."`
}

// options returns the parameters with which a backup is read.
func (k backupKey) options(e *frame.Env) (backup.RestoreOptions, error) {
	identities, err := backup.Identities(k.Identity)
	return backup.RestoreOptions{Identities: identities, Clock: clock.Real(), Progress: frame.ProgressOn(e.Stderr, frame.Megabytes)}, err
}

var backupColumns = []frame.Column[backup.Backup]{
	{Name: "file", Value: func(b backup.Backup) any { return b.Path }},
	{Name: "made_at", Value: func(b backup.Backup) any { return b.MadeAt }},
	{Name: "engine", Value: func(b backup.Backup) any { return b.Engine }},
	{Name: "schema", Value: func(b backup.Backup) any { return int64(b.Schema) }},
	{Name: "makola", Value: func(b backup.Backup) any { return b.Makola }},
	{Name: "bytes", Value: func(b backup.Backup) any { return b.Bytes }},
	{Name: "encrypted", Value: func(b backup.Backup) any { return b.Encrypted }},
	{Name: "took_seconds", Value: func(b backup.Backup) any { return seconds(b.Took) }},
}

// seconds are printed to the millisecond.
func seconds(s float64) float64 { return float64(int64(s*1000)) / 1000 }

type backupCreate struct {
	frame.Common
	backupFolder
	Recipients []string `name:"recipient" env:"MAKOLA_BACKUP_RECIPIENTS" placeholder:"KEY" help:"Public key of age (age1...) that encrypts the backup. May be repeated; without it the backup is not encrypted."`
}

// Run makes a backup. The database may lack migrations: a backup comes before them.
func (c *backupCreate) Run(e *frame.Env) error {
	recipients, err := backup.Recipients(c.Recipients)
	if err != nil {
		return err
	}
	if err := c.There(); err != nil {
		return err
	}
	return unmigrated(&c.Common, e, func(d *db.DB) error {
		pending, err := d.PendingMigrations(e.Ctx)
		if err == nil {
			err = installation.New(d, clock.Real()).CheckMark(e.Ctx, pending)
		}
		if err != nil {
			return err
		}
		progress := frame.ProgressOn(e.Stderr, frame.Megabytes)
		made, err := backup.Create(e.Ctx, d, db.Options{URL: c.Database, Path: c.SQLite()},
			backup.CreateOptions{Folder: c.Folder, Recipients: recipients, Version: e.Version, Clock: clock.Real(), Progress: progress})
		progress("", 0, 0)
		if err != nil {
			return err
		}
		if err := frame.PrintOne(e.Stdout, c.Output, backupColumns, made); err != nil {
			return err
		}
		entry := audit.Entry{Action: "backup.create", Subject: made.ID}
		o := frame.Assemble(d, clock.Real())
		o.Journal = audit.Journal{Folder: c.Data, Failed: frame.NotNoted(e)}
		err = o.Change(e.Ctx, entry, func(tx *db.Tx) (any, error) {
			backup.Record(tx, made)
			return map[string]any{"file": made.Path, "bytes": made.Bytes, "encrypted": made.Encrypted}, nil
		})
		if err != nil {
			return problem.Wrap(err, problem.Unavailable, "backup_not_recorded", "The backup is complete, but could not be recorded in the database")
		}
		return nil
	})
}

type backupRecord struct {
	frame.Common
	Tool   string    `name:"tool" required:"" placeholder:"NAME" help:"Tool that made the backup, such as pgBackRest."`
	Name   string    `arg:"" help:"Name of the backup in that tool, such as its label or its file."`
	MadeAt time.Time `name:"made-at" required:"" placeholder:"TIME" help:"Time at which the backup began, such as 2026-03-03T09:00:00Z. The backup contains all earlier commits."`
	Bytes  int64     `name:"bytes" placeholder:"N" help:"Size of the backup in bytes, if known."`
}

// recorded is a backup of another tool. Newest reports whether no newer backup is recorded.
type recorded struct {
	backup.Backup
	Newest bool
}

var recordedColumns = []frame.Column[recorded]{
	{Name: "file", Value: func(r recorded) any { return r.Path }},
	{Name: "made_at", Value: func(r recorded) any { return r.MadeAt }},
	{Name: "bytes", Value: func(r recorded) any { return r.Bytes }},
	{Name: "newest", Value: func(r recorded) any { return r.Newest }},
}

// Run records a backup. A backup older than the last one is only written to the audit log.
func (c *backupRecord) Run(e *frame.Env) error {
	made, err := backup.MadeBy(c.Tool, c.Name, c.MadeAt, c.Bytes, clock.Real())
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		err := o.Change(e.Ctx, audit.Entry{Action: "backup.record", Subject: made.ID}, func(tx *db.Tx) (any, error) {
			backup.Record(tx, made)
			return map[string]any{"file": made.Path, "made_at": made.MadeAt, "bytes": made.Bytes}, nil
		})
		if err != nil {
			return err
		}
		last, _, err := backup.Last(e.Ctx, o.DB)
		if err != nil {
			return err
		}
		return frame.PrintOne(e.Stdout, c.Output, recordedColumns, recorded{made, last.Backup == made.ID})
	})
}

type backupList struct {
	backupFolder
	Output string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
}

// Run lists the backups. It opens no database.
func (c *backupList) Run(e *frame.Env) error {
	all, err := backup.List(c.Folder)
	if err != nil {
		return err
	}
	return frame.PrintAll(e.Stdout, c.Output, append(backupColumns[:len(backupColumns):len(backupColumns)],
		frame.Column[backup.Backup]{Name: "problem", Value: func(b backup.Backup) any { return b.Problem }}), all)
}

// verifying holds the flags of commands that verify a backup.
type verifying struct {
	backupKey
	Scratch  string `name:"scratch" env:"MAKOLA_BACKUP_SCRATCH" placeholder:"PLACE" help:"Place to restore the backup for the check: a folder for SQLite (default: the system's temporary folder), or the URL of a PostgreSQL server (default: --database)."`
	Database string `name:"database" env:"MAKOLA_DATABASE" placeholder:"URL" help:"PostgreSQL URL. A temporary database is created next to it; nothing else is changed."`
	Output   string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
}

// verified is the result of verifying one backup.
type verified struct {
	backup.Backup
	backup.Verified
	age time.Duration
}

var verifiedColumns = []frame.Column[verified]{
	{Name: "file", Value: func(v verified) any { return v.Path }},
	{Name: "made_at", Value: func(v verified) any { return v.MadeAt }},
	{Name: "age_seconds", Value: func(v verified) any { return seconds(v.age.Seconds()) }},
	{Name: "verify_seconds", Value: func(v verified) any { return seconds(v.Verified.Took.Seconds()) }},
	{Name: "bytes", Value: func(v verified) any { return v.Bytes }},
	{Name: "schema", Value: func(v verified) any { return int64(v.Schema) }},
	{Name: "encrypted", Value: func(v verified) any { return v.Encrypted }},
	{Name: "ok", Value: func(v verified) any { return len(v.Problems) == 0 }},
	{Name: "problems", Value: func(v verified) any { return v.Problems }},
}

// run verifies a backup and prints the result. It fails if the backup cannot be restored or is older than oldest. An
// oldest of 0 allows any age.
func (c *verifying) run(e *frame.Env, b backup.Backup, oldest time.Duration) error {
	restore, err := c.options(e)
	if err != nil {
		return err
	}
	o := backup.VerifyOptions{RestoreOptions: restore, Server: c.Database, Check: checkRestored}
	if strings.Contains(c.Scratch, "://") {
		o.Server = c.Scratch
	} else {
		o.Folder = c.Scratch
	}
	v := verified{Backup: b, age: clock.Real().Now().Sub(b.MadeAt)}
	v.Verified, err = b.Verify(e.Ctx, o)
	restore.Progress("", 0, 0)
	if err != nil {
		return err
	}
	if oldest > 0 && v.age > oldest {
		v.Problems = append(v.Problems, fmt.Sprintf("the backup is %s old, more than %s", v.age.Round(time.Second), oldest))
	}
	if err := frame.PrintOne(e.Stdout, c.Output, verifiedColumns, v); err != nil {
		return err
	}
	if n := len(v.Problems); n > 0 {
		return problem.New(problem.Internal, "backup_wrong", fmt.Sprintf("Do not rely on this backup: %s", v.Problems[0]))
	}
	return nil
}

// checkRestored runs the checks of ledger check. They make no reference, so they work with any master key.
// The installation's key is never stored with a backup.
func checkRestored(ctx context.Context, d *db.DB) ([]string, error) {
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		return nil, err
	}
	o := frame.Assemble(d, clock.Real())
	p := o.Payments(secret)
	defer p.Close()
	found, err := o.Check(ctx, p)
	return found.Problems(), err
}

type backupVerify struct {
	verifying
	File string `arg:"" help:"The dump. Its manifest must be in the same folder."`
}

// Run verifies one backup.
func (c *backupVerify) Run(e *frame.Env) error {
	b, err := backup.Find(c.File)
	if err != nil {
		return err
	}
	return c.run(e, b, 0)
}

type backupDrill struct {
	backupFolder
	verifying
	MaxAge time.Duration `name:"max-age" placeholder:"DURATION" help:"Fail if the newest backup is older, such as 26h."`
}

// Run verifies the newest backup.
func (c *backupDrill) Run(e *frame.Env) error {
	b, err := backup.Newest(c.Folder)
	if err != nil {
		return err
	}
	return c.run(e, b, c.MaxAge)
}

// Restore creates a database from a backup.
type Restore struct {
	frame.Common
	backupKey
	File string `arg:"" help:"The dump. Its manifest must be in the same folder."`
}

// Run restores into a folder without a database, or into a PostgreSQL database without tables.
func (c *Restore) Run(e *frame.Env) error {
	b, err := backup.Find(c.File)
	if err != nil {
		return err
	}
	o, err := c.options(e)
	if err != nil {
		return err
	}
	target := db.Options{URL: c.Database, MaxConns: frame.Connections}
	if c.Database == "" {
		target.Path = c.SQLite()
	}
	err = b.Restore(e.Ctx, target, o)
	o.Progress("", 0, 0)
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, c.Output, backupColumns, b)
}
