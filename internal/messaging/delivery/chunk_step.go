package delivery

import (
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/jobs"
)

// step is one commit of a chunk's delivery: the collected results and the claims of the next messages. It is valid
// only if turn is the chunk's current turn, so that a chunk has one owner. It sets next as the turn, by which a
// committed step is recognized.
type step struct {
	job          *chunkJob
	work         *work
	turn, next   int64
	results      []result
	claim        []message // claimed; they have no row yet
	claimedAt    time.Time // claim time of the oldest message without a row
	retry        []message // queued -> sending
	inFlight     int       // claimed messages without a result; with some, the chunk does not end
	last         bool      // the chunk ends with this step
	leaves       bool      // the chunk leaves the shared job of its batch and gets its own
	checkStopped bool      // commit it even when it is empty: the campaign may be stopped
}

// idle reports whether the step need not be committed.
func (s *step) idle() bool { return s.empty() && !s.checkStopped }

// empty reports whether the step writes nothing.
func (s *step) empty() bool { return len(s.results)+len(s.claim)+len(s.retry) == 0 && !s.last }

// queued gives the messages among the results that are to be offered again.
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

// guardedByRows reports whether the step writes only one message row for each recipient of a small campaign. The keys
// of these rows guard it, because a later owner writes the same rows. The campaign's row then need not change.
func (s *step) guardedByRows() bool {
	if s.row().goes() || !s.last || len(s.results) != len(s.work.chunk.Recipients) {
		return false
	}
	return !slices.ContainsFunc(s.results, func(r result) bool { return r.message.stored || r.message.unaccepted() })
}

// claimsAll reports whether the step claims a whole chunk of a campaign younger than freshness. A check for a stop is
// then unnecessary.
func (s *step) claimsAll(now time.Time) bool {
	age := now.Sub(s.work.campaign.CreatedAt) // below 0 after the clock was set back
	return s.turn == 0 && len(s.claim)+len(s.retry) == len(s.work.chunk.Recipients) && age >= 0 && age < freshness
}

func (s *step) key() chunkKey { return s.work.chunk.key() }

func (s *step) row() *turnRow { return s.work.chunk.row() }

// errTakenOver means that another owner delivers the chunk, or has delivered it.
var errTakenOver = errors.New("messaging: another owner has the chunk")

// stepped is the verdict on a step; stopped means that an operator stopped the campaign and the chunk is over.
type stepped struct{ stopped bool }

// rest returns the job of a campaign that leaves its batch.
func (s *step) rest() (jobs.Job, error) {
	w := *s.work
	w.turn, w.retry = s.next, append(w.retry, s.queued()...)
	job, err := w.chunk.payload().job(smallKind(w.campaign.Mode))
	job.Memo = &w
	return job, err
}
