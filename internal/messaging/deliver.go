package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

const (
	// sliceSize is how many messages of a chunk are marked and not recorded at once, at most: a crash leaves no more of
	// them unknown.
	sliceSize = 100
	// bulkWorkers and smallWorkers are the chunks of one mode that are worked on at once. Single
	// messages have workers of their own, so that a one-time password does not wait for a campaign.
	bulkWorkers  = 16
	smallWorkers = 256
	// noBindPause is how long a chunk waits when no operator is connected.
	noBindPause = 2 * time.Second
	// resubmitFor is how long a message that no operator took is offered again, from its first time.
	resubmitFor = 30 * time.Minute
	leastRetry  = 100 * time.Millisecond
	mostRetry   = 10 * time.Second
	// stepTries is how often a step is committed again whose error is not the database's absence.
	stepTries = 5
)

// The kinds of a chunk's job, permanent names. Modes are apart, because the connections of a mode are on
// one node.
func bulkKind(mode tenant.Mode) string  { return "sms_bulk_" + string(mode) }
func smallKind(mode tenant.Mode) string { return "sms_small_" + string(mode) }

// chunkPayload is the stored payload of a chunk's job, version 1.
type chunkPayload struct {
	Version  int    `json:"v"`
	Tenant   string `json:"tenant"`
	Campaign string `json:"campaign"`
	Chunk    int64  `json:"chunk"`
	Alone    bool   `json:"alone,omitempty"`
}

// work is what a chunk's handler needs. Fresh jobs of small campaigns carry it in memory; any other is
// read.
type work struct {
	campaign Campaign
	chunk    chunk
	text     string        // what is sent
	until    time.Time     // it is not sent later than this; zero: no end
	turn     int64         // of the last step
	next     int           // place of the first recipient that is not marked
	markedAt time.Time     // when those before it were marked that have no row
	again    []message     // have a row, were not sent, and are offered again
	offerAt  time.Duration // when, by what has passed: the clock may be set
	stale    bool          // a step failed: the rows are the truth
}

// register says who works on chunks.
func (m *Messaging) register() {
	for _, mode := range []tenant.Mode{tenant.Test, tenant.Live} {
		sender := m.sms[mode]
		if sender == nil {
			continue
		}
		takes := func() bool { return !errors.Is(sender.Ready(""), provider.ErrElsewhere) }
		m.jobs.Register(jobs.Handler{Kind: bulkKind(mode), Workers: bulkWorkers, Key: chunkTenant, Run: m.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: smallKind(mode), Workers: smallWorkers, Key: chunkTenant, Run: m.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: volleyKind(mode), Workers: smallWorkers, Run: m.fire, Takes: takes})
	}
}

// chunkTenant puts the chunks of each tenant in a line of its own; the lines take turns.
func chunkTenant(j jobs.Job) string {
	if w, ok := j.Memo.(*work); ok {
		return w.campaign.Tenant
	}
	var payload chunkPayload
	if json.Unmarshal(j.Payload, &payload) != nil {
		return ""
	}
	return payload.Tenant
}

// payload says in a job which chunk is meant.
func (k chunk) payload() chunkPayload { return chunkPayload{1, k.Tenant, k.Campaign, k.No, k.Small} }

// job is a job of the chunk.
func (p chunkPayload) job(kind string) (jobs.Job, error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return jobs.Job{}, fmt.Errorf("the payload of a chunk: %w", err)
	}
	return jobs.Job{ID: fmt.Sprintf("%s/%d", p.Campaign, p.Chunk), Kind: kind, Subject: p.Campaign, Payload: payload}, nil
}

// chunkJob is the job of a chunk that is not marked yet.
func (m *Messaging) chunkJob(a *admission, k chunk) (jobs.Job, error) {
	kind := bulkKind(a.campaign.Mode)
	if len(k.Recipients) <= smallChunk {
		kind = smallKind(a.campaign.Mode)
	}
	job, err := k.payload().job(kind)
	if !a.staged { // the recipients of large campaigns do not wait in memory
		job.Memo = m.fresh(a, k)
	}
	return job, err
}

// fresh is what is to be done about a chunk that was just accepted.
func (m *Messaging) fresh(a *admission, k chunk) *work {
	w := &work{campaign: a.campaign, chunk: k, turn: a.campaign.turn}
	m.render(w, a.otp)
	return w
}

// render makes the text that is sent.
func (m *Messaging) render(w *work, otp *otpRow) {
	w.text = w.campaign.Message
	if otp != nil {
		w.text, w.until = m.otpText(w.campaign, otp.length), otp.expires
	}
}

// deliver is the handler of a chunk.
func (m *Messaging) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	w, ok := job.Memo.(*work)
	if !ok || w.stale {
		var err error
		if w, err = m.resume(ctx, job); err != nil {
			return jobs.Retry(err)
		}
		if w == nil {
			return jobs.Done() // its chunk was ended before
		}
	}
	if held, err := m.held(ctx, w.campaign.Tenant); w.until.IsZero() && (err != nil || held) {
		return jobs.Later(recoveryPause)
	}
	w.stale = true // what a panic leaves is in the rows
	wait, err := m.run(ctx, job.ID, w)
	w.stale = err != nil
	switch {
	case errors.Is(err, provider.ErrElsewhere):
		return jobs.Pass()
	case errors.Is(err, errTakenOver), errors.Is(err, lane.ErrClosed):
		return jobs.Later(noBindPause)
	case err != nil:
		return jobs.Retry(err)
	case wait > 0:
		return jobs.Later(wait)
	}
	return jobs.Done()
}

// run takes a chunk through its steps until it is over, or says how long to wait. Each step commits the results that
// have come with the marks of what is sent next; what has no answer yet stays in flight, and the chunk does not end before
// it has one.
func (m *Messaging) run(ctx context.Context, jobID string, w *work) (wait time.Duration, err error) {
	f := m.newFlight(ctx, m.sms[w.campaign.Mode], w)
	defer f.end()
	var results []result
	job := &chunkJob{id: jobID, left: 1}
	for {
		s := &step{job: job, work: w, turn: w.turn, next: newTurn(), results: results, markedAt: f.markedAt(), inFlight: f.size()}
		wait, blocked := m.plan(ctx, f.sender, w, s)
		if !s.idle() {
			done, err := m.commit(ctx, s)
			if err != nil || s.last || done.stopped {
				return 0, err
			}
			if !s.still() {
				w.turn = s.next
			}
			w.next += len(s.claim)
			w.again = append(w.again[len(s.again):], s.queued()...)
		}
		switch sent := len(s.claim) + len(s.again); {
		case sent > 0:
			f.launch(append(append([]message(nil), s.again...), s.claim...))
			wait = 0
		case s.inFlight == 0: // where nothing blocks it the node stops: the next owner goes on
			return max(wait, leastRetry), blocked
		}
		if results, err = f.collect(wait); err != nil {
			return 0, err
		}
	}
}

// plan fills a step with what is to be sent next: recipients without a row first, then what was not
// taken before, when its time has come. Otherwise it says why not, or how long to wait; with messages in flight 0 is
// until one of them has an answer.
func (m *Messaging) plan(ctx context.Context, sender provider.SMSSender, w *work, s *step) (wait time.Duration, blocked error) {
	room := sliceSize - s.inFlight
	if ctx.Err() != nil || room <= 0 {
		return 0, nil
	}
	fresh := w.next < len(w.chunk.Recipients)
	if !fresh && len(w.again)+len(s.queued()) == 0 {
		s.last = s.inFlight == 0
		return 0, nil
	}
	if s.inFlight > 0 && m.halted(ctx, w) {
		return 0, nil // the step after the last answer ends the chunk
	}
	now, passed := m.clock.Reading()
	expired := w.expired(now)
	if err := sender.Ready(""); err != nil && !expired {
		s.look = s.inFlight == 0 && m.halted(ctx, w)
		if errors.Is(err, provider.ErrElsewhere) {
			blocked = err
		}
		return noBindPause, blocked
	}
	switch {
	case fresh:
		s.claim = w.claim(now, room)
		if s.markedAt.IsZero() || now.Before(s.markedAt) {
			s.markedAt = now
		}
	case len(w.again) > 0 && (expired || w.offerAt <= passed):
		s.again = w.again[:min(len(w.again), room)]
		for i := range s.again {
			if s.again[i].SubmittedAt.IsZero() {
				s.again[i].SubmittedAt = now
			}
		}
	default:
		s.look = s.inFlight == 0 && m.halted(ctx, w)
		return max(w.offerAt-passed, leastRetry), nil
	}
	return 0, nil
}

// expired says that the text must not be sent any more: a one-time password that is over.
func (w *work) expired(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// claim are the next messages that are marked, at most so many.
func (w *work) claim(now time.Time, most int) []message {
	var slice []message
	for place := w.next; place < len(w.chunk.Recipients) && len(slice) < most; place++ {
		slice = append(slice, w.message(place, StatusSending, now))
	}
	return slice
}

// message is one to a recipient who has no row yet.
func (w *work) message(place int, status Status, now time.Time) message {
	return message{Tenant: w.campaign.Tenant, Campaign: w.campaign.ID, No: w.chunk.No*chunkSize + int64(place),
		Recipient: string(w.chunk.Recipients[place]), Status: status, SubmittedAt: now}
}

// commit runs a step until the database has it: what an operator answered is lost otherwise.
func (m *Messaging) commit(ctx context.Context, s *step) (stepped, error) {
	rows := 2 + 3*len(s.results) + len(s.claim) + len(s.again)
	for try := 0; ; try++ {
		done, err := m.steps.Do(context.WithoutCancel(ctx), s.work.campaign.Tenant, rows, s)
		away := errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
		if err == nil || errors.Is(err, errTakenOver) || errors.Is(err, lane.ErrClosed) || !away && try >= stepTries {
			return done, err
		}
		if try == 0 {
			if missed, ok := m.uncommitted.May(m.clock.Now()); ok {
				m.log.WarnContext(ctx, "a step of a chunk was not committed and is tried again", "campaign", s.work.campaign.ID, "error", err, "others", missed)
			}
		}
		if m.clock.Sleep(ctx, min(leastRetry<<min(try, 8), mostRetry)) != nil {
			return done, err
		}
	}
}

const (
	selectCampaign = `SELECT ` + campaignFields + ` FROM campaigns c WHERE c.tenant = $1 AND c.id = $2`
	rowsOfChunk    = `SELECT no, recipient, status, submitted_at FROM messages WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4 ORDER BY no`
)

// resume reads a chunk. One that an earlier owner had begun is taken from it: what it was sending is
// unknown from here on, or queued again where the installation resends campaigns. nil means that the
// chunk is over.
func (m *Messaging) resume(ctx context.Context, job jobs.Job) (*work, error) {
	var payload chunkPayload
	if err := json.Unmarshal(job.Payload, &payload); err != nil {
		return nil, fmt.Errorf("the payload of a chunk: %w", err)
	}
	var w *work
	err := m.db.Read(ctx, func(tx *db.Tx) (err error) {
		w, err = m.readWork(tx, payload, "")
		return err
	})
	if err != nil || w == nil || w.turn == 0 {
		return w, err
	}
	err = m.db.Write(ctx, func(tx *db.Tx) (err error) {
		if w, err = m.readWork(tx, payload, tx.ForUpdate()); err != nil || w == nil {
			return err
		}
		return m.takeOver(tx, w)
	})
	return w, err
}

// readWork reads a chunk; lock is empty or locks its row.
func (m *Messaging) readWork(tx *db.Tx, payload chunkPayload, lock string) (*work, error) {
	w := &work{chunk: chunk{Tenant: payload.Tenant, Campaign: payload.Campaign, No: payload.Chunk, State: chunkReady, Small: payload.Alone}}
	var otp *otpRow
	found := false
	campaign := []any{payload.Tenant, payload.Campaign}
	err := tx.Gather(
		db.Query{SQL: selectOTP, Args: campaign, Each: func(r *db.Row) error {
			otp = &otpRow{}
			return r.Scan(&otp.length, &otp.expires)
		}},
		db.Query{SQL: selectCampaign, Args: campaign, Each: w.campaign.scan},
		db.Query{SQL: w.chunk.row().read + lock, Args: []any{payload.Tenant, payload.Campaign, payload.Chunk}, Each: func(r *db.Row) error {
			var list string
			found = true
			err := r.Scan(&w.turn, &w.next, &w.markedAt, &list, &w.chunk.CreatedAt)
			w.chunk.Recipients = parseList(list)
			return err
		}})
	if err != nil || !found {
		return nil, err
	}
	if w.campaign.ID == "" {
		return nil, fmt.Errorf("chunk %d has no campaign %s", payload.Chunk, payload.Campaign)
	}
	if w.campaign.Kind == KindOTP && otp == nil {
		otp = &otpRow{length: OTPLeastLength, expires: w.campaign.CreatedAt} // swept: it is long over
	}
	m.render(w, otp)
	return w, nil
}

// takeOver ends what an earlier owner may still believe: what was marked and is not known of was being sent.
func (m *Messaging) takeOver(tx *db.Tx, w *work) error {
	w.turn = newTurn()
	tx.Defer(w.chunk.row().take, 1, w.chunk.Tenant, w.chunk.Campaign, w.chunk.No, w.turn)
	known := map[int64]message{}
	from := w.chunk.No * chunkSize
	if err := tx.Query(rowsOfChunk, []any{w.chunk.Tenant, w.chunk.Campaign, from, from + chunkSize}, func(r *db.Row) error {
		msg := message{Tenant: w.chunk.Tenant, Campaign: w.chunk.Campaign, stored: true}
		err := r.Scan(&msg.No, &msg.Recipient, &msg.Status, &msg.SubmittedAt)
		known[msg.No] = msg
		return err
	}); err != nil {
		return err
	}
	to, why := StatusUnknown, "the node stopped while it was sent"
	if m.resend && w.campaign.Kind == KindCampaign {
		to, why = StatusQueued, ""
	}
	writes := newStepWrites()
	for place := range w.next {
		msg, found := known[from+int64(place)]
		if !found {
			msg = w.message(place, StatusSending, w.markedAt)
		}
		if msg.Status == StatusSending {
			m.early.submitted(msg.SubmittedAt)
			msg.Status, msg.Error = to, why
			writes.result(result{message: msg})
		}
		if msg.stored = true; msg.Status == StatusQueued {
			w.again = append(w.again, msg)
		}
	}
	writes.post(tx)
	return nil
}
