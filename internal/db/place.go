package db

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db/postgres"
)

// Place identifies a copy of a database. Physical copies (a base backup, a standby) have the same System and Tables.
// A copy gets a new Timeline when it is promoted. All other copies have other values. Unknown fields are empty, as
// are all fields on SQLite.
type Place struct {
	System   string // PostgreSQL's system identifier
	Timeline string // eight hexadecimal digits; increases with each promotion
	Tables   string // the server's ids of the database and of a table in it
}

const (
	sqlPlaceSystem = `SELECT (SELECT CAST(system_identifier AS text) FROM pg_control_system()), substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`
	sqlPlaceTables = `SELECT CAST((SELECT oid FROM pg_database WHERE datname = current_database()) AS text) || '/' || CAST(CAST('schema_migrations' AS regclass) AS oid)`
)

const sqlNow = `SELECT now_micros()`

// Now returns the time by the database's clock, which on SQLite is the clock of this machine.
func (d *DB) Now(ctx context.Context) (now time.Time, err error) {
	err = d.Read(System(ctx), func(tx *Tx) error {
		var micros int64
		_, err := tx.One(sqlNow, nil, &micros)
		now = time.UnixMicro(micros)
		return err
	})
	return now, err
}

// Place returns the place of the database. It returns an error for a standby, because a standby accepts no
// writes.
func (d *DB) Place(ctx context.Context) (p Place, err error) {
	if d.engine != Postgres {
		return Place{}, nil
	}
	ask := func(sql string, to ...any) error {
		err := d.Read(System(ctx), func(tx *Tx) error {
			_, err := tx.One(sql, nil, to...)
			return err
		})
		if postgres.Withheld(err) {
			return nil
		}
		return err
	}
	err = ask(sqlPlaceSystem, &p.System, &p.Timeline)
	if err == nil {
		err = ask(sqlPlaceTables, &p.Tables)
	}
	return p, err
}

// Ping checks that the database responds. It does not wait for other transactions.
func (d *DB) Ping(ctx context.Context) error {
	return d.Read(System(ctx), func(tx *Tx) error {
		var one int64
		_, err := tx.One("SELECT 1", nil, &one)
		return err
	})
}
