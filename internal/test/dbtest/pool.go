package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Making a PostgreSQL database costs some 500 files, and several times as long
// where the file system remembers those that were just deleted. So databases are
// used again: each has a number, and who holds the lock of its name on the
// server has the database. The lock ends with its connection, whatever becomes
// of the test. A test that takes a database empties it first, and makes it anew when
// its tables are no longer those that it was made with.

// lease gives the test a database of its own, with the tables of the template
// and nothing in them.
func lease(t testing.TB, server, template string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatalf("connect with the test server: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	name := ""
	for n, locked := 1, false; !locked; n++ {
		name = fmt.Sprint(testPrefix, strings.TrimPrefix(template, templatePrefix), "_", n)
		if err := c.QueryRow(t.Context(), lockName, name).Scan(&locked); err != nil {
			t.Fatalf("lock a database: %v", err)
		}
	}
	url := withName(server, name)
	if err := empty(t.Context(), c, url, name); err != nil {
		if !errors.Is(err, errAbsent) {
			t.Logf("%s is made anew: %v", name, err)
		}
		if err := remake(t.Context(), server, url, name, template); err != nil {
			t.Fatalf("make a database: %v", err)
		}
	}
	return url
}

const (
	lockName  = `SELECT pg_try_advisory_lock(7318, hashtext($1))`
	nameThere = `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`
	// Only a killed program can still be connected.
	endOthers = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`
	madeWith  = `SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = current_database()`

	// The schema, which a test may have changed in addition to rows.
	fingerprint = `SELECT md5(string_agg(line, ';' ORDER BY line)) FROM (
SELECT concat_ws(' ', 'column', attrelid::regclass, attname, atttypid::regtype, attnotnull) AS line FROM pg_attribute
	WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) AND attnum > 0
UNION ALL SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT concat_ws(' ', 'trigger', tgrelid::regclass, tgname) FROM pg_trigger
UNION ALL SELECT concat_ws(' ', 'function', proname, prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
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

// empty makes a database as it was made. An error means that it cannot be used.
func empty(ctx context.Context, server *pgx.Conn, url, name string) error {
	var there bool
	if err := server.QueryRow(ctx, nameThere, name).Scan(&there); err != nil || !there {
		return errors.Join(err, errAbsent)
	}
	if _, err := server.Exec(ctx, endOthers, name); err != nil {
		return err
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	var was, is string
	if err := c.QueryRow(ctx, madeWith).Scan(&was); err != nil {
		return err
	}
	if err := c.QueryRow(ctx, fingerprint).Scan(&is); err != nil || was != is {
		return errors.Join(err, errChanged)
	}
	_, err = c.Exec(ctx, emptyTables)
	return err
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
