package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// periodicPrefix begins the kind and the id of the one row of each periodic
// work. It never ends: it is owned, adopted and seen like any other job.
const periodicPrefix = "periodic/"

// Periodic runs fn again and again, on one node, with a pause of every between
// two runs. The first run comes one pause after the work is first known to the
// database. A run that fails is logged and comes again at its next time. Its
// transactions are bulk work. It is called before Start.
func (q *Queue) Periodic(name string, every time.Duration, fn func(ctx context.Context) error) {
	kind := periodicPrefix + name
	q.Register(Handler{Kind: kind, Workers: 1, Run: func(ctx context.Context, _ Job) Outcome {
		out := Outcome{verb: verbRetry, after: every, reset: true, plain: true}
		if err := fn(db.Bulk(ctx, "")); err != nil {
			out.err, out.plain = fmt.Errorf("periodic work %s: %w", name, err), false
		}
		return out
	}})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.periodics[kind] = every
}

const sqlPlant = `INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at)
	SELECT id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at
	FROM rows($1) AS r WHERE true ON CONFLICT (id) DO NOTHING RETURNING id`

// plantPeriodics makes the rows of periodic works that have none.
func (q *Queue) plantPeriodics(ctx context.Context) error {
	now := q.clock.Now()
	var rows []row
	q.mu.Lock()
	owner := q.owner
	for kind, every := range q.periodics {
		job := Job{ID: kind, Kind: kind, RunAt: now.Add(every)}
		rows = append(rows, row{Job: job, owner: owner, created: db.Micros(now)})
	}
	q.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	planted := map[string]bool{}
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		clear(planted)
		return tx.Query(sqlPlant, []any{db.RowsOf(rowColumns, rows)}, func(r *db.Row) error {
			var id string
			err := r.Scan(&id)
			planted[id] = true
			return err
		})
	})
	if err != nil {
		return err
	}
	var ours []row
	for _, r := range rows {
		if planted[r.ID] {
			ours = append(ours, r)
		}
	}
	q.remember(owner, ours)
	return nil
}

// clamp keeps a row that a clock planned before it was set back, or a periodic one that was planned under a longer pause, from
// waiting until then: the job waits for no longer than it had to when it was added.
func (q *Queue) clamp(r *row) {
	if ahead := db.FromMicros(r.created).Sub(q.clock.Now()); ahead > clock.Skew {
		r.RunAt = r.RunAt.Add(-ahead)
	}
	if !strings.HasPrefix(r.Kind, periodicPrefix) {
		return
	}
	if every, ok := q.periodics[r.Kind]; ok {
		if latest := q.clock.Now().Add(every); r.RunAt.After(latest) {
			r.RunAt = latest
		}
	}
}
