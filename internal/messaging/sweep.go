package messaging

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
)

// How long rows are kept.
const (
	sweepEvery = 10 * time.Minute
	stagedFor  = time.Hour
	earlyAfter = 24 * time.Hour
	tapsKept   = 48 * time.Hour // longer than a code lives
	otpsKept   = 7 * 24 * time.Hour
)

const (
	sweepStaged = `DELETE FROM chunks WHERE state = 'staged' AND created_at < $1`
	sweepEarly  = `DELETE FROM early_receipts WHERE received_at < $1`
	sweepOTPs   = `DELETE FROM otps WHERE expires_at < $1`
	sweepTaps   = `DELETE FROM otp_taps WHERE began < $1 AND closed_until < $1`
	sweepCounts = `DELETE FROM otp_counters WHERE window_start < $1`
)

// retention deletes rows that are no longer needed.
type retention struct {
	db       *db.DB
	clock    *clock.Clock
	receipts *receiptBook
}

// sweep deletes rows that are too old, matches orphan receipts, and refunds unknown messages without one.
func (r *retention) sweep(ctx context.Context) error {
	now := r.clock.Now()
	if err := r.receipts.matchEarlyReceipts(ctx, time.Time{}); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = r.receipts.matchOrphanReceipts(ctx, now.Add(-orphanAfter)); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		// Receipts from the end of the window have been matched by then.
		if more, err = r.receipts.refundUnknown(ctx, now.Add(-receiptWindow-orphanAfter)); err != nil {
			return err
		}
	}
	if err := r.receipts.logOrphanReceipts(ctx); err != nil {
		return err
	}
	if err := r.dropOldKeys(ctx, now.Add(-idempotency.Window)); err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *db.Tx) error {
		for _, s := range []struct {
			sql  string
			keep time.Duration
		}{{sweepStaged, stagedFor}, {sweepEarly, earlyAfter}, {sweepOTPs, otpsKept}, {sweepTaps, tapsKept}, {sweepCounts, otpFailWindow}} {
			tx.Defer(s.sql, -1, now.Add(-s.keep))
		}
		return nil
	})
}

const (
	// keysAtOnce is the most keys that one query for old ones reads: those of a day.
	keysAtOnce = 10_000
	oldKeys    = `SELECT tenant, id FROM campaigns WHERE idempotency_key <> '' AND created_at < $1 LIMIT $2`
	dropKeys   = `UPDATE campaigns SET idempotency_key = '' FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_id`
)

var keyOfCampaign = []db.Column[campaignKey]{
	{Name: "of_tenant", Text: func(k campaignKey) string { return k.tenant }},
	{Name: "of_id", Text: func(k campaignKey) string { return k.id }},
}

// dropOldKeys removes the idempotency keys of campaigns that were accepted before a time. No index tells old keys
// from the many of the last day: they are read outside SQLite's one writer, which would be blocked, and removed in
// small sets.
func (r *retention) dropOldKeys(ctx context.Context, before time.Time) error {
	for {
		var old []campaignKey
		err := r.db.Read(ctx, func(tx *db.Tx) error {
			old = nil
			return tx.Query(oldKeys, []any{before, keysAtOnce}, func(r *db.Row) error {
				var k campaignKey
				err := r.Scan(&k.tenant, &k.id)
				old = append(old, k)
				return err
			})
		})
		if err != nil {
			return err
		}
		for set := range slices.Chunk(old, sweepAtOnce) {
			if err := r.db.Write(ctx, func(tx *db.Tx) error {
				tx.Defer(dropKeys, -1, db.RowsOf(keyOfCampaign, set))
				return nil
			}); err != nil {
				return err
			}
		}
		if len(old) < keysAtOnce {
			return nil
		}
	}
}
