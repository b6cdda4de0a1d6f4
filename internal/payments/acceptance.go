package payments

import (
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// An acceptance is a request to accept a payment, as this node has it. The caller
// fills in what the request says; prepare adds to the payment its ID, CreatedAt, Status,
// ProviderReference and Rail.
type acceptance struct {
	book.Acceptance
	// field is the request's field that a channel without a provider is
	// blamed on, childField the one of the child.
	field, childField string
	// waits: the request waits for the answer to the submission (payouts).
	waits bool
	// asker is who asks for a payout that the account's own people may have to approve.
	asker *Asker
	// claimed: an operator's claim, adopted where a provider has it, and nothing else.
	claimed bool
	// unsure: while a recovery lasts, the one rail that serves it may have it yet.
	unsure  bool
	probe   *route.Probe // of the rail that prepare chose; nil unless its breaker is half-open
	tracked *tracked     // made by prepare; nil for what has no job
	reply   *reply       // nil where no request waits
}

// asked begins a payment with what every kind takes from the request's caller.
func asked(c idempotency.Caller, t tenant.Tenant, k book.Kind) book.Payment {
	return book.Payment{
		Tenant: t.ID, Kind: k, Mode: string(t.Mode), FeeBearer: string(t.FeeBearer), Key: c.Key,
		IdempotencyKey: c.IdempotencyKey, IdempotencyHash: c.BodyHash,
	}
}

// all joins functions into one, but for those that are nil; nil when there are none.
func all(functions []func(*db.Tx) error) func(*db.Tx) error {
	functions = slices.DeleteFunc(slices.Clone(functions), func(fn func(*db.Tx) error) bool { return fn == nil })
	if len(functions) == 0 {
		return nil
	}
	return func(tx *db.Tx) error {
		for _, fn := range functions {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	}
}
