package closing

import (
	"context"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// Books reads and closes the days of the books. It is safe for concurrent use.
type Books struct {
	db     *db.DB
	ledger *ledger.Ledger
	clock  *clock.Clock
}

// New makes Books.
func New(d *db.DB, l *ledger.Ledger, c *clock.Clock) *Books {
	return &Books{db: d, ledger: l, clock: c}
}

// Day is a day of Accra, counted from 1970-01-01. It is stored.
type Day int64

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day(t.Unix() / secondsADay) }

const secondsADay = 24 * 60 * 60

// The first and the last day that can be named. The year has four digits, and no books began before the first day.
var firstDay, lastDay = DayOf(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), DayOf(time.Date(2999, 12, 31, 0, 0, 0, 0, time.UTC))

// ParseDay reads a date such as 2026-11-27 for a field.
func ParseDay(field, text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if d := DayOf(t); err == nil && d >= firstDay && d <= lastDay {
		return d, nil
	}
	return 0, problem.Field(field, "must be a date such as 2026-11-27")
}

// Begin returns the first moment of the day.
func (d Day) Begin() time.Time { return time.Unix(int64(d)*secondsADay, 0).UTC() }

// End returns the first moment after the day.
func (d Day) End() time.Time { return (d + 1).Begin() }

// String writes the date: 2026-11-27.
func (d Day) String() string { return d.Begin().Format(time.DateOnly) }

// Began returns the day of the first movement of an asset. any is false if nothing has moved.
func (b *Books) Began(ctx context.Context, asset ledger.Asset) (day Day, any bool, err error) {
	var at time.Time
	err = b.db.Read(ctx, func(tx *db.Tx) error {
		at, err = ledger.FirstMovement(tx, asset)
		return err
	})
	return DayOf(at), !at.IsZero(), err
}

// Today returns the current day.
func (b *Books) Today() Day { return DayOf(b.clock.Now()) }
