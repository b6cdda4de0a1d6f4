package messaging

import (
	"context"
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// recoveryPause is how long what is held in a recovery waits until it comes again.
const recoveryPause = 30 * time.Second

// heldInRecovery says whether a tenant's campaigns wait: the database may have forgotten that
// they were sent, and no operator's message centre can be asked. An operator lets a
// tenant's through (makola recovery allow). One-time passwords are not held: nobody
// is harmed by a second one.
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
