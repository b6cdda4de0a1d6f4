package otp

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	tapsKept    = 48 * time.Hour // longer than a code is valid
	sweepAtOnce = 500
)

// Each statement removes at most $2 rows, the oldest first.
const (
	sweepCodes = `DELETE FROM otps WHERE (tenant, id) IN
	(SELECT tenant, id FROM otps WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)`
	sweepTaps = `DELETE FROM otp_taps WHERE (tenant, prefix) IN
	(SELECT tenant, prefix FROM otp_taps WHERE closed_until < $1 AND began < $1 ORDER BY closed_until LIMIT $2)`
	sweepCounters = `DELETE FROM otp_counters WHERE window_start < $1 AND (tenant, msisdn, name) IN
	(SELECT tenant, msisdn, name FROM otp_counters WHERE window_start < $1 ORDER BY window_start LIMIT $2)`
)

// Sweep deletes rows that are no longer needed, in small transactions.
func (c *Codes) Sweep(ctx context.Context) error {
	now := c.clock.Now()
	for _, s := range []struct {
		sql  string
		keep time.Duration
	}{{sweepCodes, c.keep}, {sweepTaps, tapsKept}, {sweepCounters, failWindow}} {
		if err := db.Prune(ctx, c.db, s.sql, sweepAtOnce, now.Add(-s.keep)); err != nil {
			return err
		}
	}
	return nil
}

// erasureWindow is the number of counters that one statement scans. A scan is necessary because numbers have no
// index.
const erasureWindow = 5_000

const (
	countersAfter = `SELECT tenant, msisdn, name FROM otp_counters WHERE (tenant, msisdn, name) > ($1, $2, $3) ORDER BY tenant, msisdn, name LIMIT $4`
	eraseCounter  = `DELETE FROM otp_counters WHERE tenant = $1 AND msisdn = $2 AND name = $3`
	eraseCode     = `UPDATE otps SET msisdn = $3, status = CASE WHEN status = 'open' THEN 'void' ELSE status END WHERE tenant = $1 AND id = $2`
)

// EraseCounters deletes the counters of codes to a number. The next code to the number counts as the first.
func (c *Codes) EraseCounters(ctx context.Context, number string) (erased int, err error) {
	type counter [3]string // tenant, number, name
	after := func(k counter) []any { return []any{k[0], k[1], k[2]} }
	scan := func(r *db.Row, k *counter) (counter, bool, error) {
		err := r.Scan(&k[0], &k[1], &k[2])
		return *k, k[1] == number, err
	}
	err = db.Walk(ctx, c.db, countersAfter, erasureWindow, after, scan, func(found []counter) error {
		erased += len(found)
		for _, k := range found {
			if err := c.db.Write(db.Bulk(ctx, k[0]), func(tx *db.Tx) error {
				tx.Defer(eraseCounter, -1, k[0], k[1], k[2])
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return erased, err
}

// EraseNumber replaces the number of a code by instead. An open code cannot be verified any more afterwards.
func EraseNumber(tx *db.Tx, tenant, id, instead string) { tx.Defer(eraseCode, -1, tenant, id, instead) }
