package messaging

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/label"
	"github.com/makola/makola/internal/provider"
)

const (
	// resubmitFor is how long a message that no operator took is offered again, from its first time.
	resubmitFor = 30 * time.Minute
	leastRetry  = 100 * time.Millisecond
	mostRetry   = 10 * time.Second
)

// messageError is how many characters are kept of an operator's word.
const messageError = 120

// submission is a message on its way to the operator: one outcome a segment.
type submission struct {
	message     message
	group       uint16
	begun       time.Time     // when it was offered first
	begunPassed time.Duration // the same, by what has passed
	outcomes    []provider.Outcome
	answered    time.Time     // the last of them
	pause       time.Duration // before the next offer of what was not sent
}

// partlyWritten says that some segments were written and others not: the message cannot be queued as a whole.
func (s *submission) partlyWritten() bool {
	waiting, gone := false, false
	for _, o := range s.outcomes {
		switch o.Class {
		case provider.NotSent:
			waiting = true
		case provider.Rejected:
			return false // refused: the rest is of no use
		default:
			gone = true
		}
	}
	return waiting && gone
}

// passed is how much time has, whatever the machine's clock is set to.
func passed(c *clock.Clock) time.Duration {
	_, passed := c.Reading()
	return passed
}

func failed(msg message, why string) result {
	msg.Status, msg.Error = StatusFailed, why
	return result{message: msg}
}

// judge turns the outcomes of a message's segments into its status. One accepted segment counts as
// accepted; what was written and not answered is unknown; a definite no is one; the rest was not sent.
func judge(s *submission) result {
	r := result{message: s.message}
	r.message.Error = "" // of an offer before
	count := map[provider.Class]int{}
	for _, o := range s.outcomes {
		count[o.Class]++
		if word := strings.TrimSpace(o.Code + " " + o.Message); o.Class != provider.Accepted && r.message.Error == "" {
			r.message.Error = label.Cut(word, messageError)
		}
	}
	r.message.Accepted = int64(count[provider.Accepted])
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
		return r // it keeps the time at which it was offered first
	}
	if r.message.SubmittedAt = s.answered; r.message.Status == StatusUnknown {
		r.message.SubmittedAt = s.begun // a receipt may have come before the answer was given up
	}
	return r
}

// parts are those of a message of which an operator took at least one segment. A segment that was
// taken without an id will have no receipt and has no row.
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
