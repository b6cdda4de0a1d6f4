package payments

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// idempotencyTime is how long an Idempotency-Key is remembered.
const idempotencyTime = 24 * time.Hour

// A referenceKey is what must be unique: a client's reference within a tenant
// and a kind.
type referenceKey struct {
	tenant    string
	kind      Kind
	reference string
}

func referenceOf(p Payment) referenceKey { return referenceKey{p.Tenant, p.Kind, p.Reference} }

// An idempotencyKey is unique within a tenant, whatever the operation.
type idempotencyKey struct{ tenant, key string }

func idempotencyOf(p Payment) idempotencyKey { return idempotencyKey{p.Tenant, p.IdempotencyKey} }

var referenceColumns = []db.Column[referenceKey]{
	{Name: "tenant", Text: func(k referenceKey) string { return k.tenant }},
	{Name: "kind", Text: func(k referenceKey) string { return string(k.kind) }},
	{Name: "reference", Text: func(k referenceKey) string { return k.reference }},
}

var idempotencyColumns = []db.Column[idempotencyKey]{
	{Name: "tenant", Text: func(k idempotencyKey) string { return k.tenant }},
	{Name: "key", Text: func(k idempotencyKey) string { return k.key }},
}

var releaseColumns = []db.Column[*Payment]{
	{Name: "id", Text: func(p *Payment) string { return p.ID }},
	{Name: "key", Text: func(p *Payment) string { return p.IdempotencyKey }},
}

const (
	// For a question about one payment. The hot way is byOwnReference.
	paymentsByReference = `SELECT ` + paymentColumns + ` FROM rows($1) AS k JOIN payments
ON payments.tenant IN (k.tenant) AND payments.kind = k.kind AND payments.reference = k.reference`

	// The ProviderReference is made of mode, tenant, kind and Reference, so that
	// the same request has the same one. The unique key on the Reference itself
	// holds where the secret under which it is made has changed.
	byOwnReference = `SELECT ` + paymentColumns + ` FROM payments WHERE payments.provider_reference IN (SELECT value FROM texts($1))`

	// Each key is looked for by itself: the index has only rows with a key, and
	// where there were few when the plan was made, a join reads all of it. BETWEEN
	// keeps the join from being one where there was no payment.
	paymentsByKey = `WITH found AS MATERIALIZED (
	SELECT (SELECT p.id FROM payments AS p WHERE p.idempotency_key = k.key AND p.tenant = k.tenant) AS id FROM rows($1) AS k)
SELECT ` + paymentColumns + ` FROM found JOIN payments ON payments.id BETWEEN found.id AND found.id`

	// A key that is older than a day may come again; the row lets go of it.
	// COALESCE keeps PostgreSQL from the index on the key.
	keyRelease = `UPDATE payments SET idempotency_key = NULL FROM rows($1) AS k
WHERE payments.id IN (k.id) AND COALESCE(payments.idempotency_key, '') = k.key`
)

// byIdempotency finds the payment that an earlier request with the same
// Idempotency-Key made within the last day.
func (b *batch) byIdempotency(p Payment) *Payment {
	if p.IdempotencyKey == "" {
		return nil
	}
	k := idempotencyOf(p)
	old := b.byKey[k]
	if old == nil {
		return nil
	}
	if p.CreatedAt.Sub(old.CreatedAt) >= idempotencyTime {
		b.released = append(b.released, old)
		delete(b.byKey, k)
		return nil
	}
	return old
}

// replay answers a request whose Idempotency-Key came before.
func (b *batch) replay(old, asked Payment) (result, error) {
	if old.Kind != asked.Kind || old.IdempotencyHash != asked.IdempotencyHash {
		return result{}, problem.New(problem.Invalid, "idempotency_key_mismatch", "The Idempotency-Key was used with another request")
	}
	if b.p.answering(old) {
		e := problem.New(problem.InProgress, "idempotency_in_progress", "The first request with this Idempotency-Key is still being answered")
		e.RetryAfter = time.Second
		return result{}, e
	}
	return result{payment: old, replayed: true}, nil
}

// answering says whether the request that made a payment may not have its
// answer yet: a payout that is being submitted, here or on another node.
func (p *Payments) answering(pay Payment) bool {
	if pay.Kind != KindPayout || !pay.Status.Open() {
		return false
	}
	if w := p.live.byID(pay.ID); w != nil {
		return !w.isAnswered()
	}
	return p.clock.Since(pay.CreatedAt).Abs() < answerTime
}
