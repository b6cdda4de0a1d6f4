package otp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// A tap counts the one-time passwords of one tenant to one range of numbers. It detects traffic pumping: somebody
// requests codes to numbers that never verify them, because each message earns money for the numbers' owner. Codes
// are counted in batches of a fixed number. A full batch gets some time for verifications. If too few arrive, the tap
// closes for a while. A batch that does not fill in time is dropped, so that a small number of codes never closes a
// tap.
//
// Every change except the count of a verification is made while the tenant's credits are locked. Each node therefore
// sees the batches of the others.

// tapRange is the number of digits of a number in its 233 form that identify a range.
const tapRange = 6

func rangeOf(n string) string { return n[:min(len(n), tapRange)] }

// RangeOf returns the range of a number in any spelling. It treats a text that is not a whole number as a range.
func RangeOf(text string) string {
	if n, err := msisdn.Parse(text); err == nil {
		return rangeOf(string(n))
	}
	return text
}

// tapKey identifies a tap.
type tapKey struct{ tenant, prefix string }

// tap returns the key of the code's tap.
func (code *Code) tap() tapKey { return tapKey{code.Tenant, rangeOf(string(code.Number))} }

// tap is the row of a tap.
type tap struct {
	tapKey
	batch, sent, verified             int64 // of the batch that is being filled
	began                             time.Time
	fullBatch, fullSent, fullVerified int64 // of the last full batch
	fullAt                            time.Time
	closedAt, closedUntil             time.Time
}

// begin starts a batch.
func (t *tap) begin(now time.Time) {
	t.batch, t.began, t.sent, t.verified = t.batch+1, now, 0, 0
}

// judge judges the full batch after its codes had their time, and reports whether the tap must close.
func (t *tap) judge(rule config.OTPTap, now time.Time) (closes bool) {
	age := now.Sub(t.fullAt)
	if t.fullAt.IsZero() || age >= 0 && age < rule.Wait {
		return false
	}
	t.fullAt = time.Time{}
	if age < 0 || (t.fullSent-t.fullVerified)*100 < t.fullSent*rule.Unverified { // a negative age means that the clock was set back
		return false
	}
	t.closedAt, t.closedUntil = now, now.Add(rule.Closed)
	t.begin(now)
	return true
}

// closed returns how long the tap stays closed. A time too far in the future dates from before the clock was
// corrected, and counts as open.
func (t *tap) closed(now time.Time) time.Duration {
	if t.closedAt.After(now) {
		return 0
	}
	return max(t.closedUntil.Sub(now), 0)
}

// count adds a code to the batch that is being filled, and returns the batch's number.
func (t *tap) count(rule config.OTPTap, now time.Time) (batch int64) {
	if age := now.Sub(t.began); t.batch == 0 || age < 0 || age >= rule.Within {
		t.begin(now)
	}
	t.sent++
	batch = t.batch
	if t.sent >= rule.Sends && t.fullAt.IsZero() {
		t.fullBatch, t.fullSent, t.fullVerified, t.fullAt = t.batch, t.sent, t.verified, now
		t.begin(now)
	}
	return batch
}

// taps has the taps of one transaction's codes.
type taps struct {
	rule    config.OTPTap
	read    map[tapKey]*tap
	changed map[tapKey]bool
	closing []tapKey
}

func newTaps(rule config.OTPTap) taps {
	return taps{rule: rule, read: map[tapKey]*tap{}, changed: map[tapKey]bool{}}
}

const (
	tapFields = `t.tenant, t.prefix, t.batch, t.began, t.sent, t.verified, t.full_batch, t.full_at, t.full_sent, t.full_verified, t.closed_at, t.closed_until`
	readTaps  = `SELECT ` + tapFields + ` FROM rows($1) AS asked JOIN otp_taps t ON t.tenant IN (asked.of_tenant) AND t.prefix = asked.of_prefix`
	// Verifications are counted concurrently. The number of verifications of a batch that stays, or becomes the full
	// batch, therefore comes from the row and not from memory.
	writeTaps = `INSERT INTO otp_taps (tenant, prefix, batch, began, sent, verified, full_batch, full_at, full_sent, full_verified, closed_at, closed_until)
		SELECT r.of_tenant, r.of_prefix, r.batch, r.began, r.sent, 0, r.full_batch, r.full_at, r.full_sent, 0, r.closed_at, r.closed_until FROM rows($1) AS r WHERE true
		ON CONFLICT (tenant, prefix) DO UPDATE SET batch = excluded.batch, began = excluded.began, sent = excluded.sent,
			verified = CASE WHEN otp_taps.batch = excluded.batch THEN otp_taps.verified ELSE 0 END,
			full_batch = excluded.full_batch, full_at = excluded.full_at, full_sent = excluded.full_sent,
			full_verified = CASE excluded.full_batch WHEN otp_taps.full_batch THEN otp_taps.full_verified WHEN otp_taps.batch THEN otp_taps.verified ELSE 0 END,
			closed_at = excluded.closed_at, closed_until = excluded.closed_until`
	countVerified = `UPDATE otp_taps SET verified = verified + CASE WHEN batch = $3 THEN 1 ELSE 0 END,
			full_verified = full_verified + CASE WHEN full_batch = $3 THEN 1 ELSE 0 END
		WHERE tenant = $1 AND prefix = $2 AND (batch = $3 OR full_batch = $3)`
)

var tapKeyColumns = []db.Column[tapKey]{
	{Name: "of_tenant", Text: func(k tapKey) string { return k.tenant }},
	{Name: "of_prefix", Text: func(k tapKey) string { return k.prefix }},
}

var tapColumns = []db.Column[*tap]{
	{Name: "of_tenant", Text: func(t *tap) string { return t.tenant }},
	{Name: "of_prefix", Text: func(t *tap) string { return t.prefix }},
	{Name: "batch", Int: func(t *tap) int64 { return t.batch }},
	{Name: "began", Time: func(t *tap) time.Time { return t.began }},
	{Name: "sent", Int: func(t *tap) int64 { return t.sent }},
	{Name: "full_batch", Int: func(t *tap) int64 { return t.fullBatch }},
	{Name: "full_at", Time: func(t *tap) time.Time { return t.fullAt }},
	{Name: "full_sent", Int: func(t *tap) int64 { return t.fullSent }},
	{Name: "closed_at", Time: func(t *tap) time.Time { return t.closedAt }},
	{Name: "closed_until", Time: func(t *tap) time.Time { return t.closedUntil }},
}

func (t *tap) scan(r *db.Row) error {
	return r.Scan(&t.tenant, &t.prefix, &t.batch, &t.began, &t.sent, &t.verified, &t.fullBatch, &t.fullAt, &t.fullSent, &t.fullVerified, &t.closedAt, &t.closedUntil)
}

// query returns the query that reads the taps of the codes.
func (s taps) query(codes []*Code) db.Query {
	for _, code := range codes {
		s.read[code.tap()] = &tap{tapKey: code.tap()}
	}
	return db.Query{SQL: readTaps, Args: []any{db.RowsOf(tapKeyColumns, slices.Collect(maps.Keys(s.read)))}, Each: func(r *db.Row) error {
		var t tap
		err := t.scan(r)
		s.read[t.tapKey] = &t
		return err
	}}
}

// open returns an error if the code's tap is closed. It first judges a full batch, which may close the tap.
func (s *taps) open(code *Code, now time.Time) error {
	t := s.read[code.tap()]
	if t == nil {
		return nil
	}
	if wait := t.closed(now); wait > 0 {
		return tapClosed(wait)
	}
	before := t.fullAt
	if t.judge(s.rule, now) {
		s.closing = append(s.closing, t.tapKey)
	}
	if !before.Equal(t.fullAt) {
		s.changed[t.tapKey] = true
	}
	if wait := t.closed(now); wait > 0 {
		return tapClosed(wait)
	}
	return nil
}

// count counts a code that will be sent.
func (s *taps) count(code *Code, now time.Time) {
	if t := s.read[code.tap()]; t != nil {
		code.batch = t.count(s.rule, now)
		s.changed[t.tapKey] = true
	}
}

// deferAll defers the changed rows. They are locked after the rows of codes, as in a verification, so that
// transactions cannot deadlock.
func (s *taps) deferAll(tx *db.Tx) {
	if len(s.changed) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(s.changed), func(a, b tapKey) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.prefix, b.prefix))
	})
	rows := make([]*tap, len(keys))
	for i, k := range keys {
		rows[i] = s.read[k]
	}
	tx.Defer(writeTaps, int64(len(rows)), db.RowsOf(tapColumns, rows))
}

// maskedRange returns a range as a number whose other digits are hidden.
func maskedRange(prefix string) string { return prefix + "******" }

func tapClosed(wait time.Duration) error {
	return &problem.Error{Kind: problem.RateLimited, Code: "otp_range_closed", RetryAfter: wait,
		Message: "One-time passwords to numbers of this range are stopped: too few of them were verified"}
}
