package delivery

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/usertext"
)

const (
	// resubmitFor is how long a message that no operator accepted is offered again, from its first offer.
	resubmitFor = 30 * time.Minute
	leastRetry  = 100 * time.Millisecond
	mostRetry   = 10 * time.Second
)

// messageError is the most characters that are kept of an operator's error.
const messageError = 120

// whyStopped is the error of the messages that a stop kept back.
const whyStopped = "the campaign was stopped"

// submission is a message that is being submitted, with an outcome for each segment, or one for the whole message.
type submission struct {
	message     message
	group       uint16
	begun       time.Time     // time of its first offer
	begunPassed time.Duration // the same on the monotonic clock
	outcomes    []provider.Outcome
	divided     bool          // it is decided whether it goes in segments
	segments    int           // of the message
	whole       bool          // it goes as a whole, to a provider that divides it
	answered    time.Time     // time of the last outcome
	pause       time.Duration // before unsent segments are offered again
}

// partlyWritten reports whether some segments were written and others not, so that the message cannot be queued as a
// whole.
func (s *submission) partlyWritten() bool {
	waiting, gone := false, false
	for _, o := range s.outcomes {
		switch o.Class {
		case provider.NotSent:
			waiting = true
		case provider.Rejected:
			return false // a refused message is not completed
		default:
			gone = true
		}
	}
	return waiting && gone
}

// passed reads the monotonic clock, which no correction of the machine's clock changes.
func passed(c *clock.Clock) time.Duration {
	_, passed := c.Reading()
	return passed
}

func failed(msg message, why string) result {
	msg.Status, msg.Error = StatusFailed, why
	return result{message: msg}
}

// judge derives a message's status from the outcomes of its segments. One accepted segment makes it accepted.
// Otherwise an unanswered segment makes it unknown, a refused one rejected, and any other not sent.
func judge(s *submission) result {
	r := result{message: s.message}
	r.message.Error = "" // clears the error of an earlier offer
	count := map[provider.Class]int{}
	for _, o := range s.outcomes {
		count[o.Class]++
		if word := strings.TrimSpace(o.Code + " " + o.Message); o.Class != provider.Accepted && r.message.Error == "" {
			r.message.Error = usertext.Cut(word, messageError)
		}
	}
	if r.message.Accepted = int64(count[provider.Accepted]); s.whole {
		r.message.Accepted *= int64(s.segments)
	}
	switch {
	case r.message.Accepted > 0:
		r.message.Status = StatusSubmitted
		r.parts = partsOf(s)
		for _, p := range r.parts {
			if p.State == partOpen {
				r.message.Open++
			}
			if p.Single {
				r.message.UpstreamID = p.UpstreamID
			}
		}
	case count[provider.Unknown] > 0:
		r.message.Status = StatusUnknown
	case count[provider.Rejected] > 0:
		r.message.Status = StatusRejected
	default:
		r.message.Status = StatusQueued
		return r // SubmittedAt stays the time of the first offer
	}
	if r.message.SubmittedAt = s.answered; r.message.Status == StatusUnknown {
		r.message.SubmittedAt = s.begun // a receipt may have come before the answer was given up
	}
	return r
}

// partsOf gives the parts of a message of which an operator accepted a segment. A segment that was accepted without
// an id can have no receipt and gets no row.
func partsOf(s *submission) []part {
	var rows []part
	for i, o := range s.outcomes {
		row := part{UpstreamID: o.UpstreamID, Tenant: s.message.Tenant, Campaign: s.message.Campaign, Message: s.message.No, Part: int64(i + 1),
			Recipient: s.message.Recipient, State: partOpen, SubmittedAt: s.begun, Single: len(s.outcomes) == 1}
		switch o.Class {
		case provider.Accepted:
			if o.UpstreamID == "" {
				continue
			}
		case provider.Unknown:
			row.UpstreamID, row.State = "", string(StatusUnknown)
		case provider.Rejected:
			row.UpstreamID, row.State = "", string(StatusRejected)
		default:
			row.UpstreamID, row.State = "", string(StatusFailed)
		}
		rows = append(rows, row)
	}
	return rows
}
