package db

import (
	"context"
	"fmt"
	"time"
)

// logTries bounds the wait of EmptyLog for readers, each try for busyTimeout at most.
const (
	logTries = 20
	logPause = 100 * time.Millisecond
)

// Vacuum rewrites the file of a SQLite database, so that it has what its rows have and nothing else. Writers wait until it is
// done. PostgreSQL is left to its own VACUUM.
func (d *DB) Vacuum(ctx context.Context) error {
	return d.alone(ctx, func(conn *sqliteConn) error {
		_, err := conn.conn.ExecContext(ctx, "VACUUM")
		return err
	})
}

// EmptyLog copies the log of a SQLite database into its file and cuts the log to no bytes. It waits for readers, and fails when
// some go on for too long. PostgreSQL is left alone.
func (d *DB) EmptyLog(ctx context.Context) error {
	return d.alone(ctx, func(conn *sqliteConn) error {
		for range logTries {
			var busy, pages, copied int64
			err := conn.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
			if err == nil && busy == 0 {
				return nil
			}
			select {
			case <-time.After(logPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return fmt.Errorf("db: empty the log: %w: others read for too long", ErrUnavailable)
	})
}

// alone runs fn on the connection of SQLite that writes, outside of a transaction.
func (d *DB) alone(ctx context.Context, fn func(*sqliteConn) error) error {
	lite, ok := d.opener.(*sqliteDB)
	if !ok {
		return nil
	}
	s, err := lite.session(ctx, modeAlone, purpose{})
	if err != nil {
		return err
	}
	defer func() { _ = s.end(false) }()
	return classify(fn(s.(*sqliteSession).conn))
}
