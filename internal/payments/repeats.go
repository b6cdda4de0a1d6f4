package payments

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// repeats are repeated requests that wait for the answer of a first request at another node. This node does not know
// whether the first client still waits, so a client that lost its connection would be refused without reason.
type repeats struct {
	book     *book.Book
	follower *follower
	clock    *clock.Clock
	waiting  chan struct{} // has one for each of them
}

const (
	// maxWaitingRepeats limits the waiting requests of a node. Each reads one row every repeatPause at most.
	maxWaitingRepeats = 128
	firstRepeatPause  = 50 * time.Millisecond
	repeatPause       = 400 * time.Millisecond
)

// wait waits while another node may still answer the request that err reports as open. It reports whether the
// repeated request should be tried again. It returns false for every other error, at the end of the repeated request's
// own time, and where this node answers the first request: that client is known to wait.
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

// pause reports whether the client is still there after d.
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
