package book

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// A move is a change of status. row has the new state.
type move struct {
	row         Payment
	was         Status
	wasDeadline time.Time
	submissions int // 0: any
}

// A reportedChange stores that a provider contradicted its own final report. again is set if the provider had
// contradicted itself before. was is then the provider's last report.
type reportedChange struct {
	row   Payment
	again bool
	was   string
}

// An abandonedAttempt is an attempt from which the payment was rerouted.
type abandonedAttempt struct {
	row    Payment // before the change
	reason string
	at     time.Time
}

var moveColumns = []db.Column[move]{
	{Name: "id", Text: func(m move) string { return m.row.ID }},
	{Name: "was", Text: func(m move) string { return string(m.was) }},
	{Name: "attempt", Int: func(m move) int64 { return int64(m.row.Attempt) }},
	{Name: "posts", Int: func(m move) int64 { return int64(m.submissions) }},
	{Name: "sending_at", Int: func(m move) int64 { return db.Micros(m.row.SendingAt) }},
	{Name: "status", Text: func(m move) string { return string(m.row.Status) }},
	{Name: "settled_at", Int: func(m move) int64 { return db.Micros(m.row.SettledAt) }},
	{Name: "reason", Text: func(m move) string { return m.row.Reason }},
	{Name: "refused", Bool: func(m move) bool { return m.row.Refused }},
	{Name: "note", Text: func(m move) string { return m.row.Note }},
	{Name: "class", Text: func(m move) string { return classText(m.row) }},
	{Name: "upstream_id", Text: func(m move) string { return m.row.UpstreamID }},
	{Name: "account_name", Text: func(m move) string { return m.row.AccountName }},
	{Name: "was_held", Int: func(m move) int64 { return db.Micros(m.wasDeadline) }},
	{Name: "refund_open", Int: func(m move) int64 { return m.row.refundOpen() }},
}

var changeColumns = []db.Column[AttemptChange]{
	{Name: "id", Text: func(m AttemptChange) string { return m.Row.ID }},
	{Name: "was_attempt", Int: func(m AttemptChange) int64 { return int64(m.WasAttempt) }},
	{Name: "was_posts", Int: func(m AttemptChange) int64 { return int64(m.WasSubmissions) }},
	{Name: "was_sending", Int: func(m AttemptChange) int64 { return db.Micros(m.WasSending) }},
	{Name: "rail", Text: func(m AttemptChange) string { return m.Row.Rail }},
	{Name: "attempt", Int: func(m AttemptChange) int64 { return int64(m.Row.Attempt) }},
	{Name: "attempt_reference", Text: func(m AttemptChange) string { return m.Row.AttemptReference }},
	{Name: "posts", Int: func(m AttemptChange) int64 { return int64(m.Row.Submissions) }},
	{Name: "unsent", Int: func(m AttemptChange) int64 { return int64(m.Row.Unsent) }},
	{Name: "sending_at", Int: func(m AttemptChange) int64 { return db.Micros(m.Row.SendingAt) }},
	{Name: "class", Text: func(m AttemptChange) string { return classText(m.Row) }},
	{Name: "upstream_id", Text: func(m AttemptChange) string { return m.Row.UpstreamID }},
	{Name: "reason", Text: func(m AttemptChange) string { return m.Row.Reason }},
	{Name: "escalated_at", NullInt: func(m AttemptChange) *int64 { return nullTime(m.Row.EscalatedAt) }},
	{Name: "refusal", Text: func(m AttemptChange) string { return string(m.Row.Refusal) }},
	{Name: "refusal_reason", Text: func(m AttemptChange) string { return m.Row.RefusalReason }},
	{Name: "refused_at", Int: func(m AttemptChange) int64 { return db.Micros(m.Row.RefusedAt) }},
	{Name: "held_until", Int: func(m AttemptChange) int64 { return db.Micros(m.Row.ApprovalDeadline) }},
	{Name: "waited_for", Int: func(m AttemptChange) int64 { return db.Micros(m.Row.WaitedFor) }},
	{Name: "voucher_at", NullInt: func(m AttemptChange) *int64 { return nullTime(m.Row.VoucherAt) }},
	{Name: "was_held", Int: func(m AttemptChange) int64 { return db.Micros(m.WasDeadline) }},
	{Name: "refund_open", Int: func(m AttemptChange) int64 { return m.Row.refundOpen() }},
}

var reportedColumns = []db.Column[reportedChange]{
	{Name: "id", Text: func(t reportedChange) string { return t.row.ID }},
	{Name: "status", Text: func(t reportedChange) string { return string(t.row.Status) }},
	{Name: "reason", Text: func(t reportedChange) string { return t.row.Reason }},
	{Name: "note", Text: func(t reportedChange) string { return t.row.Note }},
	{Name: "turned_at", Int: func(t reportedChange) int64 { return db.Micros(t.row.ContradictedAt) }},
	{Name: "again", Bool: func(t reportedChange) bool { return t.again }},
	{Name: "was", Text: func(t reportedChange) string { return t.was }},
	{Name: "last_word", Text: func(t reportedChange) string { return t.row.LastReported }},
}

var abandonedColumns = []db.Column[abandonedAttempt]{
	{Name: "tenant", Text: func(l abandonedAttempt) string { return l.row.Tenant }},
	{Name: "kind", Text: func(l abandonedAttempt) string { return string(l.row.Kind) }},
	{Name: "payment", Text: func(l abandonedAttempt) string { return l.row.ID }},
	{Name: "number", Int: func(l abandonedAttempt) int64 { return int64(l.row.Attempt) }},
	{Name: "rail", Text: func(l abandonedAttempt) string { return l.row.Rail }},
	{Name: "provider_reference", Text: func(l abandonedAttempt) string { return l.row.AttemptReference }},
	{Name: "posts", Int: func(l abandonedAttempt) int64 { return int64(l.row.Submissions) }},
	{Name: "class", Text: func(abandonedAttempt) string { return provider.NotSent.String() }},
	{Name: "reason", Text: func(l abandonedAttempt) string { return l.reason }},
	{Name: "ended_at", Int: func(l abandonedAttempt) int64 { return db.Micros(l.at) }},
}

func classText(p Payment) string {
	if !p.Classed {
		return ""
	}
	return p.Class.String()
}

func nullTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	us := db.Micros(t)
	return &us
}

// The guards require that status and attempt are unchanged. If a guard matches no row, the whole transaction fails.
const (
	paymentsMove = `UPDATE payments SET status = m.status, settled_at = m.settled_at, reason = m.reason,
refused = m.refused, note = m.note, class = m.class, upstream_id = m.upstream_id, account_name = m.account_name, escalated_at = NULL,
refusal = '', refusal_reason = '', refused_at = 0, held_until = 0, refund_open = m.refund_open,
batch_status = CASE WHEN payments.batch = '' THEN '' ELSE m.status END
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = m.was AND payments.attempt = m.attempt AND payments.held_until = m.was_held
AND (m.posts = 0 OR payments.posts = m.posts AND payments.sending_at = m.sending_at)`

	paymentsChange = `UPDATE payments SET rail = m.rail, attempt = m.attempt, attempt_reference = m.attempt_reference, posts = m.posts,
unsent = m.unsent, sending_at = m.sending_at, class = m.class, upstream_id = m.upstream_id, reason = m.reason, escalated_at = m.escalated_at,
refusal = m.refusal, refusal_reason = m.refusal_reason, refused_at = m.refused_at, held_until = m.held_until, waited_for = m.waited_for,
refund_open = m.refund_open, voucher_at = m.voucher_at
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = 'pending' AND payments.held_until = m.was_held
AND payments.attempt = m.was_attempt AND payments.posts = m.was_posts AND payments.sending_at = m.was_sending`

	paymentsReported = `UPDATE payments SET reason = m.reason, note = m.note, turned_at = m.turned_at, last_word = m.last_word
FROM rows($1) AS m
WHERE payments.id IN (m.id) AND payments.status = m.status AND payments.last_word = m.was
AND CASE WHEN payments.turned_at IS NULL THEN 0 ELSE 1 END = m.again`
)
