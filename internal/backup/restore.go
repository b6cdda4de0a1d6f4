package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/problem"
)

// RestoreOptions configure a restore.
type RestoreOptions struct {
	Identities []age.Identity // for an encrypted backup
	Clock      *clock.Clock
	Progress   Progress
}

// restoration is the state of a running restore.
type restoration struct {
	Backup
	RestoreOptions
	holds  Contents
	target db.Options
}

// Restore creates the database of target from a backup, and stores the row that LastRestore reads. The database must
// not exist; on PostgreSQL it must have no tables. It gets the backup's schema, which must not be newer than this
// program's. Restore compares the dump with its manifest before it writes anything, and the database afterwards. An
// interrupted restore leaves no database on SQLite, and no tables on PostgreSQL.
func (b Backup) Restore(ctx context.Context, target db.Options, o RestoreOptions) error {
	r := restoration{Backup: b, RestoreOptions: o, target: target}
	engine := db.SQLite
	if target.URL != "" {
		engine = db.Postgres
	}
	if b.Engine != engine.String() {
		return problem.New(problem.Forbidden, "other_engine", fmt.Sprintf("The backup is of %s and cannot be restored into %s", b.Engine, engine))
	}
	known, err := db.KnownSchema()
	if err != nil {
		return err
	}
	if b.Schema > known {
		return problem.New(problem.Forbidden, "schema_newer",
			fmt.Sprintf("The backup has schema %d and was made by makola %s. This program supports schemas up to %d: use that version or a later one", b.Schema, b.Makola, known))
	}
	if r.holds, err = b.contents(o.Identities); err != nil {
		return err
	}
	if engine == db.Postgres {
		return r.postgres(ctx)
	}
	return r.sqlite(ctx)
}

// whole compares the dump with its SHA-256.
func (r *restoration) whole(ctx context.Context) error {
	sum, size, err := digest(ctx, r.Path, r.Progress)
	if err != nil {
		return err
	}
	if sum != r.SHA256 || size != r.Bytes {
		return damaged("the SHA-256 of %s differs from its manifest", r.Path)
	}
	return nil
}

// read returns a reader of the decrypted dump.
func (r *restoration) read(ctx context.Context, use func(io.Reader) error) (err error) {
	file, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	from, err := r.open(r.Progress.metered(ctx, "restoring", file, r.Bytes), r.Identities)
	if err != nil {
		return err
	}
	return use(from)
}

// same compares a restored database with the manifest.
func (r *restoration) same(tx *db.Tx) error {
	schema, err := tx.Schema()
	if err != nil {
		return err
	}
	found, err := count(tx)
	if err != nil {
		return err
	}
	problems := r.holds.differences(found)
	if schema != r.Schema {
		problems = append(problems, fmt.Sprintf("the manifest has schema %d, the database has %d", r.Schema, schema))
	}
	if len(problems) > 0 {
		return damaged("the restored database differs from the manifest: %s", strings.Join(problems, "; "))
	}
	return nil
}

// inUse returns the error for a target that is not free.
func inUse(format string, args ...any) error {
	return problem.New(problem.InProgress, "target_in_use", fmt.Sprintf(format, args...)+". A backup can only be restored into a new, empty place")
}

// sqlite writes the database with its record to a temporary file, and renames the file when it is correct.
func (r *restoration) sqlite(ctx context.Context) (err error) {
	folder := filepath.Dir(r.target.Path)
	unlock, err := db.LockFolder(folder)
	if errors.Is(err, db.ErrLocked) {
		return inUse("%s", strings.TrimPrefix(err.Error(), "db: "))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for _, name := range []string{r.target.Path, r.target.Path + "-wal", r.target.Path + "-shm", r.target.Path + "-journal"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(inUse("%s exists", name), err)
		}
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	work, remove, err := workshop(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	path := filepath.Join(work, "makola.db")
	err = r.read(ctx, func(from io.Reader) error {
		return into(path, nil, func(to io.Writer) error {
			_, err := io.Copy(to, from)
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := r.marked(ctx, path); err != nil {
		return err
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
		return fmt.Errorf("backup: the restored file is incomplete: %v", left)
	}
	return place(path, r.target.Path)
}

// marked stores the record of the restore in a database file and compares the database with the manifest.
func (r *restoration) marked(ctx context.Context, path string) (err error) {
	d, err := db.Open(ctx, db.Options{Path: path, MaxConns: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	mark := r.mark(r.Clock)
	if err := d.Write(ctx, func(tx *db.Tx) error { mark.insert(tx); return nil }); err != nil {
		return damaged("the restored database does not belong to Makola: %v", err)
	}
	return d.ReadWhole(ctx, r.same)
}

// postgres passes the dump as SQL from pg_restore to psql, followed by the record of the restore, in one transaction.
// It commits only if pg_restore has succeeded.
func (r *restoration) postgres(ctx context.Context) error {
	var version string
	err := look(ctx, db.Options{URL: r.target.URL, MaxConns: 1}, func(tx *db.Tx) (err error) {
		version, err = r.free(tx)
		return err
	})
	if err != nil {
		return err
	}
	tools, err := findTools(ctx, toolFolders(), max(r.PgDump, majorOf(version)))
	if err != nil {
		return err
	}
	if err := postgres.RefusePooler(ctx, r.target.URL); err != nil {
		return err
	}
	environment, err := postgres.ClientEnvironment(r.target.URL)
	if err != nil {
		return err
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	if err := r.run(ctx, tools, append(os.Environ(), environment...)); err != nil {
		return err
	}
	return look(ctx, db.Options{URL: r.target.URL, MaxConns: 1}, r.same)
}

// free returns an error for a database that has tables.
func (r *restoration) free(tx *db.Tx) (version string, err error) {
	version, schema, err := tx.About()
	if err != nil {
		return "", err
	}
	if schema != r.Namespace {
		return "", problem.New(problem.Forbidden, "other_namespace",
			fmt.Sprintf("The backup's tables are in the schema %q, but the database uses %q: create the schema, and name it with ?search_path=%s in the URL", r.Namespace, schema, r.Namespace))
	}
	tables, err := tx.Tables()
	if err != nil || len(tables) == 0 {
		return version, err
	}
	for _, name := range tables {
		if name != "job_leases" {
			continue
		}
		nodes, err := lease.AliveNodes(tx)
		if err != nil {
			return "", err
		}
		if len(nodes) > 0 {
			return "", inUse("A server is running on this database: %s", strings.Join(nodes, ", "))
		}
	}
	return "", inUse("The database has %d tables", len(tables))
}

// run runs pg_restore | psql in one transaction. Afterwards it creates the statistics, which dumps do not contain.
func (r *restoration) run(ctx context.Context, tools tools, environment []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	psql := exec.CommandContext(ctx, tools.psql, "--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1")
	psql.Env = environment
	var said complaints
	psql.Stderr = &said
	script, err := psql.StdinPipe()
	if err != nil {
		return err
	}
	if err := psql.Start(); err != nil {
		return said.failed(psql, err)
	}
	_, err = io.WriteString(script, "BEGIN;\n")
	if err == nil {
		err = r.print(ctx, tools, script)
	}
	if err == nil {
		_, err = fmt.Fprintf(script, "\nSET LOCAL search_path TO %s;\n%s\nCOMMIT;\nANALYZE;\n", quoted(r.Namespace), r.mark(r.Clock).psql())
	}
	if err != nil && !errors.Is(err, errSilent) {
		cancel() // without a COMMIT nothing is stored
	}
	ended := errors.Join(script.Close(), psql.Wait())
	if ended != nil && (err == nil || errors.Is(err, errSilent)) {
		return said.failed(psql, ended)
	}
	return err
}

// errSilent is returned if psql stopped reading. psql reports the reason itself.
var errSilent = errors.New("backup: psql has stopped")

// print runs pg_restore, which writes the dump as SQL.
func (r *restoration) print(ctx context.Context, tools tools, script io.Writer) error {
	return r.read(ctx, func(dump io.Reader) error {
		run := exec.CommandContext(ctx, tools.restore, "--file=-", "--no-owner", "--no-privileges", "--exit-on-error", "--schema="+r.Namespace)
		run.Stdin = dump
		return piped(run, func(out io.Reader) error {
			buffer := make([]byte, 64<<10)
			for {
				n, err := out.Read(buffer)
				if _, silent := script.Write(buffer[:n]); silent != nil {
					return errSilent
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
			}
		})
	})
}
