package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Creating a PostgreSQL database creates about 500 files, and takes several times as long on some file systems after deletions. So
// databases are used again. Each database has a number and a lock on the server, and the process with the lock has the database. The
// lock ends with its connection, even if the test crashes. A test that takes a database first empties it. If the tables have
// changed, the test creates the database again.
//
// A process keeps the databases that its tests used, with a connection to each. On a new connection the server reads its
// catalogue again, which costs more than a small test.

// leased is a database that this process has.
type leased struct {
	url, name, template string
	lock                *pgx.Conn // connection to the server, which has the lock
	inside              *pgx.Conn // connection to the database; nil until the database was emptied
}

// ApplicationName is the name of the connections that dbtest keeps to the databases of tests.
const ApplicationName = "dbtest"

// idle are the databases that no test of this process has now.
var idle struct {
	sync.Mutex
	list []*leased
}

// lease gives the test a database of its own, with the tables of the template and nothing in them.
func lease(t testing.TB, server, template string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	d := takeIdle(server, template)
	if d == nil {
		d = lockFree(t, server, template)
	}
	t.Cleanup(func() {
		idle.Lock()
		defer idle.Unlock()
		idle.list = append(idle.list, d)
	})
	if err := d.empty(ctx); err != nil {
		d.close(ctx)
		if !errors.Is(err, errAbsent) {
			t.Logf("%s is made anew: %v", d.name, err)
		}
		if err := remake(ctx, server, d.url, d.name, template); err != nil {
			t.Fatalf("make a database: %v", err)
		}
	}
	return d.url
}

// takeIdle returns a database that an earlier test of this process had, or nil.
func takeIdle(server, template string) *leased {
	idle.Lock()
	defer idle.Unlock()
	for i, d := range idle.list {
		if d.template == template && d.url == withName(server, d.name) && !d.lock.IsClosed() {
			idle.list = slices.Delete(idle.list, i, i+1)
			return d
		}
	}
	return nil
}

// lockFree locks a database that no process has.
func lockFree(t testing.TB, server, template string) *leased {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect with the test server: %v", err)
	}
	for n := 1; ; n++ {
		name, locked := fmt.Sprint(testPrefix, strings.TrimPrefix(template, templatePrefix), "_", n), false
		if err := c.QueryRow(ctx, lockName, name).Scan(&locked); err != nil {
			_ = c.Close(ctx)
			t.Fatalf("lock a database: %v", err)
		}
		if locked {
			return &leased{url: withName(server, name), name: name, template: template, lock: c}
		}
	}
}

const (
	lockName  = `SELECT pg_try_advisory_lock(7318, hashtext($1))`
	nameThere = `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`
	// Only a killed program can still be connected.
	endOthers = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`
	madeWith  = `SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = current_database()`

	// The schema, which a test may have changed in addition to rows. A row of the catalogue that changed has another xmin. The texts
	// of constraints, indexes and functions would take the server several times as long.
	fingerprint = `SELECT md5(string_agg(line, ';' ORDER BY line)) FROM (
SELECT concat_ws(' ', 'relation', oid, relname, relkind, relchecks, relrowsecurity) AS line FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT concat_ws(' ', 'column', attrelid, attnum, xmin) FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) AND attnum > 0
UNION ALL SELECT concat_ws(' ', 'constraint', oid, xmin) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT concat_ws(' ', 'index', indexrelid, xmin) FROM pg_index
UNION ALL SELECT concat_ws(' ', 'default', oid, xmin) FROM pg_attrdef
UNION ALL SELECT concat_ws(' ', 'trigger', oid, xmin) FROM pg_trigger
UNION ALL SELECT concat_ws(' ', 'function', oid, xmin) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT concat_ws(' ', 'schema', nspname) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%'
UNION ALL SELECT concat_ws(' ', 'setting', setconfig::text) FROM pg_db_role_setting
	WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL SELECT concat_ws(' ', 'migration', number, checksum) FROM schema_migrations) AS x`

	// A table that has grown gets new files, others keep theirs.
	emptyTables = `DO $$ DECLARE t record; BEGIN
FOR t IN SELECT oid::regclass AS name, pg_relation_size(oid) AS size FROM pg_class
	WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_migrations' AND pg_relation_size(oid) > 0
LOOP
	EXECUTE CASE WHEN t.size > 65536 THEN 'TRUNCATE ' ELSE 'DELETE FROM ' END || t.name;
END LOOP; END $$`
)

var (
	errAbsent  = errors.New("there is no such database yet")
	errChanged = errors.New("a test changed its tables")
)

// empty resets a database to its initial state. After an error the database cannot be used.
func (d *leased) empty(ctx context.Context) (err error) {
	if d.inside == nil {
		if d.inside, err = d.connect(ctx); err != nil {
			return err
		}
	}
	if _, err := d.inside.Exec(ctx, endOthers, d.name); err != nil {
		return err
	}
	var was, is string
	if err := d.inside.QueryRow(ctx, madeWith).Scan(&was); err != nil {
		return err
	}
	if err := d.inside.QueryRow(ctx, fingerprint).Scan(&is); err != nil || was != is {
		return errors.Join(err, errChanged)
	}
	_, err = d.inside.Exec(ctx, emptyTables)
	return err
}

// connect opens the connection to a database, if the database exists.
func (d *leased) connect(ctx context.Context) (*pgx.Conn, error) {
	var there bool
	if err := d.lock.QueryRow(ctx, nameThere, d.name).Scan(&there); err != nil || !there {
		return nil, errors.Join(err, errAbsent)
	}
	config, err := pgx.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = ApplicationName
	return pgx.ConnectConfig(ctx, config)
}

// close ends the connection to a database.
func (d *leased) close(ctx context.Context) {
	if d.inside != nil {
		_ = d.inside.Close(ctx)
		d.inside = nil
	}
}

// remake makes a database and stores its state of the migrations in its comment.
func remake(ctx context.Context, server, url, name, template string) error {
	if err := run(ctx, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return err
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	var is string
	if err := c.QueryRow(ctx, fingerprint).Scan(&is); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "COMMENT ON DATABASE "+name+" IS '"+is+"'")
	return err
}
