package access

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// write runs fn in one transaction and fails the test if that returns an error.
func write(t *testing.T, d *db.DB, fn func(tx *db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// other returns a second node on the same database, with a clock of its own.
func other(d *db.DB, at time.Time) (*Access, *clock.Clock) {
	c := clock.NewManual(at)
	return New(d, c), c
}

func read(t *testing.T, d *db.DB, sql string, dest ...any) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		found, err := tx.One(sql, nil, dest...)
		if !found && err == nil {
			t.Errorf("%s found nothing", sql)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
