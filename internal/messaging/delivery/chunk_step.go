package delivery

import (
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/jobs"
)

// step is one commit of a chunk's delivery. It stores the results so far and claims the next messages. A step is
// valid only if turn is the chunk's current turn, so that a chunk has one owner. The step replaces the turn by next.
// A committed step is recognized by next.
type step struct {
	job          *chunkJob
	work         *work
	turn, next   int64
	results      []result
	claim        []message // claimed messages, which have no row yet
	claimedAt    time.Time // claim time of the oldest message without a row
	retry        []message // queued messages that become sending
	inFlight     int       // claimed messages without a result; the chunk cannot end while there are any
	last         bool      // the chunk ends with this step
	leaves       bool      // the chunk leaves the shared job of its batch and gets its own
	checkStopped bool      // commit the step even if it is empty: the campaign may be stopped
}

// idle reports whether the step need not be committed.
func (s *step) idle() bool { return s.empty() && !s.checkStopped }

// empty reports whether the step writes nothing.
func (s *step) empty() bool { return len(s.results)+len(s.claim)+len(s.retry) == 0 && !s.last }

// queued returns the messages among the results that must be submitted again.
func (s *step) queued() []message {
	var waiting []message
	for _, r := range s.results {
		if r.message.Status == StatusQueued {
			r.message.stored = true
			waiting = append(waiting, r.message)
		}
	}
	return waiting
}

// guardedByRows reports whether the step only inserts one message row for each recipient of a small campaign. The
// keys of these rows guard the step, because another owner would insert the same keys. The campaign's row then need
// not change.
func (s *step) guardedByRows() bool {
	if s.row().goes() || !s.last || len(s.results) != len(s.work.chunk.Recipients) {
		return false
	}
	return !slices.ContainsFunc(s.results, func(r result) bool { return r.message.stored || r.message.unaccepted() })
}

// claimsAll reports whether the step claims a whole chunk of a campaign that is younger than freshness. It is too
// early then for a stop, so no check is needed.
func (s *step) claimsAll(now time.Time) bool {
	age := now.Sub(s.work.campaign.CreatedAt) // negative after the clock was set back
	return s.turn == 0 && len(s.claim)+len(s.retry) == len(s.work.chunk.Recipients) && age >= 0 && age < freshness
}

func (s *step) key() chunkKey { return s.work.chunk.key() }

func (s *step) row() *turnRow { return s.work.chunk.row() }

// errTakenOver is returned if another owner delivers or has delivered the chunk.
var errTakenOver = errors.New("messaging: another owner has the chunk")

// stepped is the result of a step. stopped means that an operator stopped the campaign, so the chunk is finished.
type stepped struct{ stopped bool }

// rest returns the job of a campaign that leaves its batch.
func (s *step) rest() (jobs.Job, error) {
	w := *s.work
	w.turn, w.retry = s.next, append(w.retry, s.queued()...)
	job, err := w.chunk.payload().job(smallKind(w.campaign.Mode))
	job.Memo = &w
	return job, err
}
