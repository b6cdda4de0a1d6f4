package otp

import (
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// sweptTables are the tables that the sweep empties. insert adds rows with the keys $1 and the time $2.
var sweptTables = []struct {
	table, sweep, insert string
	keep                 time.Duration
}{
	{"otps", sweepCodes, `INSERT INTO otps (tenant, id, msisdn, prefix, hash, length, status, tries, created_at, expires_at)
		SELECT 'a tenant', value, '233241000001', '', '', 6, 'used', 0, 0, $2 FROM texts($1)`, defaultKeep},
	{"otp_taps", sweepTaps, `INSERT INTO otp_taps (tenant, prefix, batch, began, sent, verified, full_batch, full_at, full_sent,
		full_verified, closed_at, closed_until) SELECT 'a tenant', value, 1, $2, 0, 0, 0, 0, 0, 0, 0, $2 FROM texts($1)`, tapsKept},
	{"otp_counters", sweepCounters, `INSERT INTO otp_counters (tenant, msisdn, name, window_start, used)
		SELECT 'a tenant', value, 'sent', $2, 1 FROM texts($1)`, failWindow},
}

// The sweep removes rows in small transactions. One transaction for a day's rows would block SQLite's only writer,
// and therefore every payment.
func TestSweep_removesSmallSets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := codesOn(t, d)
		next := 0
		insert := func(sql string, count int, at time.Time) {
			list := make([]string, count)
			for i := range list {
				next++
				list[i] = fmt.Sprint(next)
			}
			if _, err := d.Exec(t.Context(), sql, list, at); err != nil {
				t.Fatal(err)
			}
		}
		const recent, old = 3, 2*sweepAtOnce + 1
		for _, s := range sweptTables {
			insert(s.insert, recent, morning)
			insert(s.insert, old, morning.Add(-s.keep-time.Second))
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				removed, err := tx.Exec(s.sweep, morning.Add(-s.keep), sweepAtOnce)
				if removed != sweepAtOnce {
					t.Errorf("%s: one statement removes %d rows, expected %d", s.table, removed, sweepAtOnce)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range sweptTables {
			left := 0
			if _, err := d.ReadOne(t.Context(), `SELECT COUNT(*) FROM `+s.table, nil, &left); err != nil {
				t.Fatal(err)
			}
			if left != recent {
				t.Errorf("%s: %d rows are left, expected %d", s.table, left, recent)
			}
		}
	})
}
