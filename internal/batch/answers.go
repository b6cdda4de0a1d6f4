package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
)

// Recall returns the batch that an earlier request with the same Idempotency-Key was about. A batch that a recovery voided is
// forgotten, so that its client can send it again.
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

// Keep stores under the caller's Idempotency-Key which batch the request was about.
func (s *Batches) Keep(tx *db.Tx, caller idempotency.Caller, b Batch) error {
	if s.answers == nil {
		return nil
	}
	return s.answers.Keep(tx, caller, b.ID)
}
