package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	maxWakes = 1000             // subjects kept for other nodes between two rounds
	wakeKept = 30 * time.Second // a hint that no node used within this time is deleted
)

const (
	sqlWake = `INSERT INTO job_wakes (subject, at) SELECT value, now_micros() FROM texts($1) WHERE true
		ON CONFLICT (subject) DO UPDATE SET at = excluded.at`
	sqlWakes     = `SELECT subject, at, CASE WHEN at < now_micros() - $1 THEN 1 ELSE 0 END FROM job_wakes ORDER BY at LIMIT $2`
	sqlWakesDone = `DELETE FROM job_wakes WHERE (subject, at) IN (SELECT subject, at FROM rows($1) AS w)`
	// The join finds the jobs of the subjects by their ids. unindexed(owner) keeps both engines from reading all jobs
	// of the owner. BETWEEN keeps both engines from a join that reads all jobs.
	sqlSubjects = `WITH heard(of_subject) AS (SELECT value FROM texts($2))
		SELECT ` + jobColumns + ` FROM heard JOIN jobs ON jobs.id BETWEEN of_subject AND of_subject || '/~'
		WHERE unindexed(jobs.owner) = $1 AND (jobs.subject = of_subject OR jobs.subject = '' AND jobs.id = of_subject)`
)

type wake struct {
	subject string
	at      int64
}

var wakeColumns = []db.Column[wake]{
	{Name: "subject", Text: func(w wake) string { return w.subject }},
	{Name: "at", Int: func(w wake) int64 { return w.at }},
}

// exchangeHints stores the hints for jobs that are not in this node's memory. It then reads the hints of other nodes
// for jobs of this node.
func (r *runner) exchangeHints(ctx context.Context) error {
	r.mu.Lock()
	owner, overflowing := r.owner, r.overflow.on
	subjects := make([]string, 0, len(r.wakes))
	for s := range r.wakes {
		subjects = append(subjects, s)
		r.wakes[s] = false
	}
	r.mu.Unlock()
	if owner == ownerNobody {
		return nil
	}
	if len(subjects) > 0 {
		slices.Sort(subjects) // all nodes lock the rows in this order, so they cannot deadlock
		err := r.db.Write(ctx, func(tx *db.Tx) error {
			tx.Defer(sqlWake, -1, subjects)
			return nil
		})
		if err != nil {
			return fmt.Errorf("write hints for other nodes: %w", err)
		}
		r.mu.Lock()
		for _, s := range subjects {
			if heardAgain := r.wakes[s]; !heardAgain {
				delete(r.wakes, s)
			}
		}
		r.relaxLocked()
		r.mu.Unlock()
	}
	var heard []wake
	var over []bool
	err := r.db.Read(ctx, func(tx *db.Tx) error {
		heard, over = nil, nil
		return tx.Query(sqlWakes, []any{wakeKept.Microseconds(), maxWakes}, func(found *db.Row) error {
			var w wake
			var old bool
			err := found.Scan(&w.subject, &w.at, &old)
			heard, over = append(heard, w), append(over, old)
			return err
		})
	})
	if err != nil || len(heard) == 0 {
		return err
	}
	return r.takeWakes(ctx, owner, overflowing, heard, over)
}

// takeWakes runs the jobs for which other nodes stored hints, and deletes these hints and the old ones.
func (r *runner) takeWakes(ctx context.Context, owner string, overflowing bool, heard []wake, over []bool) error {
	r.mu.Lock()
	m := r.momentLocked()
	var done []wake
	var unknown []string
	for i, w := range heard {
		switch {
		case r.memory.Wake(w.subject, m.passed):
			done = append(done, w)
		case over[i]:
			done = append(done, w)
		default:
			unknown = append(unknown, w.subject)
		}
	}
	r.dispatchLocked()
	r.mu.Unlock()
	if overflowing && len(unknown) > 0 {
		var rows []row
		err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = queryRows(tx, sqlSubjects, owner, unknown)
			return err
		})
		if err != nil {
			return fmt.Errorf("fetch announced jobs: %w", err)
		}
		for i := range rows {
			rows[i].owner, rows[i].RunAt = owner, m.now
			if at := slices.IndexFunc(heard, func(w wake) bool { return w.subject == rows[i].Subject }); at >= 0 {
				done = append(done, heard[at])
			}
		}
		r.remember(owner, rows)
	}
	if len(done) == 0 {
		return nil
	}
	slices.SortFunc(done, func(a, b wake) int { return strings.Compare(a.subject, b.subject) })
	return r.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(sqlWakesDone, -1, db.RowsOf(wakeColumns, done))
		return nil
	})
}
