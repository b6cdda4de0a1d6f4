package messaging

import (
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/jobs"
)

// step is one commit of a chunk's delivery: the results that have come and the marks of what is sent next. It counts
// only while turn is the chunk's last one, so that one owner at a time delivers a chunk, and next becomes
// the last one, so that a step that was committed is known again.
type step struct {
	job          *chunkJob
	work         *work
	turn, next   int64
	results      []result
	claim        []message // marked; they have no row yet
	markedAt     time.Time // of the oldest that is marked and has no row
	retry        []message // queued -> sending
	inFlight     int       // marked before, neither among the results nor recorded: the chunk does not end
	last         bool      // the chunk is over
	leaves       bool      // the job goes on without the chunk, which gets one of its own
	checkStopped bool      // commit it even if there is nothing to write: the campaign may be stopped
}

// idle says that there is no need to commit the step.
func (s *step) idle() bool { return s.empty() && !s.checkStopped }

// empty says that the step changes nothing by itself.
func (s *step) empty() bool { return len(s.results)+len(s.claim)+len(s.retry) == 0 && !s.last }

// queued are the messages among the results that wait to be offered again.
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

// guardedByRows says that the step is all that is written of a small campaign after its mark: a row for each
// recipient. Their keys are its guard, since whoever takes the campaign over gives each a row, and the
// campaign's own row need not change.
func (s *step) guardedByRows() bool {
	if s.row().goes() || !s.last || len(s.results) != len(s.work.chunk.Recipients) {
		return false
	}
	return !slices.ContainsFunc(s.results, func(r result) bool { return r.message.stored || r.message.unaccepted() })
}

// marksAll says that the step marks all of a chunk whose campaign was accepted so lately that nobody asks whether
// it was stopped meanwhile.
func (s *step) marksAll(now time.Time) bool {
	age := now.Sub(s.work.campaign.CreatedAt) // below 0 where the clock was set back: nobody knows
	return s.turn == 0 && len(s.claim)+len(s.retry) == len(s.work.chunk.Recipients) && age >= 0 && age < freshness
}

func (s *step) key() chunkKey { return s.work.chunk.key() }

func (s *step) row() *turnRow { return s.work.chunk.row() }

// errTakenOver says that another owner delivers the chunk now, or has.
var errTakenOver = errors.New("messaging: another owner has the chunk")

// stepped is the verdict; stopped says that an operator stopped the campaign and the chunk is over.
type stepped struct{ stopped bool }

// rest is the job that goes on with a campaign of a volley after a step that was not its last.
func (s *step) rest() (jobs.Job, error) {
	w := *s.work
	w.turn, w.retry = s.next, append(w.retry, s.queued()...)
	job, err := w.chunk.payload().job(smallKind(w.campaign.Mode))
	job.Memo = &w
	return job, err
}
