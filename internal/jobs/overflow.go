package jobs

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/scheduler"
)

const (
	// Jobs that are due within nearby are not removed from memory, because they would return at once.
	nearby = 30 * time.Second
	// parkedWithin is the maximum difference between the due times in memory and in the row of a job that leaves the
	// memory. If it is larger, the row is updated.
	parkedWithin = time.Second
	// strayAge is the age after which a job of this node should be in memory or known to overflow. The queue
	// searches for older jobs that are neither.
	strayAge = 30 * time.Second
)

const (
	sqlWalk = `SELECT ` + jobColumns + ` FROM jobs
		WHERE owner = $1 AND (run_at, id) > ($2, $3) ORDER BY run_at, id LIMIT $4`
	sqlStrays = `SELECT count(*) FROM jobs WHERE owner = $1 AND created_at < $2`
)

// trim removes the jobs with the latest due times from memory, if there are too many jobs or if due jobs have
// no room.
func (r *runner) trim(ctx context.Context) error {
	r.mu.Lock()
	owner := r.owner
	var out []*scheduler.Entry[held]
	var moved []note
	m := r.momentLocked()
	full := r.memory.Len() > r.opts.MemoryMax || r.overflow.on && !r.overflow.from.After(m.now)
	if over := r.memory.Len() - r.opts.MemoryMax/2; full && over > 0 && owner != ownerNobody {
		out = r.memory.Furthest(over, m.passed+nearby)
		for _, e := range out {
			if at := m.wall(e.Due); at.Sub(e.Job.RunAt).Abs() > parkedWithin {
				moved = append(moved, note{id: e.ID, owner: owner, at: at})
			}
		}
	}
	dues := make([]time.Duration, len(out))
	for i, e := range out {
		dues[i] = e.Due
	}
	r.mu.Unlock()
	if len(moved) > 0 {
		err := r.db.Write(ctx, func(tx *db.Tx) error {
			tx.Defer(sqlPark, -1, db.RowsOf(noteColumns, moved))
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != owner {
		return nil
	}
	for i, e := range out {
		if e.Waits() && e.Due == dues[i] { // unchanged since the lock was released
			r.memory.Forget(e)
			e.Job.kind.leaves(e.Job.Job)
			r.counts.Overflows++
			r.overflowedLocked(m.wall(e.Due))
		}
	}
	return nil
}

// findStrays compares the number of jobs in the table and in memory from time to time. If the caller of a transaction
// got an error although its COMMIT succeeded, the jobs are only in the table.
func (r *runner) findStrays(ctx context.Context) error {
	r.mu.Lock()
	owner, before := r.owner, db.Micros(r.clock.Now().Add(-strayAge))
	due := !r.overflow.on && owner != ownerNobody && time.Since(r.overflow.strays) >= strayAge/2
	if due {
		r.overflow.strays = time.Now()
	}
	r.mu.Unlock()
	if !due {
		return nil
	}
	var stored int
	_, err := r.db.ReadOne(ctx, sqlStrays, []any{owner, before}, &stored)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remembered := 0
	for e := range r.memory.All() {
		if e.Job.created < before {
			remembered++
		}
	}
	if r.owner == owner && stored > remembered {
		r.overflowedLocked(r.clock.Now())
	}
	return nil
}

// walk reads the jobs of this node in the order of their due times. It adds missing jobs to memory until it is three
// quarters full.
func (r *runner) walk(ctx context.Context) error {
	r.mu.Lock()
	owner, times := r.owner, r.overflow.times
	room := r.opts.MemoryMax*3/4 - r.memory.Len()
	begin := r.overflow.on && owner != ownerNobody && room > 0 && r.phase == started
	if begin {
		r.overflow.walked = map[string]bool{}
	}
	r.mu.Unlock()
	if !begin {
		return nil
	}
	defer func() {
		r.mu.Lock()
		r.overflow.walked = nil
		r.mu.Unlock()
	}()
	for at, id := int64(0), ""; ; {
		var rows []row
		err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = queryRows(tx, sqlWalk, owner, at, id, setSize)
			return err
		})
		if err != nil {
			return err
		}
		if over := r.walkSet(owner, times, rows); over {
			return nil
		}
		last := rows[len(rows)-1]
		at, id = db.Micros(last.RunAt), last.ID
	}
}

// walkSet adds one set of rows to memory and reports whether the walk is over.
func (r *runner) walkSet(owner string, times uint64, rows []row) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != owner || r.phase != started {
		return true
	}
	m := r.momentLocked()
	defer r.dispatchLocked()
	for i := range rows {
		found := &rows[i]
		if r.memory.Find(found.ID) != nil || r.overflow.walked[found.ID] || r.kinds[found.Kind] == nil {
			continue
		}
		if r.memory.Len() >= r.opts.MemoryMax*3/4 {
			r.overflow.from = found.RunAt
			return true
		}
		planned := *found // a copy: the walk continues from the time in the row
		planned.owner = owner
		r.clamp(&planned)
		r.putLocked(&planned, m)
	}
	if len(rows) < setSize {
		if r.overflow.times == times {
			r.overflow.on = false
		}
		r.relaxLocked()
		return true
	}
	return false
}
