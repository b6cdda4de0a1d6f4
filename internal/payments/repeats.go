package payments

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// repeats makes repeated requests wait while another node handles the first request. This node cannot see whether the
// first client is still connected. Without the wait, a client that reconnected to this node would be refused without
// reason.
type repeats struct {
	book     *book.Book
	follower *follower
	clock    *clock.Clock
	waiting  chan struct{} // a semaphore with one entry for each waiting request
}

const (
	// maxWaitingRepeats limits the waiting requests of a node. Each reads one row at most every repeatPause.
	maxWaitingRepeats = 128
	firstRepeatPause  = 50 * time.Millisecond
	repeatPause       = 400 * time.Millisecond
)

// wait waits while the request that err reports as open may still be running at another node. It returns true if the
// repeated request should be tried again. It returns false for every other error and when the repeated request's own
// time ends. It also returns false if this node handles the first request, because that client is known to be
// connected.
func (w *repeats) wait(ctx context.Context, gone <-chan struct{}, err error, began moment) bool {
	var open *book.OpenRequest
	if !errors.As(err, &open) {
		return false
	}
	select {
	case w.waiting <- struct{}{}:
		defer func() { <-w.waiting }()
	default:
		return false
	}
	id := open.Payment.ID
	for pause := firstRepeatPause; w.follower.live.byID(id) == nil; pause = min(2*pause, repeatPause) {
		left := answerTime - momentOf(w.clock).Sub(began)
		if left <= 0 || !w.pause(ctx, gone, min(pause, left)) {
			return false
		}
		row, found, err := w.book.Row(ctx, open.Payment.Tenant, id)
		if err != nil || !found {
			return false
		}
		if !w.follower.requestOpen(row) {
			return true
		}
	}
	return !w.follower.requestOpen(open.Payment)
}

// pause waits for d and reports whether the client is still connected.
func (w *repeats) pause(ctx context.Context, gone <-chan struct{}, d time.Duration) bool {
	timer := w.clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
	case <-ctx.Done():
	}
	return false
}
