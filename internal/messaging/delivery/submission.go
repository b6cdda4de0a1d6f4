package delivery

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/usertext"
)

const (
	// resubmitFor is how long after its first submission a message that no mobile operator accepted is submitted
	// again.
	resubmitFor = 30 * time.Minute
	leastRetry  = 100 * time.Millisecond
	mostRetry   = 10 * time.Second
)

// messageError is the maximum length of a stored error in characters.
const messageError = 120

// whyStopped is the error of messages that were not sent because the campaign was stopped.
const whyStopped = "the campaign was stopped"

// whyOptedOut is the error of the messages to numbers that opted out after the campaign was accepted.
const whyOptedOut = "the recipient opted out"

// submission is a message that is being submitted, with an outcome for each segment, or one for the whole message.
type submission struct {
	message     message
	group       uint16
	begun       time.Time     // time of its first submission
	begunPassed time.Duration // the same on the monotonic clock
	outcomes    []provider.Outcome
	divided     bool // whether the message is sent in segments is decided
	segments    int  // number of segments of the message
	encoded     smstext.Message
	whole       bool          // submitted as a whole, to a provider that splits it
	answered    time.Time     // time of the last outcome
	pause       time.Duration // pause before unsent segments are submitted again
}

// partlyWritten reports whether some segments were written and others not. Such a message cannot be queued as a
// whole.
func (s *submission) partlyWritten() bool {
	waiting, gone := false, false
	for _, o := range s.outcomes {
		switch o.Class {
		case provider.NotSent:
			waiting = true
		case provider.Rejected:
			return false // the rest of a refused message is not sent
		default:
			gone = true
		}
	}
	return waiting && gone
}

// passed reads the monotonic clock, which does not change when the machine's clock is corrected.
func passed(c *clock.Clock) time.Duration {
	_, passed := c.Reading()
	return passed
}

func failed(msg message, why string) result {
	msg.Status, msg.Error = StatusFailed, why
	return result{message: msg}
}

// judge computes a message's status from the outcomes of its segments. If one segment was accepted, the message is
// accepted. Otherwise an unanswered segment makes the message unknown, a refused one makes it rejected, and else it
// was not sent.
func judge(s *submission) result {
	r := result{message: s.message}
	r.message.Error = "" // clears the error of an earlier submission
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
		return r // SubmittedAt stays the time of the first submission
	}
	if r.message.SubmittedAt = s.answered; r.message.Status == StatusUnknown {
		r.message.SubmittedAt = s.begun // a receipt may have arrived before the response was given up
	}
	return r
}

// partsOf returns the parts of a message that an operator accepted. A segment that was accepted without an id has no
// row, because no receipt can match it.
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
