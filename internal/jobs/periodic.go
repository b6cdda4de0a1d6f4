package jobs

import (
	"context"
	"strings"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// periodicPrefix begins the kind and the id of the job of each periodic work. Each periodic work has one job, which
// never ends. It is owned, adopted and listed like any other job.
const periodicPrefix = "periodic/"

const sqlPlant = `INSERT INTO jobs (id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at)
	SELECT id, owner, kind, subject, payload, run_at, tries, adopted, last_error, created_at, dead_at
	FROM rows($1) AS r WHERE true ON CONFLICT (id) DO NOTHING RETURNING id`

// plantPeriodics adds the jobs of periodic works that have none.
func (r *runner) plantPeriodics(ctx context.Context) error {
	now := r.clock.Now()
	var rows []row
	r.mu.Lock()
	owner := r.owner
	for kind, every := range r.periodics {
		job := Job{ID: kind, Kind: kind, RunAt: now.Add(every)}
		rows = append(rows, row{Job: job, owner: owner, created: db.Micros(now)})
	}
	r.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	planted := map[string]bool{}
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		clear(planted)
		return tx.Query(sqlPlant, []any{db.RowsOf(rowColumns, rows)}, func(found *db.Row) error {
			var id string
			err := found.Scan(&id)
			planted[id] = true
			return err
		})
	})
	if err != nil {
		return err
	}
	var ours []row
	for _, one := range rows {
		if planted[one.ID] {
			ours = append(ours, one)
		}
	}
	r.remember(owner, ours)
	return nil
}

// clamp moves the due time of a row nearer if it is too far in the future. The clock may have been set back since the
// row was planned. In that case the row's wait starts again now. Or the interval of periodic work may have become
// shorter. In that case the row is due after the new interval at the latest.
func (r *runner) clamp(planned *row) {
	if ahead := db.FromMicros(planned.created).Sub(r.clock.Now()); ahead > clock.Skew {
		planned.RunAt = planned.RunAt.Add(-ahead)
	}
	if !strings.HasPrefix(planned.Kind, periodicPrefix) {
		return
	}
	if every, ok := r.periodics[planned.Kind]; ok {
		if latest := r.clock.Now().Add(every); planned.RunAt.After(latest) {
			planned.RunAt = latest
		}
	}
}
