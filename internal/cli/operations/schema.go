package operations

import (
	"errors"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
)

// unmigrated opens a database with any schema.
func unmigrated(c *frame.Common, e *frame.Env, work func(*db.DB) error) (err error) {
	d, err := db.Open(e.Ctx, db.Options{URL: c.Database, Path: c.SQLite(), MaxConns: frame.Connections})
	if err != nil {
		return frame.Unopened(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return work(d)
}
