package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/otp"
)

// The interval of sweeps, and the times for which rows are kept.
const (
	sweepEvery = 10 * time.Minute
	stagedFor  = time.Hour
	earlyAfter = 24 * time.Hour
)

// Each statement changes at most $2 rows, the oldest first.
const (
	sweepStaged = `DELETE FROM chunks WHERE (tenant, campaign, no) IN
	(SELECT tenant, campaign, no FROM chunks WHERE state = 'staged' AND created_at < $1 ORDER BY created_at LIMIT $2)`
	sweepEarly = `DELETE FROM early_receipts WHERE (upstream_id, id) IN
	(SELECT upstream_id, id FROM early_receipts WHERE received_at < $1 ORDER BY received_at LIMIT $2)`
	// A small campaign stays active in its row. It has ended when no recipient waits.
	sweepTexts = `UPDATE campaigns SET message = '' WHERE (tenant, id) IN
	(SELECT c.tenant, c.id FROM campaigns c WHERE c.message <> '' AND c.created_at < $1 AND (c.status <> 'active' AND c.left_over = 0
		OR c.numbers <> '' AND ` + waitingOfSmall + ` = 0) ORDER BY c.created_at LIMIT $2)`
)

// retention deletes rows that are no longer needed.
type retention struct {
	db       *db.DB
	clock    *clock.Clock
	receipts *receiptBook
	codes    *otp.Codes
	texts    time.Duration // how long texts of campaigns are kept; 0: for ever
}

// sweep deletes rows that are too old, matches receipts without a message, and refunds unknown messages.
func (r *retention) sweep(ctx context.Context) error {
	now := r.clock.Now()
	if err := r.receipts.matchEarlyReceipts(ctx, time.Time{}); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = r.receipts.matchUnmatchedReceipts(ctx, now.Add(-unmatchedMatchAfter)); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		// By then, receipts from the end of the window have been matched. Ago is not affected by a clock that was set
		// forward, which would refund messages too early.
		if more, err = r.receipts.refundUnknown(ctx, r.clock.Ago(receiptWindow+unmatchedMatchAfter)); err != nil {
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
	if err := r.drop(ctx, sweepStaged, now.Add(-stagedFor)); err != nil {
		return err
	}
	return r.codes.Sweep(ctx)
}

// drop runs a statement in small transactions until no row is older than before.
func (r *retention) drop(ctx context.Context, sql string, before time.Time) error {
	return db.Prune(ctx, r.db, sql, sweepAtOnce, before)
}

const (
	// keysAtOnce is the maximum number of old keys that one query reads. It is enough for the keys of a day.
	keysAtOnce = 10_000
	oldKeys    = `SELECT tenant, id FROM campaigns WHERE idempotency_key <> '' AND created_at < $1 LIMIT $2`
	dropKeys   = `UPDATE campaigns SET idempotency_key = '' FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_id`
)

var keyOfCampaign = []db.Column[campaignKey]{
	{Name: "of_tenant", Text: func(k campaignKey) string { return k.tenant }},
	{Name: "of_id", Text: func(k campaignKey) string { return k.id }},
}

// dropOldKeys deletes the idempotency keys of campaigns that were accepted before a time. No index separates old keys
// from the many of the last day. The keys are therefore read outside SQLite's single writer, and deleted in small
// sets.
func (r *retention) dropOldKeys(ctx context.Context, before time.Time) error {
	for {
		old, err := db.ReadAll(ctx, r.db, oldKeys, []any{before, keysAtOnce}, func(k *campaignKey, r *db.Row) error {
			return r.Scan(&k.tenant, &k.id)
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
