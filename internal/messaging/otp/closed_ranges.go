package otp

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	closedTaps = `SELECT ` + tapFields + ` FROM otp_taps t WHERE t.closed_until > $1 AND t.closed_at <= $1 ORDER BY t.closed_until, t.tenant, t.prefix`
	countTaps  = `SELECT count(*) FROM otp_taps WHERE closed_until > $1 AND closed_at <= $1`
	selectTap  = `SELECT ` + tapFields + ` FROM otp_taps t WHERE t.tenant = $1 AND t.prefix = $2`
	// The codes of earlier batches are not judged any more.
	reopenTap = `UPDATE otp_taps SET closed_until = 0, full_at = 0, batch = batch + 1, began = $3, sent = 0, verified = 0
		WHERE tenant = $1 AND prefix = $2 AND closed_until > $3`
)

// ClosedRange is a range of numbers to which a tenant's one-time passwords are not sent.
type ClosedRange struct {
	Tenant   string
	Prefix   string // prefix of the numbers in their 233 form
	Sent     int64  // codes in the batch that closed the range
	Verified int64  // number of these codes that were verified until now
	At       time.Time
	Until    time.Time
}

func (t *tap) closedRange() ClosedRange {
	return ClosedRange{Tenant: t.tenant, Prefix: t.prefix, Sent: t.fullSent, Verified: t.fullVerified, At: t.closedAt, Until: t.closedUntil}
}

// ClosedRanges lists the ranges that are closed now, in the order in which they will open.
func (c *Codes) ClosedRanges(ctx context.Context) (all []ClosedRange, err error) {
	err = c.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.Query(closedTaps, []any{c.clock.Now()}, func(r *db.Row) error {
			var t tap
			err := t.scan(r)
			all = append(all, t.closedRange())
			return err
		})
	})
	return all, err
}

// CountClosedRanges counts the ranges that are closed now.
func (c *Codes) CountClosedRanges(ctx context.Context) (n int64, err error) {
	_, err = c.db.ReadOne(ctx, countTaps, []any{c.clock.Now()}, &n)
	return n, err
}

// ReopenRange opens a closed range in tx. The caller writes the audit entry in the same transaction. Counting starts
// again from zero. For a range that is not closed, ReopenRange returns NotFound.
func (c *Codes) ReopenRange(tx *db.Tx, tenantID, prefix string) (ClosedRange, error) {
	t, err := c.tenants.Locked(tx, tenantID)
	if err != nil {
		return ClosedRange{}, err
	}
	if _, err := c.ledger.Open(tx, t.SMSCredits()); err != nil { // taps change only under this lock
		return ClosedRange{}, err
	}
	var found tap
	now := c.clock.Now()
	if err := tx.Query(selectTap, []any{tenantID, prefix}, found.scan); err != nil {
		return ClosedRange{}, err
	}
	if found.closed(now) == 0 {
		return ClosedRange{}, problem.New(problem.NotFound, "range_not_closed", "This range is not closed for the tenant")
	}
	tx.Defer(reopenTap, 1, tenantID, prefix, now)
	return found.closedRange(), nil
}
