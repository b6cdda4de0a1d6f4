package ledger

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/makola/makola/internal/db"
)

// A job sums each hour of money once, some time after its end. Reports of a period then read the sums of its whole hours, and transfers only
// at its ends. A late transfer may be posted into an hour that is summed already, such as after the clock was set back. The transaction then
// marks this hour and all later hours as not summed, and the job sums them again.

const (
	// SumEvery is the pause between two runs of the job that sums hours, and sumFor how long one run lasts.
	SumEvery = time.Minute
	sumFor   = 2 * time.Second
	// lateAfter is the age from which a transfer also makes a running sum fail. Younger transfers cannot belong to the hour that is
	// being summed, because the job waits for Overlap after an hour's end.
	lateAfter = Overlap / 2

	hourLong = int64(time.Hour / time.Microsecond)
)

// summed are the assets whose hours are summed.
var summed = []Asset{GHS, TestGHS}

const (
	sqlHoursFirst  = `INSERT INTO ledger_hours_state (one, version, summed_to) VALUES (1, 0, 0) ON CONFLICT (one) DO NOTHING`
	sqlHoursState  = `SELECT version, summed_to FROM ledger_hours_state WHERE one = 1`
	sqlHoursSummed = `UPDATE ledger_hours_state SET version = version + 1, summed_to = $2 WHERE one = 1 AND version = $1`
	sqlHoursBack   = `UPDATE ledger_hours_state SET version = version + 1, summed_to = CASE WHEN summed_to > $1 THEN $1 ELSE summed_to END WHERE one = 1`
	sqlHoursAhead  = `UPDATE ledger_hours_state SET version = version + 1, summed_to = $1 WHERE one = 1 AND summed_to > $1`
	sqlHoursDrop   = `DELETE FROM ledger_hours WHERE asset IN ('GHS', 'TEST_GHS') AND at >= $1`
	sqlNextHour    = `SELECT COALESCE(min(at), $2) FROM ledger_hours WHERE asset IN ('GHS', 'TEST_GHS') AND at >= $1`
	sqlNextAt      = `SELECT at FROM transfers WHERE at >= $1 ORDER BY at LIMIT 1`

	sqlHoursOf = `SELECT DISTINCT at FROM ledger_hours WHERE asset = $1 AND at >= $2 AND at < $3 AND substr(account, 1, $5) = $4 ORDER BY at`
)

// hourOf returns the beginning of the hour of a time in microseconds.
func hourOf(at int64) int64 { return at - ((at%hourLong)+hourLong)%hourLong }

// hours is the state of the sums.
type hours struct{ version, until int64 }

func hoursIn(tx *db.Tx) (h hours, known bool, err error) {
	known, err = tx.One(sqlHoursState, nil, &h.version, &h.until)
	return h, known, err
}

// An hourRow is a stored sum.
type hourRow struct {
	Motion
	asset Asset
	at    int64
}

var hourColumns = []db.Column[hourRow]{
	{Name: "asset", Text: func(r hourRow) string { return string(r.asset) }},
	{Name: "at", Int: func(r hourRow) int64 { return r.at }},
	{Name: "account", Text: func(r hourRow) string { return string(r.Account) }},
	{Name: "kind", Text: func(r hourRow) string { return r.Kind }},
	{Name: "moved_in", Int: func(r hourRow) int64 { return r.In }},
	{Name: "moved_out", Int: func(r hourRow) int64 { return r.Out }},
	{Name: "n", Int: func(r hourRow) int64 { return r.Count }},
}

// SumHours sums the hours that ended since the last run, for a bounded time.
func (l *Ledger) SumHours(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	for begun := time.Now(); time.Since(begun) < sumFor; {
		whole, err := l.sumHour(ctx)
		if errors.Is(err, db.ErrGuard) {
			return nil // another node sums, or a late transfer was posted
		}
		if whole || err != nil {
			return err
		}
	}
	return nil
}

// sumHour sums the next hour that has transfers, and reports whether there was none.
func (l *Ledger) sumHour(ctx context.Context) (whole bool, err error) {
	before := l.clock.Ago(Overlap)
	if before.IsZero() {
		return true, nil // the clock was set recently: transfers of the hour may not be committed yet
	}
	ended := hourOf(db.Micros(before))
	var h hours
	var known bool
	var rows []hourRow
	var to int64
	err = l.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		rows, to = nil, ended
		if h, known, err = hoursIn(tx); err != nil || known && h.until >= ended {
			return err
		}
		next := ended
		if _, err = tx.One(sqlNextAt, []any{h.until}, &next); err != nil || hourOf(next) >= ended {
			return err
		}
		hour := hourOf(next)
		to = hour + hourLong
		rows, err = sumsOfHour(tx, hour, false)
		return err
	})
	if err != nil || known && h.until >= ended {
		return true, err
	}
	return to == ended, l.db.Write(ctx, func(tx *db.Tx) error {
		if !known {
			tx.Defer(sqlHoursFirst, -1)
		}
		tx.Defer(sqlHoursSummed, 1, h.version, to)
		tx.Defer(sqlHoursDrop, -1, h.until)
		db.Insert(tx, "ledger_hours", hourColumns, rows)
		return nil
	})
}

// sumsOfHour sums an hour from its transfers, or as it is stored.
func sumsOfHour(tx *db.Tx, hour int64, stored bool) (rows []hourRow, err error) {
	d := divided{hour, hour + hourLong, hour + hourLong, hour + hourLong}
	if stored {
		d.first = hour
	}
	for _, asset := range summed {
		list, err := motions(tx, asset, d)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			rows = append(rows, hourRow{m, asset, hour})
		}
	}
	return rows, nil
}

// takeHoursBack marks the hour of a late transfer, and all later hours, as not summed. The job then sums them
// again.
func (p *Page) takeHoursBack() {
	oldest := hourOf(db.Micros(p.ledger.clock.Now().Add(-lateAfter)))
	first := hourOf(p.transfers[0].at)
	for _, t := range p.transfers {
		first = min(first, hourOf(t.at))
	}
	if first < oldest {
		p.tx.Defer(sqlHoursBack, -1, first)
	} else {
		p.tx.Defer(sqlHoursAhead, -1, first)
	}
}

// A divided period has whole hours that are summed, and transfers before and after them. Times are in microseconds.
type divided struct{ from, first, last, to int64 }

// divide divides a period. If the period has no summed hour, all its transfers count as before the whole
// hours.
func divide(tx *db.Tx, from, to int64) (divided, error) {
	h, _, err := hoursIn(tx)
	first, last := hourOf(from+hourLong-1), hourOf(min(to, h.until))
	if last <= first {
		first, last = to, to
	}
	return divided{from, first, last, to}, err
}

func (d divided) args(asset Asset) []any { return []any{asset, d.from, d.first, d.last, d.to} }

// CheckHour compares the sums of the first hour after a position with the hour's transfers. It returns the position for the next call. The
// first call has an empty position. It reports whether no hour was left.
func CheckHour(tx *db.Tx, position string, found *Findings) (next string, whole bool, err error) {
	from := int64(0)
	if position != "" {
		if from, err = strconv.ParseInt(position, 10, 64); err != nil {
			return position, false, err
		}
	}
	h, _, err := hoursIn(tx)
	if err != nil {
		return position, false, err
	}
	moved, stored := h.until, h.until
	if _, err = tx.One(sqlNextAt, []any{from}, &moved); err != nil {
		return position, false, err
	}
	if _, err = tx.One(sqlNextHour, []any{from, h.until}, &stored); err != nil {
		return position, false, err
	}
	hour := min(hourOf(moved), stored)
	if hour >= h.until {
		return position, true, nil
	}
	is, err := sumsOfHour(tx, hour, true)
	if err != nil {
		return position, false, err
	}
	should, err := sumsOfHour(tx, hour, false)
	if err == nil && !slices.Equal(is, should) {
		found.Add("the sums of the hour from %s differ from its transfers: makola figures rebuild counts them again", time.UnixMicro(hour).UTC().Format(time.RFC3339))
	}
	return strconv.FormatInt(hour+hourLong, 10), false, err
}

// SumHoursAgain counts the sums of all hours again from the transfers. Servers complete an interrupted run.
func (l *Ledger) SumHoursAgain(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(sqlHoursBack, -1, 0)
		return nil
	})
	for whole := false; err == nil && !whole; {
		if whole, err = l.sumHour(ctx); errors.Is(err, db.ErrGuard) {
			err = nil // a server sums too
		}
	}
	return err
}
