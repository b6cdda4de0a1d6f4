package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
)

type backupCommands struct {
	Create backupCreate `cmd:"" help:"Make a backup of the database beside running servers: a dump and its manifest."`
	Verify backupVerify `cmd:"" help:"Restore a backup into a temporary place and check it as ledger check does; fails when something is wrong."`
	List   backupList   `cmd:"" help:"List the backups of a folder, newest first."`
	Drill  backupDrill  `cmd:"" help:"Verify the newest backup of a folder; says how old it is and how long that took."`
	Record backupRecord `cmd:"" help:"Record a backup that another tool made, such as pgBackRest or WAL-G, for makola doctor and the alert on old backups."`
}

// backupFolder is where backups lie.
type backupFolder struct {
	Folder string `name:"folder" env:"MAKOLA_BACKUP_FOLDER" default:"./makola-backups" placeholder:"FOLDER" help:"Folder of the backups; any tool may carry it away."`
}

// Validate refuses an empty folder, which would be the current one.
func (f backupFolder) Validate() error {
	if f.Folder == "" {
		return errors.New("--folder must name a folder")
	}
	return nil
}

// backupKey is the private key of encrypted backups.
type backupKey struct {
	Identity string `name:"identity" env:"MAKOLA_BACKUP_IDENTITY" placeholder:"PATH" help:"File with the private key of encrypted backups, as age-keygen makes it."`
}

// options are how a backup is taken apart.
func (k backupKey) options(e *env) (backup.RestoreOptions, error) {
	identities, err := backup.Identities(k.Identity)
	return backup.RestoreOptions{Identities: identities, Clock: clock.Real(), Progress: progressOn(e.stderr, megabytes)}, err
}

var backupColumns = []column[backup.Backup]{
	{"file", func(b backup.Backup) any { return b.Path }},
	{"made_at", func(b backup.Backup) any { return b.MadeAt }},
	{"engine", func(b backup.Backup) any { return b.Engine }},
	{"schema", func(b backup.Backup) any { return int64(b.Schema) }},
	{"makola", func(b backup.Backup) any { return b.Makola }},
	{"bytes", func(b backup.Backup) any { return b.Bytes }},
	{"encrypted", func(b backup.Backup) any { return b.Encrypted }},
	{"took_seconds", func(b backup.Backup) any { return seconds(b.Took) }},
}

// seconds are printed to the millisecond.
func seconds(s float64) float64 { return float64(int64(s*1000)) / 1000 }

type backupCreate struct {
	common
	backupFolder
	Recipients []string `name:"recipient" env:"MAKOLA_BACKUP_RECIPIENTS" placeholder:"KEY" help:"Public key of age (age1...) for which the backup is encrypted. May be repeated; none: it is not encrypted."`
}

// Run makes a backup. The database may lack migrations: a backup comes before them.
func (c *backupCreate) Run(e *env) error {
	recipients, err := backup.Recipients(c.Recipients)
	if err != nil {
		return err
	}
	if err := c.there(); err != nil {
		return err
	}
	return c.unmigrated(e, func(d *db.DB) error {
		pending, err := d.PendingMigrations(e.ctx)
		if err == nil {
			err = installation.New(d, clock.Real()).CheckMark(e.ctx, pending)
		}
		if err != nil {
			return err
		}
		progress := progressOn(e.stderr, megabytes)
		made, err := backup.Create(e.ctx, d, db.Options{URL: c.Database, Path: c.SQLite()},
			backup.CreateOptions{Folder: c.Folder, Recipients: recipients, Version: Version(), Clock: clock.Real(), Progress: progress})
		progress("", 0, 0)
		if err != nil {
			return err
		}
		if err := printOne(e.stdout, c.Output, backupColumns, made); err != nil {
			return err
		}
		entry := audit.Entry{Action: "backup.create", Subject: made.ID}
		o := assemble(d, clock.Real())
		o.journal = audit.Journal{Folder: c.Data, Failed: notNoted(e)}
		err = o.act(e.ctx, entry, func(tx *db.Tx) (any, error) {
			backup.Record(tx, made)
			return map[string]any{"file": made.Path, "bytes": made.Bytes, "encrypted": made.Encrypted}, nil
		})
		if err != nil {
			return problem.Wrap(err, problem.Unavailable, "backup_not_recorded", "The backup is whole, but the database could not note that it was made")
		}
		return nil
	})
}

type backupRecord struct {
	common
	Tool   string    `name:"tool" required:"" placeholder:"NAME" help:"Tool that made the backup, such as pgBackRest."`
	Name   string    `arg:"" help:"What the tool calls the backup: its label or its file."`
	MadeAt time.Time `name:"made-at" required:"" placeholder:"TIME" help:"When the backup began, such as 2026-03-03T09:00:00Z: it holds everything that was committed before."`
	Bytes  int64     `name:"bytes" placeholder:"N" help:"Size of the backup in bytes, if known."`
}

// recorded is a backup of another tool; Newest is whether the database remembers none that is newer.
type recorded struct {
	backup.Backup
	Newest bool
}

var recordedColumns = []column[recorded]{
	{"file", func(r recorded) any { return r.Path }},
	{"made_at", func(r recorded) any { return r.MadeAt }},
	{"bytes", func(r recorded) any { return r.Bytes }},
	{"newest", func(r recorded) any { return r.Newest }},
}

// Run records a backup. One that is older than the last backup is in the audit log alone.
func (c *backupRecord) Run(e *env) error {
	made, err := backup.MadeBy(c.Tool, c.Name, c.MadeAt, c.Bytes, clock.Real())
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		err := o.act(e.ctx, audit.Entry{Action: "backup.record", Subject: made.ID}, func(tx *db.Tx) (any, error) {
			backup.Record(tx, made)
			return map[string]any{"file": made.Path, "made_at": made.MadeAt, "bytes": made.Bytes}, nil
		})
		if err != nil {
			return err
		}
		last, _, err := backup.Last(e.ctx, o.db)
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, recordedColumns, recorded{made, last.Backup == made.ID})
	})
}

type backupList struct {
	backupFolder
	Output string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"table, json or csv."`
}

// Run lists. It opens no database.
func (c *backupList) Run(e *env) error {
	all, err := backup.List(c.Folder)
	if err != nil {
		return err
	}
	return printAll(e.stdout, c.Output, append(backupColumns[:len(backupColumns):len(backupColumns)],
		column[backup.Backup]{"problem", func(b backup.Backup) any { return b.Problem }}), all)
}

// verifying is what a look at a backup takes.
type verifying struct {
	backupKey
	Scratch  string `name:"scratch" env:"MAKOLA_BACKUP_SCRATCH" placeholder:"PLACE" help:"Where it is restored for a while: a folder for a SQLite backup (the system's temporary one when absent), the URL of a PostgreSQL server otherwise (--database when absent)."`
	Database string `name:"database" env:"MAKOLA_DATABASE" placeholder:"URL" help:"PostgreSQL URL; a temporary database is made beside it, and nothing else is done there."`
	Output   string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"table, json or csv."`
}

// verified is a look at one backup.
type verified struct {
	backup.Backup
	backup.Verified
	age time.Duration
}

var verifiedColumns = []column[verified]{
	{"file", func(v verified) any { return v.Path }},
	{"made_at", func(v verified) any { return v.MadeAt }},
	{"age_seconds", func(v verified) any { return seconds(v.age.Seconds()) }},
	{"verify_seconds", func(v verified) any { return seconds(v.Verified.Took.Seconds()) }},
	{"bytes", func(v verified) any { return v.Bytes }},
	{"schema", func(v verified) any { return int64(v.Schema) }},
	{"encrypted", func(v verified) any { return v.Encrypted }},
	{"ok", func(v verified) any { return len(v.Problems) == 0 }},
	{"problems", func(v verified) any { return v.Problems }},
}

// run verifies and prints, and fails where the backup is of no use or older than oldest, which is 0 for any age.
func (c *verifying) run(e *env, b backup.Backup, oldest time.Duration) error {
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
	v.Verified, err = b.Verify(e.ctx, o)
	restore.Progress("", 0, 0)
	if err != nil {
		return err
	}
	if oldest > 0 && v.age > oldest {
		v.Problems = append(v.Problems, fmt.Sprintf("it is %s old, older than %s", v.age.Round(time.Second), oldest))
	}
	if err := printOne(e.stdout, c.Output, verifiedColumns, v); err != nil {
		return err
	}
	if n := len(v.Problems); n > 0 {
		return problem.New(problem.Internal, "backup_wrong", fmt.Sprintf("The backup cannot be relied on: %s", v.Problems[0]))
	}
	return nil
}

// checkRestored makes the checks of ledger check. They make no reference, so that any master key will do: that of the
// installation is never beside a backup.
func checkRestored(ctx context.Context, d *db.DB) ([]string, error) {
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		return nil, err
	}
	o := assemble(d, clock.Real())
	p := o.payments(secret)
	defer p.Close()
	found, err := o.check(ctx, p)
	return found.problems(), err
}

type backupVerify struct {
	verifying
	File string `arg:"" help:"The dump, with its manifest beside it."`
}

// Run verifies one backup.
func (c *backupVerify) Run(e *env) error {
	b, err := backup.Find(c.File)
	if err != nil {
		return err
	}
	return c.run(e, b, 0)
}

type backupDrill struct {
	backupFolder
	verifying
	MaxAge time.Duration `name:"max-age" placeholder:"DURATION" help:"Fail when the newest backup is older, such as 26h."`
}

// Run verifies the newest backup.
func (c *backupDrill) Run(e *env) error {
	b, err := backup.Newest(c.Folder)
	if err != nil {
		return err
	}
	return c.run(e, b, c.MaxAge)
}

// restoreCommand makes a database of a backup.
type restoreCommand struct {
	common
	backupKey
	File string `arg:"" help:"The dump, with its manifest beside it."`
}

// Run restores into a folder without a database, or into a PostgreSQL database without tables.
func (c *restoreCommand) Run(e *env) error {
	b, err := backup.Find(c.File)
	if err != nil {
		return err
	}
	o, err := c.options(e)
	if err != nil {
		return err
	}
	target := db.Options{URL: c.Database, MaxConns: connections}
	if c.Database == "" {
		target.Path = c.SQLite()
	}
	err = b.Restore(e.ctx, target, o)
	o.Progress("", 0, 0)
	if err != nil {
		return err
	}
	return printOne(e.stdout, c.Output, backupColumns, b)
}
