package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
)

// Recall returns the batch of an earlier request with the same Idempotency-Key. It does not return a batch that a
// recovery voided, so that its client can send the batch again.
func (s *Batches) Recall(ctx context.Context, caller idempotency.Caller) (b Batch, replayed bool, err error) {
	if s.answers == nil {
		return b, false, nil
	}
	id, replayed, err := idempotency.Recall[string](ctx, s.answers, caller)
	if err != nil || !replayed {
		return b, false, err
	}
	b, err = s.Get(ctx, caller.Tenant, id)
	if err == nil && b.Status == Void {
		return Batch{}, false, s.answers.Forget(ctx, caller)
	}
	return b, true, err
}

// Keep stores the batch of a request under the caller's Idempotency-Key.
func (s *Batches) Keep(tx *db.Tx, caller idempotency.Caller, b Batch) error {
	if s.answers == nil {
		return nil
	}
	return s.answers.Keep(tx, caller, b.ID)
}
