package messaging

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

const (
	// tornFor is how long the rest of a message is offered of which an operator took a part.
	tornFor      = time.Minute
	messageError = 120 // characters kept of an operator's word
)

// result is what became of one message's submit.
type result struct {
	message message
	parts   []part
}

// shot is a message on its way to the operator: one outcome a segment.
type shot struct {
	message  message
	group    uint16
	outcomes []provider.Outcome
	answered time.Time // the last of them
}

// torn says that some segments were written and others not: the message cannot be queued as a whole.
func (s *shot) torn() bool {
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

// submit hands messages to the operator and waits for every answer. Those that were not taken come back
// as queued. A message is never offered after its time: then it has failed.
func (m *Messaging) submit(ctx context.Context, sender provider.SMSSender, w *work, messages []message) []result {
	begun, from := m.clock.Reading()
	m.early.submitted(begun)
	encoded := smstext.Encode(w.text)
	shots := make([]*shot, 0, len(messages))
	results := make([]result, 0, len(messages))
	for _, msg := range messages {
		switch {
		case w.expired(begun):
			results = append(results, failed(msg, "expired before it could be sent"))
		case begun.Sub(msg.SubmittedAt) >= resubmitFor:
			results = append(results, failed(msg, "no operator took it in time"))
		default:
			s := &shot{message: msg, group: uint16(m.groups.Add(1)), outcomes: make([]provider.Outcome, len(encoded.Segments))} //nolint:gosec // comes round
			for p := range s.outcomes {
				s.outcomes[p].Class = provider.NotSent
			}
			shots = append(shots, s)
		}
	}
	pause := m.offer(ctx, sender, w, encoded, shots)
	if pause > 0 {
		w.offerAt = m.passed() + pause
	}
	for {
		torn := shots[:0:0]
		for _, s := range shots {
			if s.torn() {
				torn = append(torn, s)
			}
		}
		if len(torn) == 0 || m.passed() > from+tornFor || m.clock.Sleep(ctx, pause) != nil {
			break
		}
		pause = m.offer(ctx, sender, w, encoded, torn)
	}
	for _, s := range shots {
		results = append(results, m.judge(s, begun))
	}
	m.metrics.submitted(results, encoded.Encoding)
	return results
}

// passed is how much time has, whatever the machine's clock is set to.
func (m *Messaging) passed() time.Duration {
	_, passed := m.clock.Reading()
	return passed
}

func failed(msg message, why string) result {
	msg.Status, msg.Error = StatusFailed, why
	return result{message: msg}
}

// offer submits every segment that was not sent yet and waits for the answers. It returns the pause
// before the next offer, 0 when nothing is left.
func (m *Messaging) offer(ctx context.Context, sender provider.SMSSender, w *work, encoded smstext.Message, shots []*shot) (pause time.Duration) {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	for _, s := range shots {
		for p := range s.outcomes {
			mu.Lock()
			skip := s.outcomes[p].Class != provider.NotSent
			mu.Unlock()
			if skip {
				continue
			}
			waiting.Add(1)
			segment := provider.Segment{From: w.campaign.Sender, To: msisdn.MSISDN(s.message.Recipient), Encoding: encoded.Encoding,
				Octets: encoded.Segments[p], Part: p + 1, Parts: len(encoded.Segments), Group: s.group, WantsReceipt: true}
			sender.Submit(ctx, segment, func(o provider.Outcome) {
				mu.Lock()
				s.outcomes[p], s.answered = o, m.clock.Now()
				if o.Class == provider.NotSent {
					pause = min(max(pause, o.RetryAfter, leastRetry), mostRetry)
				}
				mu.Unlock()
				waiting.Done()
			})
		}
	}
	waiting.Wait()
	return pause
}

// judge turns the outcomes of a message's segments into its status. One accepted segment counts as
// accepted; what was written and not answered is unknown; a definite no is one; the rest was not sent.
func (m *Messaging) judge(s *shot, begun time.Time) result {
	r := result{message: s.message}
	r.message.Error = "" // of an offer before
	count := map[provider.Class]int{}
	for _, o := range s.outcomes {
		count[o.Class]++
		if word := strings.TrimSpace(o.Code + " " + o.Message); o.Class != provider.Accepted && r.message.Error == "" {
			r.message.Error = cut(word, messageError)
		}
	}
	r.message.Accepted = int64(count[provider.Accepted])
	switch {
	case r.message.Accepted > 0:
		r.message.Status = StatusSubmitted
		r.parts = m.parts(s, begun)
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
		r.message.SubmittedAt = begun // a receipt may have come before the answer was given up
	}
	return r
}

// parts are those of a message of which an operator took at least one segment. A segment that was
// taken without an id will have no receipt and has no row.
func (m *Messaging) parts(s *shot, begun time.Time) []part {
	var rows []part
	for i, o := range s.outcomes {
		row := part{UpstreamID: o.UpstreamID, Tenant: s.message.Tenant, Campaign: s.message.Campaign, Message: s.message.No, Part: int64(i + 1),
			Recipient: s.message.Recipient, State: partOpen, SubmittedAt: begun, Single: len(s.outcomes) == 1}
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

// writeList writes recipients as they are stored.
func writeList(recipients []msisdn.MSISDN) string {
	var text strings.Builder
	text.Grow(len(recipients) * 13)
	for i, n := range recipients {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(string(n))
	}
	return text.String()
}

// parseList reads what writeList wrote.
func parseList(text string) []msisdn.MSISDN {
	if text == "" {
		return nil
	}
	words := strings.Split(text, ",")
	list := make([]msisdn.MSISDN, len(words))
	for i, word := range words {
		list[i] = msisdn.MSISDN(word)
	}
	return list
}
