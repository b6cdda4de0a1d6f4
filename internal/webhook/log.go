package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// State is the state of an event.
type State string

// The states.
const (
	Pending    State = "pending"    // has attempts left
	Delivered  State = "delivered"  // a response had status 2xx
	Failed     State = "failed"     // all attempts failed
	Superseded State = "superseded" // a newer event of its subject replaced it
)

// Delivery is an event with the state of its delivery, for people.
type Delivery struct {
	Tenant, Subject, ID string
	Mode                string
	Kind                Kind
	URL, Body           string
	State               State
	Attempts            int
	Status              int           // HTTP status of the last attempt; 0: no response
	Took                time.Duration // duration of the last attempt
	Error               string        // of the last attempt
	CreatedAt           time.Time
	EndedAt             time.Time // zero while it is pending
	Erased              bool      // a person was erased from the event, so it is not sent again
}

// Filter selects deliveries for List. Empty fields match everything. Without a tenant, List returns only failed
// deliveries.
type Filter struct {
	Tenant  string
	Subject string
	State   State
	Before  *Delivery // last delivery of the previous page; not used with Subject
	Limit   int       // default 100, at most 1,000
}

const (
	deliveryColumns = `tenant, subject, id, mode, ` + kindColumn + `, url, body, state, attempts, status, took, error, created_at, ended_at, erased`

	sqlList = `SELECT ` + deliveryColumns + ` FROM webhook_events
		WHERE tenant = $1 AND ($2 = '' OR state = $2) AND (subject, id) < ($3, $4)
		ORDER BY subject DESC, id DESC LIMIT $5`
	sqlListOf = `SELECT ` + deliveryColumns + ` FROM webhook_events
		WHERE tenant = $1 AND subject = $2 AND ($3 = '' OR state = $3) ORDER BY id DESC LIMIT $4`
	sqlListFailedOf = `SELECT ` + deliveryColumns + ` FROM webhook_events
		WHERE tenant = $1 AND failed_at > 0 AND (failed_at, id) < ($2, $3) ORDER BY failed_at DESC, id DESC LIMIT $4`
	sqlListFailed = `SELECT ` + deliveryColumns + ` FROM webhook_events
		WHERE failed_at > 0 AND failed_at < $1 ORDER BY failed_at DESC LIMIT $2`
)

// afterAll sorts after every id.
const afterAll = "~"

// List returns events, newest subjects first. Each subject has few events. Failed events are ordered by the time
// at which they were given up, newest first.
func (w *Webhooks) List(ctx context.Context, f Filter) ([]Delivery, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, 1000)
	before := Delivery{Subject: afterAll, EndedAt: w.clock.Now().Add(time.Hour)}
	if f.Before != nil {
		before = *f.Before
	}
	var sql string
	var args []any
	switch {
	case f.Tenant != "" && f.Subject != "":
		sql, args = sqlListOf, []any{f.Tenant, f.Subject, string(f.State), f.Limit}
	case f.Tenant != "" && f.State == Failed:
		sql, args = sqlListFailedOf, []any{f.Tenant, before.EndedAt, before.ID, f.Limit}
	case f.Tenant != "":
		sql, args = sqlList, []any{f.Tenant, string(f.State), before.Subject, before.ID, f.Limit}
	case f.State == Failed:
		sql, args = sqlListFailed, []any{before.EndedAt, f.Limit}
	default:
		return nil, problem.Field("tenant", "is required, except in a list of failed webhooks")
	}
	return db.ReadAll(db.Bulk(ctx, f.Tenant), w.db, sql, args, func(d *Delivery, r *db.Row) error {
		var took, erased int64
		err := r.Scan(&d.Tenant, &d.Subject, &d.ID, &d.Mode, &d.Kind, &d.URL, &d.Body, &d.State,
			&d.Attempts, &d.Status, &took, &d.Error, &d.CreatedAt, &d.EndedAt, &erased)
		d.Erased = erased != 0
		d.Took, d.Error = time.Duration(took)*time.Microsecond, plainly(d.Status, d.Error)
		return err
	})
}

// Attempt is a failed attempt at a delivery.
type Attempt struct {
	Number int // from 1, over all replays
	At     time.Time
	Status int // 0: no response
	Took   time.Duration
	Error  string
	Answer string // the first 4 KB of the response
}

const sqlAttempts = `SELECT number, at, status, took, error, answer FROM webhook_attempts
	WHERE tenant = $1 AND event = $2 ORDER BY id`

// Attempts returns the failed attempts of an event, oldest first.
func (w *Webhooks) Attempts(ctx context.Context, tenant, event string) ([]Attempt, error) {
	return db.ReadAll(db.Bulk(ctx, tenant), w.db, sqlAttempts, []any{tenant, event}, func(a *Attempt, r *db.Row) error {
		var took int64
		err := r.Scan(&a.Number, &a.At, &a.Status, &took, &a.Error, &a.Answer)
		a.Took, a.Error = time.Duration(took)*time.Microsecond, plainly(a.Status, a.Error)
		return err
	})
}

const (
	sqlReplay = `UPDATE webhook_events SET state = 'pending', ended_at = 0, failed_at = 0
		WHERE tenant = $1 AND subject IN (SELECT value FROM texts($2)) AND id IN (SELECT value FROM texts($3)) AND state <> 'pending' AND erased = 0
		RETURNING subject, id, url`
	sqlReplayOne = `SELECT subject, id, state, erased FROM webhook_events WHERE tenant = $1 AND subject = $2 AND ($3 = '' OR id = $3) ORDER BY id DESC LIMIT 1`
	// No index covers ids without their subjects. So this statement reads the tenant's whole history, and only
	// commands use it.
	sqlReplayable  = `SELECT subject, id, state, erased FROM webhook_events WHERE tenant = $1 AND id IN (SELECT value FROM texts($2))`
	sqlFailedSince = `SELECT subject, id, state, erased FROM webhook_events
		WHERE tenant = $1 AND failed_at >= $2 AND failed_at > 0 AND erased = 0 ORDER BY failed_at LIMIT $3`
	sqlErasedSince = `SELECT count(*) FROM webhook_events WHERE tenant = $1 AND failed_at >= $2 AND failed_at > 0 AND erased = 1`
)

// A replayable is an event that may be sent again.
type replayable struct {
	subject, id string
	state       State
	erased      bool
}

// refusal returns the reason why an event cannot be sent again, or nil.
func (e replayable) refusal() error {
	if !e.erased {
		return nil
	}
	return problem.New(problem.Gone, "webhook_erased", "The webhook "+e.id+" cannot be sent again: a person's data was erased from it, so its content changed")
}

func readReplayable(tx *db.Tx, sql string, args ...any) ([]replayable, error) {
	return db.All(tx, sql, args, func(e *replayable, r *db.Row) error {
		var erased int64
		err := r.Scan(&e.subject, &e.id, &e.state, &erased)
		e.erased = erased != 0
		return err
	})
}

// Replay sends an event of a subject again, even a delivered one. The bytes and the webhook-id are the same, and the
// attempts start again from the first. An event that waits for its next attempt is sent now. An empty id selects the
// subject's newest event. Replay returns the id. It refuses an event from which a person was erased, because the
// bytes have changed.
func (w *Webhooks) Replay(ctx context.Context, tenant, subject, id string) (replayed string, err error) {
	err = w.db.Write(ctx, func(tx *db.Tx) error {
		list, err := readReplayable(tx, sqlReplayOne, tenant, subject, id)
		if err == nil && len(list) == 0 {
			err = problem.New(problem.NotFound, "webhook_not_found", "The account has no such webhook")
		}
		if err == nil {
			err = list[0].refusal()
		}
		if err != nil {
			return err
		}
		replayed = list[0].id
		_, err = w.replay(tx, tenant, list)
		return err
	})
	return replayed, err
}

// ReplayIn sends events again as Replay does, in the caller's transaction, and returns their number. If one id does
// not exist, or a person was erased from its event, nothing is sent.
func (w *Webhooks) ReplayIn(tx *db.Tx, tenant string, ids ...string) (int, error) {
	list, err := readReplayable(tx, sqlReplayable, tenant, ids)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(e replayable) bool { return e.id == id }) {
			return 0, problem.New(problem.NotFound, "webhook_not_found", "There is no webhook "+id+" of this tenant")
		}
	}
	for _, e := range list {
		if err := e.refusal(); err != nil {
			return 0, err
		}
	}
	return w.replay(tx, tenant, list)
}

// Replayed is the result of a replay of many events.
type Replayed struct {
	Events int // number of events that are sent again
	Erased int // number of events that are not, because a person was erased from them
}

// ReplayFailed sends events again that were given up since a time. It starts with the oldest and sends at most limit.
func (w *Webhooks) ReplayFailed(ctx context.Context, tenant string, since time.Time, limit int) (done Replayed, err error) {
	err = w.db.Write(ctx, func(tx *db.Tx) (err error) {
		done, err = w.ReplayFailedIn(tx, tenant, since, limit)
		return err
	})
	return done, err
}

// ReplayFailedIn is ReplayFailed in a transaction of the caller.
func (w *Webhooks) ReplayFailedIn(tx *db.Tx, tenant string, since time.Time, limit int) (done Replayed, err error) {
	from := max(1, db.Micros(since))
	list, err := readReplayable(tx, sqlFailedSince, tenant, from, limit)
	if err == nil {
		_, err = tx.One(sqlErasedSince, []any{tenant, from}, &done.Erased)
	}
	if err != nil {
		return done, err
	}
	done.Events, err = w.replay(tx, tenant, list)
	return done, err
}

// replay makes ended events pending again, each with a new job. Pending events are tried now.
func (w *Webhooks) replay(tx *db.Tx, tenant string, list []replayable) (int, error) {
	var waiting, subjects, ids []string
	for _, e := range list {
		if e.state == Pending {
			waiting = append(waiting, e.id)
			continue
		}
		subjects, ids = append(subjects, e.subject), append(ids, e.id)
	}
	w.queue.WakeIn(tx, waiting...)
	if len(ids) == 0 {
		return len(waiting), nil
	}
	work, err := db.All(tx, sqlReplay, []any{tenant, subjects, ids}, func(p *jobPlan, r *db.Row) error { return r.Scan(&p.subject, &p.id, &p.url) })
	if err != nil {
		return 0, err
	}
	var stale []string
	for _, p := range work {
		stale = append(stale, p.id)
	}
	w.queue.Finish(tx, stale...) // a superseded event may still have a job
	for _, p := range work {
		job := jobOf(&event{tenant: tenant, subject: p.subject, id: p.id, host: hostPart(p.url)})
		job.Memo = nil // the handler reads the row
		w.queue.Add(tx, job)
	}
	return len(work) + len(waiting), nil
}

type jobPlan struct{ subject, id, url string }

const (
	// Kept is how long an event is kept after its end.
	Kept       = 30 * 24 * time.Hour
	pruneEvery = time.Hour
	pruneSet   = 500
)

const (
	sqlNextTenant = `SELECT coalesce(min(tenant), '') FROM webhook_events WHERE tenant > $1`
	sqlPrunePage  = `SELECT subject, id, created_at, ended_at FROM webhook_events
		WHERE tenant = $1 AND (subject, id) > ($2, $3) ORDER BY subject, id LIMIT $4`
	// With the ranges every plan uses an index. The ranges contain the events of one page and few other rows, because
	// ids grow with time.
	sqlPrune = `DELETE FROM webhook_events WHERE tenant = $1 AND subject BETWEEN $3 AND $4
		AND unindexed(id) IN (SELECT value FROM texts($2)) AND state <> 'pending'`
	sqlPruneAttempts = `DELETE FROM webhook_attempts WHERE tenant = $1 AND event BETWEEN $3 AND $4
		AND event IN (SELECT value FROM texts($2))`
)

// Prune deletes events that ended before a time, with their attempts, in small transactions. It returns their number.
// It reads each tenant's oldest events and stops at the first that is younger.
func (w *Webhooks) Prune(ctx context.Context, before time.Time) (total int, err error) {
	for tenant := ""; ; {
		_, err := w.db.ReadOne(ctx, sqlNextTenant, []any{tenant}, &tenant)
		if err != nil || tenant == "" {
			return total, err
		}
		n, err := w.pruneTenant(ctx, tenant, before)
		if total += n; err != nil {
			return total, err
		}
	}
}

func (w *Webhooks) pruneTenant(ctx context.Context, tenant string, before time.Time) (total int, err error) {
	for last := (subject{tenant: tenant}); ; {
		var old []subject
		read, young := 0, false
		err := w.db.Read(ctx, func(tx *db.Tx) error {
			old, read = nil, 0
			return tx.Query(sqlPrunePage, []any{tenant, last.subject, last.id, pruneSet}, func(r *db.Row) error {
				var created, ended time.Time
				if err := r.Scan(&last.subject, &last.id, &created, &ended); err != nil {
					return err
				}
				read++
				young = !created.Before(before)
				if !ended.IsZero() && ended.Before(before) {
					old = append(old, last)
				}
				return nil
			})
		})
		if err != nil {
			return total, err
		}
		if len(old) > 0 {
			ids := make([]string, len(old))
			for i, o := range old {
				ids[i] = o.id
			}
			err := w.db.Write(ctx, func(tx *db.Tx) error {
				tx.Defer(sqlPruneAttempts, -1, tenant, ids, slices.Min(ids), slices.Max(ids))
				tx.Defer(sqlPrune, -1, tenant, ids, old[0].subject, old[len(old)-1].subject)
				return nil
			})
			if err != nil {
				return total, err
			}
			total += len(old)
		}
		if read < pruneSet || young {
			return total, nil
		}
	}
}
