package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// logTries bounds the wait of EmptyLog for readers, each try for busyTimeout at most.
const (
	logTries = 20
	logPause = 100 * time.Millisecond
)

// Vacuum rewrites the file of a SQLite database, so that it has what its rows have and nothing else. Writers wait until it is
// done.
func (d *DB) Vacuum(ctx context.Context) error {
	return d.alone(ctx, func(c *connection) error {
		_, err := c.conn.ExecContext(ctx, "VACUUM")
		return err
	})
}

// EmptyLog copies the log of a SQLite database into its file and cuts the log to no bytes. It waits for readers, and fails when
// some go on for too long.
func (d *DB) EmptyLog(ctx context.Context) error {
	return d.alone(ctx, func(c *connection) error {
		for range logTries {
			var busy, pages, copied int64
			err := c.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
			if err == nil && busy == 0 {
				return nil
			}
			select {
			case <-time.After(logPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return fmt.Errorf("db: empty the log: %w: others read for too long", engine.ErrUnavailable)
	})
}

// CopyInto copies the database, as it is at one moment, into a file that is empty or not there yet. It holds up
// neither readers nor writers. The end of ctx breaks it off.
func (d *DB) CopyInto(ctx context.Context, path string) error {
	return d.alone(ctx, func(c *connection) error {
		_, err := c.conn.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	})
}

// alone runs fn on the writing connection, outside of a transaction.
func (d *DB) alone(ctx context.Context, fn func(*connection) error) error {
	s, err := d.Session(ctx, engine.ModeAlone, engine.Purpose{})
	if err != nil {
		return err
	}
	defer func() { _ = s.End(false) }()
	return classify(fn(s.(*session).conn))
}
