package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
)

// pauses are the pauses between attempts, each with a jitter of up to a fifth either way. The ten attempts take
// 75.5 hours.
var pauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// freshFor is how long an event may be sent from memory without reading its row. A newer event may have
	// superseded it.
	freshFor = 5 * time.Second
	// troubleTime is how long a delivery waits if our database is unavailable.
	troubleTime = 2 * time.Second
	// secretTime is how long a delivery waits if the secret cannot be decrypted, which only an operator can fix.
	secretTime = time.Minute
)

// deliver runs the job of one event.
func (w *Webhooks) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	if r, waits := w.waiting(job); waits {
		return w.record(ctx, r) // the event was sent, and only its record is missing
	}
	if backlogged(job) {
		return jobs.Later(jobs.Jitter(job.ID, job.Tries, backlogPause))
	}
	e, out := w.eventOf(ctx, job)
	if e == nil {
		return out
	}
	keys, err := w.keys.Get(ctx, e.tenant)
	if err != nil {
		if errors.Is(err, errSealed) || errors.Is(err, errNoMaster) {
			w.log.Error("webhook delayed: signing secret unavailable", "tenant", e.tenant, "event", e.id, "error", err)
			return jobs.Later(secretTime)
		}
		return jobs.Later(troubleTime)
	}
	a := w.client.send(ctx, e, keys, w.opts.Development, time.Now())
	if !a.ok() && ctx.Err() != nil {
		return jobs.Later(0) // our node stops: this proves nothing about the receiver
	}
	if a.err != nil {
		w.explain(e, a)
	}
	w.traffic.note(e.tenant, e.host, a.took)
	return w.record(ctx, w.judge(e, job.Tries+1, a))
}

const (
	// backlog is the number of a tenant's events in memory above which events that failed before are delayed.
	backlog = 10_000
	// backlogPause is the delay of these events.
	backlogPause = 10 * time.Minute
)

// backlogged reports whether a delivery that failed before must wait because its tenant has too many deliveries. New
// deliveries then run first.
func backlogged(job jobs.Job) bool { return job.Tries > 0 && job.Siblings > backlog }

// explain logs why there was no response. The customer does not see this detail. At level info it logs at most one
// line a minute, because some receivers are always down. One line is enough to notice that our own resolver fails.
// At level debug it logs every attempt.
func (w *Webhooks) explain(e *event, a answer) {
	level := slog.LevelDebug
	if _, ok := w.explained.May(w.clock.Now()); ok {
		level = slog.LevelInfo
	}
	w.log.Log(context.Background(), level, "webhook attempt got no response", "tenant", e.tenant, "event", e.id, "host", e.host, "error", a.err)
}

// eventOf returns the event of a job, from memory or from its row. If there is no event to send, it returns nil and
// the job's outcome.
func (w *Webhooks) eventOf(ctx context.Context, job jobs.Job) (*event, jobs.Outcome) {
	if e, ok := job.Memo.(*event); ok && job.Tries == 0 && w.clock.Elapsed()-e.queued < freshFor {
		w.mu.Lock()
		_, doubtful := w.superseded[e.tenant+"/"+e.subject]
		w.mu.Unlock()
		if !doubtful {
			return e, jobs.Outcome{}
		}
	}
	var p payload
	if err := json.Unmarshal(job.Payload, &p); err != nil {
		return nil, jobs.Dead(fmt.Errorf("webhook: parse the payload of %s: %w", job.ID, err))
	}
	e := &event{tenant: p.Tenant, subject: p.Subject, id: job.ID, host: p.Host}
	var state State
	found, err := w.db.ReadOne(ctx, sqlEvent, []any{e.tenant, e.subject, e.id}, &e.url, &e.body, &e.kind, &e.created, &e.attempts, &state, &e.trace)
	switch {
	case err != nil:
		return nil, jobs.Later(troubleTime)
	case !found || state != Pending:
		return nil, jobs.Done()
	}
	return e, jobs.Outcome{}
}

const sqlEvent = `SELECT url, body, ` + kindColumn + `, created_at, attempts, state, trace FROM webhook_events
	WHERE tenant = $1 AND subject = $2 AND id = $3`

// record is the result of an attempt, to be stored.
type record struct {
	tenant, subject, id string
	attempt             string // id of the row of a failed attempt
	number              int    // number of the attempt, from 1
	at                  time.Time
	answer              answer
	state               State // the event's state after the attempt
	next                time.Time
	doubtful            bool // the response to its COMMIT was lost, and the check for its rows failed
}

// judge decides the next step after an attempt. failures is the number of failures since the event was queued or
// replayed, including this attempt.
func (w *Webhooks) judge(e *event, failures int, a answer) record {
	r := record{
		tenant: e.tenant, subject: e.subject, id: e.id, attempt: newID(),
		number: e.attempts + 1, at: w.clock.Now(), answer: a, state: Delivered,
	}
	e.attempts++
	switch {
	case a.ok():
	case a.status == http.StatusGone || failures > len(pauses):
		r.state = Failed
	default:
		r.state = Pending
		pause := jobs.Jitter(e.id, failures, pauses[failures-1])
		if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			pause = max(pause, a.after)
		}
		r.next = r.at.Add(pause)
	}
	return r
}

// record stores the result of an attempt, together with concurrent results. While the database is unavailable the
// result stays in memory, so that our own failure does not cause a second delivery.
func (w *Webhooks) record(ctx context.Context, r record) jobs.Outcome {
	ctx = context.WithoutCancel(ctx)
	before, err := w.recorded(ctx, r)
	if err == nil && !before {
		_, err = w.records.Do(ctx, r.tenant, 2, r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		r.doubtful = r.doubtful || errors.Is(err, db.ErrAmbiguous)
		w.unrecorded[r.id] = r
		if !systemic(err) {
			w.log.Error("failed to record webhook attempt", "tenant", r.tenant, "event", r.id, "error", err)
		}
		return jobs.Later(troubleTime)
	}
	delete(w.unrecorded, r.id)
	switch {
	case r.state == Delivered:
		w.counts.Delivered++
	case r.state == Failed:
		w.counts.Failed++
		w.counts.GivenUp++
	default:
		w.counts.Failed++
		if before { // the row of the job was postponed, and the job in memory was not
			return jobs.RetryAfter(r.next.Sub(w.clock.Now()), errors.New(r.answer.text()))
		}
	}
	return jobs.Done() // the transaction has finished or postponed the job
}

// recorded reports whether a record with an ambiguous COMMIT is in the database. Writing it again would violate its
// unique key.
func (w *Webhooks) recorded(ctx context.Context, r record) (there bool, err error) {
	if !r.doubtful {
		return false, nil
	}
	return db.Get(ctx, w.db, func(tx *db.Tx) (bool, error) { return landed(tx, r) })
}

// landed reports whether the rows of a record exist.
func landed(tx *db.Tx, r record) (found bool, err error) {
	var one int64
	if r.state == Delivered {
		return tx.One(sqlIsDelivered, []any{r.tenant, r.subject, r.id, r.at}, &one)
	}
	return tx.One(sqlIsAttempt, []any{r.tenant, r.id, r.attempt}, &one)
}

// waiting returns the result of a job's last attempt if it is not stored yet. If the job was added after that result,
// it is a replay, and the result is dropped. Another node has then ended the first job, because this node's lease had
// lapsed.
func (w *Webhooks) waiting(job jobs.Job) (record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.unrecorded[job.ID]
	if ok && job.Tries == 0 && job.RunAt.After(r.at) {
		delete(w.unrecorded, job.ID)
		return record{}, false
	}
	return r, ok
}

func systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}

// recordColumns are the columns of an event that every attempt changes. deliveredColumns and failedColumns add those
// that a delivery or a failure changes.
var (
	recordColumns = []db.Column[record]{
		{Name: "tenant", Text: func(r record) string { return r.tenant }},
		{Name: "subject", Text: func(r record) string { return r.subject }},
		{Name: "event", Text: func(r record) string { return r.id }},
		{Name: "status", Int: func(r record) int64 { return int64(r.answer.status) }},
		{Name: "took", Int: func(r record) int64 { return r.answer.took.Microseconds() }},
	}

	deliveredColumns = append(slices.Clone(recordColumns),
		db.Column[record]{Name: "at", Time: func(r record) time.Time { return r.at }})

	failedColumns = append(slices.Clone(recordColumns), []db.Column[record]{
		{Name: "error", Text: func(r record) string { return r.answer.text() }},
		{Name: "state", Text: func(r record) string { return string(r.state) }},
		{Name: "ended", Int: func(r record) int64 {
			if r.state == Pending {
				return 0
			}
			return db.Micros(r.at)
		}},
		{Name: "failed", Int: func(r record) int64 {
			if r.state != Failed {
				return 0
			}
			return db.Micros(r.at)
		}},
	}...)
)

var attemptColumns = []db.Column[record]{
	{Name: "tenant", Text: func(r record) string { return r.tenant }},
	{Name: "event", Text: func(r record) string { return r.id }},
	{Name: "id", Text: func(r record) string { return r.attempt }},
	{Name: "number", Int: func(r record) int64 { return int64(r.number) }},
	{Name: "at", Time: func(r record) time.Time { return r.at }},
	{Name: "status", Int: func(r record) int64 { return int64(r.answer.status) }},
	{Name: "took", Int: func(r record) int64 { return r.answer.took.Microseconds() }},
	{Name: "error", Text: func(r record) string { return r.answer.text() }},
	{Name: "answer", Text: func(r record) string { return r.answer.body }},
}

const (
	// A delivery is stored in any state of the row. A failure is stored only while the event is pending.
	sqlDelivered = `UPDATE webhook_events SET state = 'delivered', attempts = attempts + 1, status = r.status, took = r.took,
		error = '', ended_at = r.at, failed_at = 0
		FROM rows($1) AS r
		WHERE webhook_events.tenant IN (r.tenant) AND webhook_events.subject = r.subject AND webhook_events.id = r.event`
	sqlFailed = `UPDATE webhook_events SET state = r.state, attempts = attempts + 1, status = r.status, took = r.took,
		error = r.error, ended_at = r.ended, failed_at = r.failed
		FROM rows($1) AS r
		WHERE webhook_events.tenant IN (r.tenant) AND webhook_events.subject = r.subject AND webhook_events.id = r.event
		AND webhook_events.state = 'pending'`
	sqlIsDelivered = `SELECT 1 FROM webhook_events WHERE tenant = $1 AND subject = $2 AND id = $3 AND state = 'delivered' AND ended_at = $4`
	sqlIsAttempt   = `SELECT 1 FROM webhook_attempts WHERE tenant = $1 AND event = $2 AND id = $3`
)

// writeRecords stores several attempts in one transaction: the events, the failed attempts, and the ends or new times
// of their jobs.
func (w *Webhooks) writeRecords(ctx context.Context, records []record) ([]groupcommit.Verdict[struct{}], error) {
	var delivered, failed []record
	var over []string
	var again []jobs.Postponement
	for _, r := range records {
		switch r.state {
		case Delivered:
			delivered = append(delivered, r)
			over = append(over, r.id)
		case Failed:
			failed = append(failed, r)
			over = append(over, r.id)
		default:
			failed = append(failed, r)
			again = append(again, jobs.Postponement{ID: r.id, At: r.next, Error: r.answer.text()})
		}
	}
	// A batch is stored completely or not at all, so one row proves the whole batch.
	first := func(tx *db.Tx) (bool, error) { return landed(tx, records[0]) }
	err := w.db.WriteRecognising(ctx, first, func(tx *db.Tx) error {
		if len(delivered) > 0 {
			tx.Defer(sqlDelivered, -1, db.RowsOf(deliveredColumns, delivered))
		}
		if len(failed) > 0 {
			tx.Defer(sqlFailed, -1, db.RowsOf(failedColumns, failed))
			db.Insert(tx, "webhook_attempts", attemptColumns, failed)
		}
		w.queue.Finish(tx, over...)
		w.queue.Postpone(tx, again...)
		return nil
	})
	return make([]groupcommit.Verdict[struct{}], len(records)), err
}
