package book

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// paymentColumns are the columns that scanPayment reads. The table in the SELECT must be named payments.
const paymentColumns = `payments.tenant, payments.kind, payments.id, payments.seq, payments.mode, payments.channel,
payments.reference, payments.provider_reference, payments.amount, payments.charges, payments.fee_bearer, payments.plan,
payments.account, payments.account_name, payments.bank_id, payments.label, payments.callback_url, payments.access_key,
payments.idempotency_key, payments.idempotency_hash, payments.parent, payments.child, payments.details,
payments.status, payments.rail, payments.created_at, payments.settled_at, payments.reason, payments.refused,
payments.note, payments.upstream_id, payments.attempt, payments.attempt_reference, payments.posts, payments.unsent,
payments.sending_at, payments.class, payments.escalated_at, payments.turned_at, payments.refusal, payments.refusal_reason,
payments.refused_at, payments.last_word, payments.held_until, payments.waited_for, payments.batch,
payments.refund_of, payments.refund_way, payments.refunded, payments.voucher_at`

// scanPayment reads a payment from the columns of paymentColumns. It reads the columns in front of them into
// the values in before.
func scanPayment(r *db.Row, before ...any) (Payment, error) {
	var p Payment
	var key *string
	var details, class string
	err := r.Scan(append(before, &p.Tenant, &p.Kind, &p.ID, &p.Seq, &p.Mode, &p.Channel,
		&p.Reference, &p.ProviderReference, &p.Amount, &p.Charges, &p.FeeBearer, &p.Plan,
		&p.Account, &p.AccountName, &p.BankID, &p.Label, &p.CallbackURL, &p.Key,
		&key, &p.IdempotencyHash, &p.Parent, &p.Child, &details,
		&p.Status, &p.Rail, &p.CreatedAt, &p.SettledAt, &p.Reason, &p.Refused,
		&p.Note, &p.UpstreamID, &p.Attempt, &p.AttemptReference, &p.Submissions, &p.Unsent,
		&p.SendingAt, &class, &p.EscalatedAt, &p.ContradictedAt, &p.Refusal, &p.RefusalReason,
		&p.RefusedAt, &p.LastReported, &p.ApprovalDeadline, &p.WaitedFor, &p.Batch,
		&p.RefundOf, &p.RefundWay, &p.Refunded, &p.VoucherAt)...)
	if err != nil {
		return Payment{}, err
	}
	if key != nil {
		p.IdempotencyKey = *key
	}
	if p.AttemptReference == "" {
		p.AttemptReference = p.ProviderReference
	}
	p.Class, p.Classed = provider.ParseClass(class), class != ""
	p.Details, err = decodeDetails(details)
	return p, err
}

// insertColumns are the columns that acceptance writes. All other columns start with the defaults of the table.
var insertColumns = []db.Column[*Payment]{
	{Name: "tenant", Text: func(p *Payment) string { return p.Tenant }},
	{Name: "kind", Text: func(p *Payment) string { return string(p.Kind) }},
	{Name: "id", Text: func(p *Payment) string { return p.ID }},
	{Name: "seq", Int: func(p *Payment) int64 { return p.Seq }},
	{Name: "mode", Text: func(p *Payment) string { return p.Mode }},
	{Name: "channel", Text: func(p *Payment) string { return p.Channel }},
	{Name: "reference", Text: func(p *Payment) string { return p.Reference }},
	{Name: "provider_reference", Text: func(p *Payment) string { return p.ProviderReference }},
	{Name: "amount", Int: func(p *Payment) int64 { return int64(p.Amount) }},
	{Name: "charges", Int: func(p *Payment) int64 { return int64(p.Charges) }},
	{Name: "fee_bearer", Text: func(p *Payment) string { return p.FeeBearer }},
	{Name: "plan", Int: func(p *Payment) int64 { return p.Plan }},
	{Name: "account", Text: func(p *Payment) string { return p.Account }},
	{Name: "account_name", Text: func(p *Payment) string { return p.AccountName }},
	{Name: "bank_id", Text: func(p *Payment) string { return p.BankID }},
	{Name: "label", Text: func(p *Payment) string { return p.Label }},
	{Name: "callback_url", Text: func(p *Payment) string { return p.CallbackURL }},
	{Name: "access_key", Text: func(p *Payment) string { return p.Key }},
	{Name: "idempotency_key", NullText: func(p *Payment) *string {
		if p.IdempotencyKey == "" {
			return nil
		}
		return &p.IdempotencyKey
	}},
	{Name: "idempotency_hash", Text: func(p *Payment) string { return p.IdempotencyHash }},
	{Name: "parent", Text: func(p *Payment) string { return p.Parent }},
	{Name: "child", Text: func(p *Payment) string { return p.Child }},
	{Name: "details", Text: func(p *Payment) string { return p.Details.encode() }},
	{Name: "status", Text: func(p *Payment) string { return string(p.Status) }},
	{Name: "rail", Text: func(p *Payment) string { return p.Rail }},
	{Name: "created_at", Int: func(p *Payment) int64 { return db.Micros(p.CreatedAt) }},
	{Name: "settled_at", Int: func(p *Payment) int64 { return db.Micros(p.SettledAt) }},
	{Name: "note", Text: func(p *Payment) string { return p.Note }},
	{Name: "upstream_id", Text: func(p *Payment) string { return p.UpstreamID }},
	{Name: "sending_at", Int: func(p *Payment) int64 { return db.Micros(p.SendingAt) }},
	{Name: "held_until", Int: func(p *Payment) int64 { return db.Micros(p.ApprovalDeadline) }},
	{Name: "batch", Text: func(p *Payment) string { return p.Batch }},
	{Name: "batch_status", Text: func(p *Payment) string {
		if p.Batch == "" {
			return ""
		}
		return string(p.Status)
	}},
	{Name: "refund_of", Text: func(p *Payment) string { return p.RefundOf }},
	{Name: "refund_way", Text: func(p *Payment) string { return string(p.RefundWay) }},
	{Name: "refund_open", Int: func(p *Payment) int64 { return p.refundOpen() }},
}

const paymentsByID = `SELECT ` + paymentColumns + ` FROM payments WHERE id IN (SELECT value FROM texts($1))`

const paymentByID = `SELECT ` + paymentColumns + ` FROM payments WHERE payments.id = $1 AND payments.tenant || '' = $2 AND payments.kind || '' = $3`

// All transactions lock in the order of ids, which prevents deadlocks.
const paymentsLocked = `SELECT ` + paymentColumns + ` FROM payments WHERE id IN (SELECT value FROM texts($1)) ORDER BY id FOR UPDATE`

// Get reads one payment.
func (rd *Reader) Get(ctx context.Context, tenant string, kind Kind, id string) (pay Payment, found bool, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		found = false
		return tx.Query(paymentByID, []any{id, tenant, kind}, func(r *db.Row) error {
			found = true
			pay, err = scanPayment(r)
			return err
		})
	})
	return pay, found, err
}

// The row has the current attempt. Earlier attempts keep their references in the table attempts.
const paymentByProviderReference = `SELECT ` + paymentColumns + ` FROM payments WHERE provider_reference = $1
UNION ALL SELECT ` + paymentColumns + ` FROM payments WHERE attempt_reference = $1 AND attempt > 1
UNION ALL SELECT ` + paymentColumns + ` FROM attempts JOIN payments ON payments.id = attempts.payment
WHERE attempts.provider_reference = $1`

// ByProviderReference returns the payment of any tenant with this reference at a provider.
func (rd *Reader) ByProviderReference(ctx context.Context, reference string) (pay Payment, found bool, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		found = false
		return tx.Query(paymentByProviderReference, []any{reference}, func(r *db.Row) error {
			found = true
			pay, err = scanPayment(r)
			return err
		})
	})
	return pay, found, err
}

// Locked reads a payment and locks its row for a decision in the same transaction. It does not see deferred writes
// of the transaction.
func (rd *Reader) Locked(tx *db.Tx, id string) (pay Payment, err error) {
	found := false
	err = tx.Query(paymentsLocked, []any{[]string{id}}, func(r *db.Row) error {
		found = true
		pay, err = scanPayment(r)
		return err
	})
	if err == nil && !found {
		err = problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	return pay, err
}

func (rd *Reader) list(ctx context.Context, sql string, args ...any) (rows []Payment, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		return tx.Query(sql, args, appendPayment(&rows))
	})
	return rows, err
}

func appendPayment(rows *[]Payment) func(*db.Row) error {
	return func(r *db.Row) error {
		pay, err := scanPayment(r)
		*rows = append(*rows, pay)
		return err
	}
}
