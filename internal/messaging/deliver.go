package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

const (
	chunkKind    = "sms_chunk"
	chunkWorkers = 256
	// sliceSize is how many messages are marked and submitted between two commits: a crash leaves at
	// most so many of a chunk unknown.
	sliceSize = 100
	// noBindPause is how long a chunk waits when no operator is connected.
	noBindPause = 2 * time.Second
	// resubmitFor is how long a message that an operator was too busy to take is offered again.
	resubmitFor  = 30 * time.Minute
	leastRetry   = 100 * time.Millisecond
	messageError = 120 // characters kept of an operator's word
)

// chunkPayload is the stored payload of a chunk's job, version 1.
type chunkPayload struct {
	Version  int    `json:"v"`
	Tenant   string `json:"tenant"`
	Campaign string `json:"campaign"`
	Chunk    int64  `json:"chunk"`
}

// work is what a chunk's handler needs. Fresh jobs carry it in memory; an adopted one reads it.
type work struct {
	campaign Campaign
	chunk    chunk
	text     string // what is sent; empty for a one-time password whose text died with its node
	next     int    // place of the first recipient without a row
	again    []message
}

func (m *Messaging) chunkJob(c Campaign, k chunk, text string) jobs.Job {
	payload, err := json.Marshal(chunkPayload{1, c.Tenant, c.ID, k.No})
	if err != nil {
		panic("messaging: a payload of texts does not encode: " + err.Error())
	}
	if text == "" && c.Kind == KindCampaign {
		text = c.Message
	}
	return jobs.Job{ID: fmt.Sprintf("%s/%d", c.ID, k.No), Kind: chunkKind, Subject: c.ID, Payload: payload,
		Memo: &work{campaign: c, chunk: k, text: text}}
}

// deliver is the handler of a chunk.
func (m *Messaging) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	w, ok := job.Memo.(*work)
	if !ok {
		var err error
		if w, err = m.resume(ctx, job); err != nil {
			return jobs.Retry(err)
		}
		if w == nil {
			return jobs.Done() // its chunk was ended by the owner before
		}
	}
	sender := m.sms[w.campaign.Mode]
	if sender == nil || w.text != "" && sender.Ready("") != nil {
		return jobs.Later(noBindPause)
	}
	if err := m.run(ctx, job.ID, sender, w); err != nil {
		return jobs.Retry(err)
	}
	return jobs.Done()
}

// run takes a chunk through its slices. Each step commits the results of one slice with the marks of
// the next.
func (m *Messaging) run(ctx context.Context, jobID string, sender provider.SMSSender, w *work) error {
	results := []result(nil)
	for {
		s := step{job: jobID, campaign: w.campaign, chunk: w.chunk.No, size: len(w.chunk.Recipients), results: results}
		if ctx.Err() == nil {
			s.claim, s.again = m.slice(w)
		}
		s.last = len(s.claim) == 0 && len(s.again) == 0 && ctx.Err() == nil
		done, err := m.steps.Do(context.WithoutCancel(ctx), w.campaign.Tenant, 1+len(s.results)*2+len(s.claim), &s)
		if err != nil || s.last || done.stopped || ctx.Err() != nil {
			return firstError(err, ctx.Err(), s.last || done.stopped)
		}
		w.next += len(s.claim)
		w.again = nil
		messages := append(s.again, s.claim...)
		if w.text == "" {
			results = lostText(messages)
			continue
		}
		results = m.submit(ctx, sender, w, messages)
	}
}

// firstError says how a chunk's run ended: a stop of the node before its end is an error that leaves
// the job to the next owner.
func firstError(err, cancelled error, ended bool) error {
	if err != nil || ended {
		return err
	}
	return cancelled
}

// slice gives the messages of the next slice: first those that an earlier owner left queued.
func (m *Messaging) slice(w *work) (claim, again []message) {
	if len(w.again) > 0 {
		return nil, w.again
	}
	now := m.clock.Now()
	for place := w.next; place < len(w.chunk.Recipients) && len(claim) < sliceSize; place++ {
		claim = append(claim, message{Tenant: w.campaign.Tenant, Campaign: w.campaign.ID, No: w.chunk.No*chunkSize + int64(place),
			Recipient: string(w.chunk.Recipients[place]), Status: StatusSending, SubmittedAt: now})
	}
	return claim, nil
}

// result is what became of one message's submit.
type result struct {
	message message
	parts   []part
}

// lostText ends messages whose text died with the node that made it: a one-time password that was
// certainly not sent. Its credits go back.
func lostText(messages []message) []result {
	results := make([]result, len(messages))
	for i, msg := range messages {
		msg.Status, msg.Error = StatusFailed, "the node stopped before it was sent"
		results[i].message = msg
	}
	return results
}

// submit hands messages to the operator and waits for every answer. What the operator was too busy to
// take is offered again until resubmitFor has passed or the node stops.
func (m *Messaging) submit(ctx context.Context, sender provider.SMSSender, w *work, messages []message) []result {
	encoded := smstext.Encode(w.text)
	results := make([]result, len(messages))
	outcomes := make([][]provider.Outcome, len(messages))
	for i, msg := range messages {
		results[i].message = msg
		outcomes[i] = make([]provider.Outcome, len(encoded.Segments))
		for p := range outcomes[i] {
			outcomes[i][p] = provider.Outcome{Class: provider.NotSent}
		}
	}
	for deadline := m.clock.Now().Add(resubmitFor); ; {
		pause := m.offer(ctx, sender, w, encoded, messages, outcomes)
		if pause == 0 || ctx.Err() != nil || m.clock.Now().After(deadline) {
			break
		}
		if m.clock.Sleep(ctx, pause) != nil {
			break
		}
	}
	for i := range results {
		m.judge(&results[i], outcomes[i], ctx.Err() != nil)
	}
	return results
}

// offer submits every segment that was not sent yet and waits for the answers. It returns the pause
// before the next offer, 0 when nothing is left.
func (m *Messaging) offer(ctx context.Context, sender provider.SMSSender, w *work, encoded smstext.Message, messages []message, outcomes [][]provider.Outcome) time.Duration {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	var pause time.Duration
	for i, msg := range messages {
		for p := range outcomes[i] {
			if outcomes[i][p].Class != provider.NotSent {
				continue
			}
			waiting.Add(1)
			segment := provider.Segment{From: w.campaign.Sender, To: msisdn.MSISDN(msg.Recipient), Encoding: encoded.Encoding,
				Octets: encoded.Segments[p], Part: p + 1, Parts: len(encoded.Segments), Group: uint16(msg.No), WantsReceipt: true}
			sender.Submit(ctx, segment, func(o provider.Outcome) {
				mu.Lock()
				outcomes[i][p] = o
				if o.Class == provider.NotSent {
					pause = max(pause, o.RetryAfter, leastRetry)
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
// accepted; what was written and not answered is unknown; the rest was not sent.
func (m *Messaging) judge(r *result, outcomes []provider.Outcome, stopping bool) {
	count := map[provider.Class]int{}
	for p, o := range outcomes {
		count[o.Class]++
		if o.Class == provider.Accepted && o.UpstreamID != "" {
			r.parts = append(r.parts, part{UpstreamID: o.UpstreamID, Tenant: r.message.Tenant, Campaign: r.message.Campaign, Message: r.message.No,
				Part: int64(p + 1), Recipient: r.message.Recipient, State: partOpen, SubmittedAt: m.clock.Now()})
		}
		if o.Class != provider.Accepted && r.message.Error == "" {
			r.message.Error = cut(o.Code+" "+o.Message, messageError)
		}
	}
	r.message.SubmittedAt = m.clock.Now()
	r.message.Accepted, r.message.Open = int64(count[provider.Accepted]), int64(len(r.parts))
	switch {
	case count[provider.Accepted] > 0:
		r.message.Status = StatusSubmitted
	case count[provider.Unknown] > 0:
		r.message.Status = StatusUnknown
	case count[provider.Rejected] > 0:
		r.message.Status = StatusRejected
	case stopping:
		r.message.Status = StatusQueued // by the next owner
	default:
		r.message.Status = StatusFailed
	}
}

const (
	selectCampaign = `SELECT ` + campaignFields + ` FROM campaigns WHERE tenant = $1 AND id = $2`
	selectChunk    = `SELECT state, recipients, created_at FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`
	lastOfChunk    = `SELECT max(no) FROM messages WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4`
	leftBehind     = `SELECT no, recipient FROM messages WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4 AND status = $5 ORDER BY no`
	giveUpSending  = `UPDATE messages SET status = $5, error = 'the node stopped while it was sent'
		WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4 AND status = 'sending'`
)

// resume reads where an earlier owner left a chunk. What it was sending is unknown from here on, or
// queued again where the installation resends campaigns; nil means that the chunk is over.
func (m *Messaging) resume(ctx context.Context, job jobs.Job) (*work, error) {
	var payload chunkPayload
	if err := json.Unmarshal(job.Payload, &payload); err != nil {
		return nil, fmt.Errorf("the payload of a chunk: %w", err)
	}
	var w *work
	err := m.db.Write(ctx, func(tx *db.Tx) error {
		w = &work{}
		if err := tx.Query(selectCampaign, []any{payload.Tenant, payload.Campaign}, w.campaign.scan); err != nil {
			return err
		}
		var list string
		w.chunk = chunk{Tenant: payload.Tenant, Campaign: payload.Campaign, No: payload.Chunk}
		found, err := tx.One(selectChunk+tx.ForUpdate(), []any{payload.Tenant, payload.Campaign, payload.Chunk}, &w.chunk.State, &list, &w.chunk.CreatedAt)
		if err != nil {
			return err
		}
		if !found || w.chunk.State != chunkReady {
			w = nil
			return nil
		}
		w.chunk.Recipients = parseList(list)
		if w.campaign.Kind == KindCampaign {
			w.text = w.campaign.Message
		}
		return m.leftOver(tx, w)
	})
	return w, err
}

func (m *Messaging) leftOver(tx *db.Tx, w *work) error {
	from := w.chunk.No * chunkSize
	span := []any{w.chunk.Tenant, w.chunk.Campaign, from, from + chunkSize}
	to := StatusUnknown
	if m.resend && w.campaign.Kind == KindCampaign {
		to = StatusQueued
	}
	if _, err := tx.Exec(giveUpSending, append(span, string(to))...); err != nil {
		return err
	}
	var last *int64
	if _, err := tx.One(lastOfChunk, span, &last); err != nil {
		return err
	}
	if last != nil {
		w.next = int(*last-from) + 1
	}
	return tx.Query(leftBehind, append(span, string(StatusQueued)), func(r *db.Row) error {
		msg := message{Tenant: w.chunk.Tenant, Campaign: w.chunk.Campaign, Status: StatusSending}
		err := r.Scan(&msg.No, &msg.Recipient)
		w.again = append(w.again, msg)
		return err
	})
}

func parseList(text string) []msisdn.MSISDN {
	var list []msisdn.MSISDN
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && text[end] != ',' {
			end++
		}
		list = append(list, msisdn.MSISDN(text[start:end]))
		start = end + 1
	}
	return list
}
