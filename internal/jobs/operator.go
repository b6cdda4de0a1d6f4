package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Depth has the numbers of jobs of one kind on all nodes.
type Depth struct {
	Kind  string
	Alive int64 // not finished; without dead letters
	Due   int64 // number of these that are due
	Dead  int64 // dead letters
	// Oldest is the time at which the most overdue job was due according to its row. It is zero if no job is due. A
	// delay by Later is only in memory, so the row of such a job shows it as due since it was added.
	Oldest time.Time
}

const sqlDepth = `SELECT kind,
	coalesce(sum(CASE WHEN dead_at = 0 THEN 1 ELSE 0 END), 0),
	coalesce(sum(CASE WHEN dead_at = 0 AND run_at <= $1 THEN 1 ELSE 0 END), 0),
	coalesce(sum(CASE WHEN dead_at > 0 THEN 1 ELSE 0 END), 0),
	coalesce(min(CASE WHEN dead_at = 0 AND run_at <= $1 THEN run_at END), 0)
	FROM jobs GROUP BY kind ORDER BY kind`

// Depth counts the jobs of every kind except periodic work. It reads the whole table, so it is for a metric and not
// for a request.
func (q *Queue) Depth(ctx context.Context) ([]Depth, error) {
	var list []Depth
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sqlDepth, []any{q.clock.Now()}, func(r *db.Row) error {
			var d Depth
			if err := r.Scan(&d.Kind, &d.Alive, &d.Due, &d.Dead, &d.Oldest); err != nil {
				return err
			}
			if !strings.HasPrefix(d.Kind, periodicPrefix) {
				list = append(list, d)
			}
			return nil
		})
	})
	return list, err
}

// Filter selects jobs for List. Empty members match everything.
type Filter struct {
	Kind    string
	Subject string
	Dead    bool   // dead letters only; false: all other jobs
	After   string // last id of the previous page
	Limit   int    // default 100, at most 1,000
}

// Listed is a job as an operator sees it.
type Listed struct {
	Job
	Node      string // name and epoch of the owner; empty without an owner
	CreatedAt time.Time
	DeadAt    time.Time // zero unless it is a dead letter
}

const (
	sqlList = `SELECT ` + jobColumns + `, owner, dead_at FROM jobs
	WHERE id > $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR subject = $3) AND dead_at = 0
	ORDER BY id LIMIT $4`
	sqlListDead = `SELECT ` + jobColumns + `, owner, dead_at FROM jobs
	WHERE owner = 'dead' AND id > $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR subject = $3)
	ORDER BY id LIMIT $4`
	sqlRetried = `SELECT payload, created_at FROM jobs WHERE kind = $1 AND dead_at = 0 AND tries >= $2 AND created_at < $3 ORDER BY created_at LIMIT $4`

	sqlDeadLetter = `SELECT ` + jobColumns + `, owner, dead_at FROM jobs WHERE id = $1 AND owner = 'dead'`
)

// List returns jobs in the order of their ids, which is the order in which they were added.
func (q *Queue) List(ctx context.Context, f Filter) ([]Listed, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	sql := sqlList
	if f.Dead {
		sql = sqlListDead
	}
	return q.listed(db.Bulk(ctx, ""), sql, f.After, f.Kind, f.Subject, min(f.Limit, 1000))
}

// DeadLetter returns one dead letter.
func (q *Queue) DeadLetter(ctx context.Context, id string) (Listed, error) {
	list, err := q.listed(ctx, sqlDeadLetter, id)
	if err == nil && len(list) == 0 {
		err = q.db.Read(ctx, func(tx *db.Tx) error { return notDead(tx, id) })
	}
	if err != nil {
		return Listed{}, err
	}
	return list[0], nil
}

func (q *Queue) listed(ctx context.Context, sql string, args ...any) ([]Listed, error) {
	return db.ReadAll(ctx, q.db, sql, args, func(one *Listed, r *db.Row) error {
		var created int64
		err := r.Scan(&one.ID, &one.Kind, &one.Subject, &one.Payload, &one.RunAt, &one.Tries,
			&one.Adopted, &one.LastError, &created, &one.Node, &one.DeadAt)
		one.CreatedAt = db.FromMicros(created)
		if one.Node == ownerDead || strings.HasPrefix(one.Node, ownerParked) {
			one.Node = ownerNobody
		}
		return err
	})
}

// sqlRerun removes the owner of a dead letter, and the next node that finds the job adopts it.
const (
	sqlRerun = `UPDATE jobs SET owner = '', dead_at = 0, tries = 0, adopted = 1, run_at = $2
		WHERE id = $1 AND owner = 'dead'`
	sqlThere = `SELECT 1 FROM jobs WHERE id = $1`
)

// Rerun makes a dead letter an ordinary job again, for the first node that finds it. It returns an error for a job
// that is not a dead letter, because the job's owner runs it anyway.
func (q *Queue) Rerun(ctx context.Context, id string) error {
	return q.db.Write(ctx, func(tx *db.Tx) error { return q.RerunIn(tx, id) })
}

// RerunIn is Rerun in a transaction of the caller, such as one that also writes the audit log.
func (q *Queue) RerunIn(tx *db.Tx, id string) error {
	n, err := tx.Exec(sqlRerun, id, q.clock.Now())
	if err != nil {
		return err
	}
	if n == 0 {
		return notDead(tx, id)
	}
	tx.AfterCommit(q.lookAgain)
	return nil
}

// notDead returns the error for an id that is not the id of a dead letter.
func notDead(tx *db.Tx, id string) error {
	var one int64
	alive, err := tx.One(sqlThere, []any{id}, &one)
	switch {
	case err != nil:
		return err
	case alive:
		return problem.New(problem.InProgress, "job_alive", "This job has not failed: a server still runs it")
	}
	return problem.New(problem.NotFound, "job_not_found", "There is no such job")
}

// lookAgain starts a whole round of the maintainer.
func (q *Queue) lookAgain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase == started {
		q.looked = false
		q.nudge()
	}
}

// Retried calls each for jobs of a kind that failed at least tries times and were added before a time, oldest first.
func (q *Queue) Retried(ctx context.Context, kind string, tries int, before time.Time, most int, each func(payload json.RawMessage, added time.Time)) error {
	type one struct {
		payload string
		added   time.Time
	}
	list, err := db.ReadAll(db.Bulk(ctx, ""), q.db, sqlRetried, []any{kind, int64(tries), before, int64(most)}, func(o *one, r *db.Row) error {
		return r.Scan(&o.payload, &o.added)
	})
	for _, o := range list {
		each(json.RawMessage(o.payload), o.added)
	}
	return err
}
