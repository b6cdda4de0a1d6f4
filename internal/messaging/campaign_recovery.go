package messaging

import (
	"context"
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// recoveryPause is how long a chunk that a recovery keeps back waits until its next try.
const recoveryPause = 30 * time.Second

// heldInRecovery reports whether a tenant's campaigns wait. After a restore the database may have forgotten that they
// were sent, and a message centre cannot be asked about them. An operator lets a tenant's campaigns through (makola
// recovery allow). One-time passwords do not wait: a second one does no harm.
func heldInRecovery(ctx context.Context, r *recovery.Recovery, tenant string) (bool, error) {
	if r == nil {
		return false, nil
	}
	s, err := r.State(ctx)
	return s.Closed() || s.Lasts() && !s.Allows(tenant), err
}

func errRecovering() error {
	e := problem.New(problem.Unavailable, "recovering", "The service is being recovered, and campaigns wait until that is done. Nothing was sent.")
	e.RetryAfter = recoveryPause
	return e
}
