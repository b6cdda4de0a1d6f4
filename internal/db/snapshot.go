package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/db/sqlite"
)

// SQLite returns the SQLite database, or nil on PostgreSQL.
func (d *DB) SQLite() *sqlite.DB {
	file, _ := d.opener.(*sqlite.DB)
	return file
}

// Damage reads every page of a SQLite database and returns a list of problems. It does nothing on PostgreSQL, which
// verifies its own pages.
func (d *DB) Damage(ctx context.Context) (found []string, err error) {
	if d.engine == Postgres {
		return nil, nil
	}
	err = d.ReadWhole(ctx, func(t *Tx) error {
		found = nil
		return t.Query("PRAGMA integrity_check(20)", nil, func(r *Row) error {
			var line string
			if err := r.Scan(&line); err != nil {
				return err
			}
			if line != "ok" {
				found = append(found, line)
			}
			return nil
		})
	})
	if message := sqlite.Corrupt(err); message != "" {
		return append(found, message), nil
	}
	return found, err
}

const sqlExport = `SELECT pg_export_snapshot(), set_config('idle_in_transaction_session_timeout', '0', true)`

// Export returns an identifier with which other sessions of PostgreSQL use the snapshot of this transaction. The
// identifier is valid until the transaction ends.
func (t *Tx) Export() (snapshot string, err error) {
	var timeout string
	_, err = t.One(sqlExport, nil, &snapshot, &timeout)
	return snapshot, err
}

const (
	sqlTables     = `SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1`
	sqlTablesLite = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
)

// Tables lists the tables of the database. On PostgreSQL it lists the tables of our schema.
func (t *Tx) Tables() (names []string, err error) {
	text := sqlTablesLite
	if t.db.engine == Postgres {
		text = sqlTables
	}
	err = t.Query(text, nil, func(r *Row) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// Any reports whether a table has rows.
func (t *Tx) Any(table string) (bool, error) {
	var one int64
	return t.One(`SELECT 1 FROM "`+strings.ReplaceAll(table, `"`, `""`)+`" LIMIT 1`, nil, &one)
}

// Count counts the rows of each table.
func (t *Tx) Count(tables []string) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, name := range tables {
		var n int64
		if _, err := t.One(`SELECT count(*) FROM "`+strings.ReplaceAll(name, `"`, `""`)+`"`, nil, &n); err != nil {
			return nil, err
		}
		counts[name] = n
	}
	return counts, nil
}

// About returns the version of the engine and the PostgreSQL schema that holds our tables.
func (t *Tx) About() (version, schema string, err error) {
	if t.db.engine == SQLite {
		_, err = t.One(`SELECT sqlite_version()`, nil, &version)
		return version, "", err
	}
	_, err = t.One(`SELECT current_setting('server_version'), COALESCE(CAST(current_schema() AS TEXT), '')`, nil, &version, &schema)
	return version, schema, err
}

const (
	sqlSize     = `SELECT pg_database_size(current_database())`
	sqlSizeLite = `SELECT (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())`
)

// Size returns the size of the database in bytes. On SQLite it excludes the write-ahead log.
func (d *DB) Size(ctx context.Context) (bytes int64, err error) {
	text := sqlSizeLite
	if d.engine == Postgres {
		text = sqlSize
	}
	err = d.Read(ctx, func(t *Tx) error {
		_, err := t.One(text, nil, &bytes)
		return err
	})
	return bytes, err
}

const sqlLatest = `SELECT COALESCE(max(number), 0) FROM schema_migrations`

// Schema returns the number of the newest applied migration, even one that this program does not know.
func (t *Tx) Schema() (number int, err error) {
	_, err = t.One(sqlLatest, nil, &number)
	return number, err
}

// KnownSchema returns the number of this program's newest migration.
func KnownSchema() (int, error) {
	all, err := KnownMigrations()
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("db: no migrations: %w", err)
	}
	return all[len(all)-1].Number, nil
}
