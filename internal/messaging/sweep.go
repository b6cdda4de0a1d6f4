package messaging

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
)

// The times after which rows have served.
const (
	sweepEvery    = 10 * time.Minute
	orphanAfter   = time.Hour
	earlyAfter    = 24 * time.Hour
	receiptWindow = 48 * time.Hour
	replayWindow  = 24 * time.Hour
	otpsKept      = 7 * 24 * time.Hour
	sweepAtOnce   = 500
)

// chunkMode puts test and live chunks in lines that take turns.
func chunkMode(j jobs.Job) string {
	if w, ok := j.Memo.(*work); ok {
		return string(w.campaign.Mode)
	}
	return ""
}

const (
	sweepOrphans = `DELETE FROM chunks WHERE state = 'staged' AND created_at < $1`
	sweepEarly   = `DELETE FROM early_receipts WHERE received_at < $1`
	sweepOTPs    = `DELETE FROM otps WHERE expires_at < $1`
	sweepCounts  = `DELETE FROM otp_counters WHERE window_start < $1`
	sweepKeys    = `UPDATE campaigns SET idempotency_key = '' WHERE idempotency_key <> '' AND created_at < $1`
)

// sweep removes what nobody needs and gives back what no receipt spoke for.
func (m *Messaging) sweep(ctx context.Context) error {
	now := m.clock.Now()
	err := m.db.Write(ctx, func(tx *db.Tx) error {
		for _, s := range []struct {
			sql  string
			keep time.Duration
		}{{sweepOrphans, orphanAfter}, {sweepEarly, earlyAfter}, {sweepOTPs, otpsKept}, {sweepCounts, otpFailWindow}, {sweepKeys, replayWindow}} {
			tx.Defer(s.sql, -1, db.Micros(now.Add(-s.keep)))
		}
		return nil
	})
	for more := err == nil; more && err == nil; {
		more, err = m.refundUnknown(ctx, now.Add(-receiptWindow))
	}
	return err
}

const (
	unsureMessages = `SELECT m.tenant, m.campaign, m.no, c.mode, c.credits FROM messages m JOIN campaigns c ON c.tenant = m.tenant AND c.id = m.campaign
		WHERE m.status IN ('sending', 'unknown') AND m.status = 'unknown' AND m.accepted = 0 AND m.submitted_at < $1
		ORDER BY m.tenant, m.campaign, m.no LIMIT $2 FOR UPDATE OF m`
	failUnsure = `UPDATE messages SET status = 'failed', error = 'no receipt came' FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND no = r.of_no AND status = 'unknown' AND accepted = 0`
)

// refundUnknown gives messages back whose fate nobody told within the receipt window. more says that
// there may be others.
func (m *Messaging) refundUnknown(ctx context.Context, before time.Time) (more bool, err error) {
	err = m.db.Write(ctx, func(tx *db.Tx) error {
		var keys []messageKey
		tallies := map[string]*tally{}
		var refunds []ledger.Transfer
		if err := tx.Query(unsureMessages, []any{db.Micros(before), sweepAtOnce}, func(r *db.Row) error {
			var k messageKey
			var mode string
			var credits int64
			if err := r.Scan(&k.tenant, &k.campaign, &k.no, &mode, &credits); err != nil {
				return err
			}
			keys = append(keys, k)
			c := Campaign{Tenant: k.tenant, ID: k.campaign, Mode: tenant.Mode(mode), Credits: credits}
			if tallies[c.ID] == nil {
				tallies[c.ID] = &tally{campaign: c}
			}
			tallies[c.ID].back++
			refunds = append(refunds, c.refund(1, fmt.Sprintf("refund:late:%d", k.no), m))
			return nil
		}); err != nil {
			return err
		}
		more = len(keys) == sweepAtOnce
		if len(keys) == 0 {
			return nil
		}
		if err := m.giveBack(tx, refunds); err != nil {
			return err
		}
		counted := make([]*tally, 0, len(tallies))
		for _, t := range tallies {
			counted = append(counted, t)
		}
		tx.Defer(failUnsure, int64(len(keys)), db.RowsOf(messageKeyColumns, keys))
		tx.Defer(countCampaigns, int64(len(counted)), db.RowsOf(tallyColumns, counted))
		return nil
	})
	return more, err
}
