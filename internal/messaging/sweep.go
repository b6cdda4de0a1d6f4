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

// Each statement removes at most $2 rows, the oldest first.
const (
	sweepStaged = `DELETE FROM chunks WHERE (tenant, campaign, no) IN
	(SELECT tenant, campaign, no FROM chunks WHERE state = 'staged' AND created_at < $1 ORDER BY created_at LIMIT $2)`
	sweepEarly = `DELETE FROM early_receipts WHERE (upstream_id, id) IN
	(SELECT upstream_id, id FROM early_receipts WHERE received_at < $1 ORDER BY received_at LIMIT $2)`
	sweepOTPs = `DELETE FROM otps WHERE (tenant, id) IN
	(SELECT tenant, id FROM otps WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)`
	sweepTexts = `UPDATE campaigns SET message = '' WHERE (tenant, id) IN
	(SELECT tenant, id FROM campaigns WHERE message <> '' AND status <> 'active' AND left_over = 0 AND created_at < $1 ORDER BY created_at LIMIT $2)`
	sweepTaps = `DELETE FROM otp_taps WHERE (tenant, prefix) IN
	(SELECT tenant, prefix FROM otp_taps WHERE closed_until < $1 AND began < $1 ORDER BY closed_until LIMIT $2)`
	sweepCounts = `DELETE FROM otp_counters WHERE window_start < $1 AND (tenant, msisdn, name) IN
	(SELECT tenant, msisdn, name FROM otp_counters WHERE window_start < $1 ORDER BY window_start LIMIT $2)`
)

// retention deletes rows that are no longer needed.
type retention struct {
	db       *db.DB
	clock    *clock.Clock
	receipts *receiptBook
	otps     time.Duration // that they are kept after they expired
	texts    time.Duration // that those of campaigns are kept; 0: for ever
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
		// Receipts from the end of the window have been matched by then. A clock that was set forward brings no refund.
		if more, err = r.receipts.refundUnknown(ctx, r.clock.Ago(receiptWindow+orphanAfter)); err != nil {
			return err
		}
	}
	if err := r.dropOldKeys(ctx, r.clock.Ago(idempotency.Window)); err != nil {
		return err
	}
	if r.texts > 0 {
		if err := r.drop(ctx, sweepTexts, now.Add(-r.texts)); err != nil {
			return err
		}
	}
	if err := r.drop(ctx, sweepEarly, r.clock.Ago(earlyAfter)); err != nil {
		return err
	}
	for _, s := range []struct {
		sql  string
		keep time.Duration
	}{{sweepStaged, stagedFor}, {sweepOTPs, r.otps}, {sweepTaps, tapsKept}, {sweepCounts, otpFailWindow}} {
		if err := r.drop(ctx, s.sql, now.Add(-s.keep)); err != nil {
			return err
		}
	}
	return nil
}

// drop runs a statement until no row from before a time is left, in small transactions.
func (r *retention) drop(ctx context.Context, sql string, before time.Time) error {
	for removed := int64(sweepAtOnce); removed == sweepAtOnce; {
		if err := r.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) (err error) {
			removed, err = tx.Exec(sql, before, sweepAtOnce)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
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
