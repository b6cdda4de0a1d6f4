package db

import (
	"context"
	"errors"
)

// Connections counts the connections to a PostgreSQL server, of all its databases and roles.
type Connections struct {
	Used int64
	Most int64 // maximum number of connections of all roles without privileges together
}

// max_connections includes the connections that are reserved for superusers. reserved_connections exists from
// PostgreSQL 16 on.
const sqlConnections = `SELECT
	(SELECT COALESCE(sum(numbackends), 0)::bigint FROM pg_stat_database),
	current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
		- COALESCE(current_setting('reserved_connections', true), '0')::bigint`

// Connections returns the numbers of connections to the PostgreSQL server.
func (d *DB) Connections(ctx context.Context) (c Connections, err error) {
	err = d.Read(System(ctx), func(tx *Tx) error {
		_, err := tx.One(sqlConnections, nil, &c.Used, &c.Most)
		return err
	})
	return c, err
}

// TriedRoom is the number of bytes that TryRoom stores.
const TriedRoom = 16 << 20

// Each row is too short to be compressed, and four rows fill a page. A temporary table writes no log.
const sqlTryRoom = `CREATE TEMPORARY TABLE makola_room ON COMMIT DROP AS
	SELECT repeat(md5(n::text), 60) AS filler FROM generate_series(1, 8192) AS n`

var errTried = errors.New("db: rolled back after the test of free space")

// TryRoom stores TriedRoom bytes on PostgreSQL's disk and rolls back, to see whether they fit. PostgreSQL has no
// function that returns the free space.
func (d *DB) TryRoom(ctx context.Context) error {
	err := d.Write(System(ctx), func(tx *Tx) error {
		if _, err := tx.Exec(sqlTryRoom); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// Short reports whether the disk is nearly full: below Options.Reserve on SQLite, or within a minute of a full-disk
// error. Callers should then not store rows that no payment needs, so that payments can continue.
func (d *DB) Short() bool { return d.disk.short() }

// Full reports whether the database found its disk full within the last minute. Writes of payments then fail, too.
func (d *DB) Full() bool { return d.disk.full() }
