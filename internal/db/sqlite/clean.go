package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// logTries is how often EmptyLog waits for readers. Each wait takes at most busyTimeout.
const (
	logTries = 20
	logPause = 100 * time.Millisecond
)

// Vacuum rewrites the file of a SQLite database, so that it contains only its current rows and no remains of deleted
// ones. Writers wait until it is done.
func (d *DB) Vacuum(ctx context.Context) error {
	return d.alone(ctx, func(c *connection) error {
		_, err := c.conn.ExecContext(ctx, "VACUUM")
		return err
	})
}

// EmptyLog copies the write-ahead log of a SQLite database into its file and truncates the log. It waits for readers,
// and fails if some read for too long.
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
		return fmt.Errorf("db: truncate the write-ahead log: %w: readers did not end in time", engine.ErrUnavailable)
	})
}

// CopyInto copies one snapshot of the database into a file, which must be empty or missing. Readers and writers
// continue. The end of ctx stops the copy.
func (d *DB) CopyInto(ctx context.Context, path string) error {
	return d.alone(ctx, func(c *connection) error {
		_, err := c.conn.ExecContext(ctx, "VACUUM INTO ?", path)
		return err
	})
}

// alone runs fn on the writing connection, outside a transaction.
func (d *DB) alone(ctx context.Context, fn func(*connection) error) error {
	s, err := d.Session(ctx, engine.ModeAlone, engine.Purpose{})
	if err != nil {
		return err
	}
	defer func() { _ = s.End(false) }()
	return classify(fn(s.(*session).conn))
}
