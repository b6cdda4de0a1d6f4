package messaging

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
)

// The times after which rows have served.
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

// retention ends what rows have served for.
type retention struct {
	db       *db.DB
	clock    *clock.Clock
	receipts *receiptBook
}

// sweep removes what nobody needs, lets late receipts speak and gives back what none spoke for.
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
		// What came at the end of the window has been believed by then.
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
	// keysAtOnce is how many keys one look for old ones finds: it reads those of a day.
	keysAtOnce = 10_000
	oldKeys    = `SELECT tenant, id FROM campaigns WHERE idempotency_key <> '' AND created_at < $1 LIMIT $2`
	dropKeys   = `UPDATE campaigns SET idempotency_key = '' FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_id`
)

var keyOfCampaign = []db.Column[campaignKey]{
	{Name: "of_tenant", Text: func(k campaignKey) string { return k.tenant }},
	{Name: "of_id", Text: func(k campaignKey) string { return k.id }},
}

// dropOldKeys ends the idempotency keys of campaigns that were accepted before. No index tells the old ones from those
// of a day, which are many: they are looked for without SQLite's one writer, who would wait, and ended in small sets.
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
