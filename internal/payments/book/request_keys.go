package book

import "github.com/makola/makola/internal/db"

// A referenceKey is a client's reference, unique within a tenant and kind.
type referenceKey struct {
	tenant    string
	kind      Kind
	reference string
}

func referenceOf(p Payment) referenceKey { return referenceKey{p.Tenant, p.Kind, p.Reference} }

// An idempotencyKey is unique within a tenant, across all kinds of payments.
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
	// paymentsByReference is for one payment. Batches use byOwnReference.
	paymentsByReference = `SELECT ` + paymentColumns + ` FROM rows($1) AS k JOIN payments
ON payments.tenant IN (k.tenant) AND payments.kind = k.kind AND payments.reference = k.reference`

	// A ProviderReference derives from mode, tenant, kind and Reference, so repeated requests have the same one. If
	// the secret has changed since, they differ, and the unique index on the Reference refuses the second row.
	byOwnReference = `SELECT ` + paymentColumns + ` FROM payments WHERE payments.provider_reference IN (SELECT value FROM texts($1))`

	// Each key is looked up on its own, because the index covers only rows with a key. A join with a plan from a time
	// with few rows would read the whole index. BETWEEN keeps the planner from a full join if no payment was found.
	paymentsByKey = `WITH found AS MATERIALIZED (
	SELECT (SELECT p.id FROM payments AS p WHERE p.idempotency_key = k.key AND p.tenant = k.tenant) AS id FROM rows($1) AS k)
SELECT ` + paymentColumns + ` FROM found JOIN payments ON payments.id BETWEEN found.id AND found.id`

	keySet = `UPDATE payments SET idempotency_key = $2, idempotency_hash = $3 WHERE id = $1 AND idempotency_key IS NULL`

	// A key may be used again after a day, so the old row loses the key. COALESCE keeps PostgreSQL from using the
	// index on the key.
	keyRelease = `UPDATE payments SET idempotency_key = NULL FROM rows($1) AS k
WHERE payments.id IN (k.id) AND COALESCE(payments.idempotency_key, '') = k.key`
)
