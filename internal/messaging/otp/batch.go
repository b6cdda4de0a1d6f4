package otp

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/makola/makola/internal/db"
)

// Batch has the codes that one transaction charges. The caller runs Queries after it has locked each tenant's SMS
// credits. It then calls Admit for each code, Charged for each charged code, and DeferAll at the end.
type Batch struct {
	codes   *Codes
	asked   []*Code
	allowed allowances
	taps    taps
}

// Batch returns a batch of codes.
func (c *Codes) Batch(asked []*Code) *Batch {
	return &Batch{codes: c, asked: asked, allowed: allowances{}, taps: newTaps(c.tap)}
}

// Queries returns the queries that read the limits for the codes' numbers.
func (b *Batch) Queries() []db.Query {
	if len(b.asked) == 0 {
		return nil
	}
	queries := []db.Query{b.allowed.query(b.asked)}
	if b.codes.tap.Sends > 0 {
		queries = append(queries, b.taps.query(b.asked))
	}
	return queries
}

// Admit returns RateLimited if the code's number or range has reached a limit.
func (b *Batch) Admit(code *Code) error {
	now := b.codes.clock.Now()
	return cmp.Or(b.taps.open(code, now), b.allowed.take(code, now))
}

// Charged counts a code that the transaction charges for.
func (b *Batch) Charged(code *Code) { b.taps.count(code, b.codes.clock.Now()) }

const (
	voidCodes  = `UPDATE otps SET status = 'void' WHERE tenant = $1 AND msisdn = $2 AND status = 'open'`
	insertCode = `INSERT INTO otps (tenant, id, msisdn, prefix, hash, length, status, tries, created_at, expires_at, tap_batch)
		VALUES ($1, $2, $3, $4, $5, $6, 'open', 0, $7, $8, $9)`
)

// DeferAll defers the rows of the accepted codes. Each voids an earlier open code for its number. The rows of taps
// come last, as in a verification, so that transactions cannot deadlock.
func (b *Batch) DeferAll(ctx context.Context, tx *db.Tx, accepted []*Code) {
	now := b.codes.clock.Now()
	for _, code := range accepted {
		tx.Defer(voidCodes, -1, code.Tenant, string(code.Number))
		tx.Defer(insertCode, 1, code.Tenant, code.ID, string(code.Number), code.Prefix, code.hash, code.length, code.Created, code.Expires, code.batch)
		tx.Defer(countUse, -1, code.Tenant, string(code.Number), sendsCounter, now, now.Add(-sendWindow), now.Add(sendWindow), sendsInWindow)
	}
	b.taps.deferAll(tx)
	tx.AfterCommit(func() { b.codes.tapsClosed(ctx, b.taps) })
}

// tapsClosed logs and counts the taps that a transaction closed.
func (c *Codes) tapsClosed(ctx context.Context, s taps) {
	for _, k := range s.closing {
		t := s.read[k]
		c.metrics.tapsClosed.WithLabelValues(t.prefix[:min(len(t.prefix), networkLength)]).Inc()
		c.log.WarnContext(ctx, "closed number range: too few one-time passwords verified", "tenant", t.tenant, "range", maskedRange(t.prefix),
			"sent", t.fullSent, "verified", t.fullVerified, slog.Time("until", t.closedUntil))
	}
}
