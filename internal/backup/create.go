package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/problem"
)

// CreateOptions configure a backup.
type CreateOptions struct {
	Folder     string          // created if missing, with access for its owner only
	Recipients []age.Recipient // none: the backup is not encrypted
	Version    string          // version of this program
	Clock      *clock.Clock
	Progress   Progress
}

// errOlder is returned for a database of a release that had no backups.
var errOlder error = problem.New(problem.Unavailable, "migrations_pending",
	"The database belongs to a release without backups: run makola migrate up")

// creation is the state of a running backup.
type creation struct {
	CreateOptions
	source db.Options
	db     *db.DB
	dump   string // incomplete, and under a temporary name
	made   Manifest
}

// Create makes a backup of d while d is in use: on SQLite with VACUUM INTO, on PostgreSQL with pg_dump. source has
// the options with which d was opened. No file in the folder has the backup's name before the backup is complete.
// Record stores the backup in the database.
func Create(ctx context.Context, d *db.DB, source db.Options, o CreateOptions) (b Backup, err error) {
	begun := o.Clock.Now()
	folder, remove, err := workshop(o.Folder)
	if err != nil {
		return b, problem.Wrap(err, problem.Unavailable, "backup_folder", "The folder of the backups cannot be written")
	}
	defer func() { err = errors.Join(err, remove()) }()
	c := &creation{CreateOptions: o, source: source, db: d, dump: filepath.Join(folder, "dump")}
	c.made = Manifest{Format: manifestFormat, ID: newID(), MadeAt: begun.UTC().Truncate(time.Millisecond), Makola: o.Version,
		Engine: d.Engine().String(), Encrypted: len(o.Recipients) > 0}
	c.made.File = nameOf(c.made.MadeAt, d.Engine(), c.made.Encrypted)
	if d.Engine() == db.Postgres {
		err = c.postgres(ctx)
	} else {
		err = c.sqlite(ctx)
	}
	if err != nil {
		return b, err
	}
	if err := os.Chmod(c.dump, 0o600); err != nil {
		return b, err
	}
	if c.made.SHA256, c.made.Bytes, err = digest(ctx, c.dump, o.Progress); err != nil {
		return b, err
	}
	c.made.Took = o.Clock.Now().Sub(begun).Seconds()
	return c.publish(folder)
}

// publish renames the dump and then its manifest to their final names.
func (c *creation) publish(folder string) (Backup, error) {
	if err := c.made.seal(c.Recipients); err != nil {
		return Backup{}, err
	}
	text, err := c.made.text()
	if err != nil {
		return Backup{}, err
	}
	manifest := filepath.Join(folder, "manifest")
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		return Backup{}, err
	}
	path := filepath.Join(c.Folder, c.made.File)
	if err := errors.Join(place(c.dump, path), place(manifest, path+manifestSuffix)); err != nil {
		return Backup{}, fmt.Errorf("backup: %w", err)
	}
	return Backup{Manifest: c.made, Path: path}, nil
}

// describe stores the identity and the contents of the database of tx in the manifest.
func (c *creation) describe(tx *db.Tx) error {
	contents, err := count(tx)
	if err != nil {
		return err
	}
	c.made.Contents = &contents
	if c.made.Schema, err = tx.Schema(); err != nil {
		return err
	}
	c.made.Version, c.made.Namespace, err = tx.About()
	return err
}

// sqlite copies the file, counts the copy's contents, and encrypts it. Until it is encrypted, the copy stays in the
// database's folder, from which nobody copies backups.
func (c *creation) sqlite(ctx context.Context) (err error) {
	plain := c.dump
	if len(c.Recipients) > 0 {
		folder, remove, err := workshop(filepath.Dir(c.source.Path))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
		plain = filepath.Join(folder, "copy")
	}
	if err := os.WriteFile(plain, nil, 0o600); err != nil { // SQLite would create it with wider permissions
		return err
	}
	info, err := os.Stat(c.source.Path)
	if err != nil {
		return err
	}
	stop := c.Progress.watch("copying", plain, info.Size())
	err = c.db.SQLite().CopyInto(ctx, plain)
	stop()
	if err != nil {
		return fmt.Errorf("backup: copy the database: %w", err)
	}
	if err := look(ctx, db.Options{Path: plain, MaxConns: 1}, c.describe); err != nil {
		return err
	}
	if len(c.Recipients) == 0 {
		return nil
	}
	from, err := os.Open(plain)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if info, err = from.Stat(); err != nil {
		return err
	}
	return into(c.dump, c.Recipients, func(to io.Writer) error {
		_, err := io.Copy(to, c.Progress.metered(ctx, "encrypting", from, info.Size()))
		return err
	})
}

// look opens a database, calls read in one snapshot, and closes the database.
func look(ctx context.Context, o db.Options, read func(*db.Tx) error) (err error) {
	d, err := db.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.ReadWhole(ctx, read)
}

// postgres runs pg_dump on a snapshot, and counts the contents of the same snapshot.
func (c *creation) postgres(ctx context.Context) error {
	if err := postgres.RefusePooler(ctx, c.source.URL); err != nil {
		return err
	}
	environment, err := postgres.ClientEnvironment(c.source.URL)
	if err != nil {
		return err
	}
	return c.db.ReadWhole(ctx, func(tx *db.Tx) error {
		snapshot, err := tx.Export()
		if err != nil {
			return err
		}
		if err := c.describe(tx); err != nil {
			return err
		}
		tools, err := findTools(ctx, toolFolders(), majorOf(c.made.Version))
		if err != nil {
			return err
		}
		c.made.PgDump = tools.major
		return into(c.dump, c.Recipients, func(to io.Writer) error {
			run := exec.CommandContext(ctx, tools.dump, "--format=custom", "--compress=1", "--no-owner", "--no-privileges", "--no-password",
				"--schema="+quoted(c.made.Namespace), "--snapshot="+snapshot)
			run.Env = append(os.Environ(), environment...)
			return piped(run, func(out io.Reader) error {
				_, err := io.Copy(to, c.Progress.metered(ctx, "dumping", out, 0))
				return err
			})
		})
	})
}
