package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/scheduler"
)

const (
	setSize  = 500              // jobs adopted or fetched in one transaction
	maxWakes = 1000             // subjects kept for other nodes between two looks
	wakeKept = 30 * time.Second // a hint that no node took in this time is dropped
	// nearby jobs are never put out of memory: they would be back at once.
	nearby = 30 * time.Second
	// parkedWithin is by how much the time in the row of a job may differ from that in memory when the job leaves it.
	parkedWithin = time.Second
	// strayAge is the age after which a job of this node that is neither in
	// memory nor known to be spilled is searched for.
	strayAge = 30 * time.Second
	// lookEvery bounds the time between two looks by the keeper, by the
	// machine's clock: wakes of other nodes are seen within it.
	lookEvery = time.Second
)

// spill says that some jobs of this node are in the table alone.
type spill struct {
	on     bool
	from   time.Time       // the earliest of them is due not before this
	times  uint64          // how often something spilled: a walk sees whether more came meanwhile
	walked map[string]bool // finished while a walk reads the table
}

func (q *Queue) spilledLocked(at time.Time) {
	if !q.spill.on || at.Before(q.spill.from) {
		q.spill.from = at
	}
	q.spill.on = true
	q.spill.times++
	q.nudge()
}

// nudge calls the keeper.
func (q *Queue) nudge() {
	select {
	case q.look <- struct{}{}:
	default:
	}
}

// keepLoop looks after what is not in memory: the jobs of dead owners, the jobs
// that did not fit, and the hints for and from other nodes.
func (q *Queue) keepLoop() {
	defer q.loops.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-q.quit
		cancel()
	}()
	tick := time.NewTicker(min(q.lookEvery, q.opts.Heartbeat))
	defer tick.Stop()
	var told clock.Seldom
	for {
		look := q.look
		if err := q.keepOnce(ctx); err != nil && ctx.Err() == nil {
			look = nil // who failed calls, too: a database that takes no writes would be asked without a rest
			if missed, ok := told.May(time.Now()); ok {
				q.log.Warn("the keeper of the jobs failed and looks again", "node", q.opts.Node, "error", err, "times_since", missed)
			}
		}
		select {
		case <-look:
		case <-tick.C:
		case <-q.quit:
			return
		}
	}
}

// keepOnce is one look: at everything once a heartbeat, else at the hints and
// the memory only.
func (q *Queue) keepOnce(ctx context.Context) error {
	if err := q.keepWakes(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	whole := !q.looked || time.Since(q.lookedAt) >= q.opts.Heartbeat*3/4
	q.mu.Unlock()
	if whole {
		return q.keep(ctx)
	}
	if err := q.takeParked(ctx); err != nil {
		return err
	}
	return q.keepMemory(ctx)
}

const sqlParked = `SELECT owner FROM jobs WHERE owner IN (SELECT value FROM texts($1)) LIMIT 1`

// takeParked adopts the jobs that wait for a node like this one. They are
// looked for at every look, because a node accepted them just now.
func (q *Queue) takeParked(ctx context.Context) error {
	q.mu.Lock()
	owner := q.owner
	var wanted []string
	for _, k := range q.kinds {
		if k.Takes != nil && k.Takes() {
			wanted = append(wanted, parked(k.Kind))
		}
	}
	q.mu.Unlock()
	if owner == ownerNobody || len(wanted) == 0 {
		return nil
	}
	found := false
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		var one string
		found, err = tx.One(sqlParked, []any{wanted}, &one)
		return err
	})
	for i := 0; err == nil && found && i < len(wanted); i++ {
		err = q.adopt(ctx, owner, wanted[i])
	}
	if err != nil {
		return fmt.Errorf("take jobs that wait for this node: %w", err)
	}
	return nil
}

const (
	// The distinct owners, by hopping from one to the next in the index.
	sqlOwners = `WITH RECURSIVE hop(owner) AS (
			SELECT min(owner) FROM jobs
			UNION ALL
			SELECT (SELECT min(jobs.owner) FROM jobs WHERE jobs.owner > hop.owner) FROM hop WHERE hop.owner IS NOT NULL)
		SELECT owner FROM hop WHERE owner IS NOT NULL`
	sqlDueFirst = `SELECT id FROM jobs WHERE owner = $1 AND kind IN (SELECT value FROM texts($2)) ORDER BY run_at LIMIT $3`
	// The set is named: a plan that finds it by itself, and was made for a small
	// table, holds each job there is against it. unindexed(owner) keeps both engines
	// from reading all jobs of the owner. The owner's death and our own life are
	// looked at once more where it counts.
	sqlAdopt = `UPDATE jobs SET owner = $1, adopted = 1
		WHERE id IN (SELECT value FROM texts($3)) AND unindexed(owner) = $2
		AND NOT EXISTS (SELECT 1 FROM job_leases WHERE job_leases.owner = $2 AND expires_at > 0)
		AND EXISTS (SELECT 1 FROM job_leases WHERE job_leases.owner = $1 AND expires_at > 0)
		RETURNING ` + jobColumns
)

// keep buries dead leases, adopts their jobs and keeps the memory in bounds.
func (q *Queue) keep(ctx context.Context) error {
	q.mu.Lock()
	owner := q.owner
	q.mu.Unlock()
	if owner == ownerNobody {
		return nil
	}
	var owners []string
	var lapsed bool // or to be shortened
	alive := map[string]bool{}
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		owners, lapsed = nil, false
		clear(alive)
		return tx.Gather(
			db.Query{SQL: sqlOwners, Each: func(r *db.Row) error {
				var o string
				err := r.Scan(&o)
				owners = append(owners, o)
				return err
			}},
			q.lease.Look(func(o string, lives, bury bool) {
				lapsed = lapsed || bury
				alive[o] = lives
			}))
	})
	if err != nil {
		return fmt.Errorf("look for the dead: %w", err)
	}
	if lapsed {
		err := q.db.Write(ctx, func(tx *db.Tx) error {
			q.lease.Bury(tx)
			return nil
		})
		if err != nil {
			return fmt.Errorf("bury the dead: %w", err)
		}
	}
	q.mu.Lock()
	q.peers = 0
	for o, lives := range alive {
		if lives && o != owner {
			q.peers++
		}
	}
	q.mu.Unlock()
	for _, o := range owners {
		if o == owner || o == ownerDead || alive[o] || !q.wants(o) {
			continue
		}
		if err := q.adopt(ctx, owner, o); err != nil {
			return fmt.Errorf("adopt the jobs of %q: %w", o, err)
		}
	}
	if err := q.keepMemory(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looked, q.lookedAt = true, time.Now()
	q.relaxLocked()
	return nil
}

// wants says that the owner is not a kind of job that this node does not take.
func (q *Queue) wants(owner string) bool {
	kind, waits := strings.CutPrefix(owner, ownerParked)
	if !waits {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.kinds[kind]
	return k != nil && k.takes()
}

// adopt takes the jobs of a dead owner in sets, those due first first, until
// there are none or the memory is full.
func (q *Queue) adopt(ctx context.Context, owner, dead string) error {
	q.mu.Lock()
	kinds := make([]string, 0, len(q.kinds))
	for name, k := range q.kinds {
		if k.takes() {
			kinds = append(kinds, name)
		}
	}
	q.mu.Unlock()
	slices.Sort(kinds)
	for total := 0; ; {
		q.mu.Lock()
		room := q.opts.MemoryMax - q.memory.Len()
		current := q.owner == owner && q.phase == started
		q.mu.Unlock()
		if room <= 0 || !current {
			return nil
		}
		var rows []row
		err := q.db.Write(ctx, func(tx *db.Tx) (err error) {
			rows, err = adoptSet(tx, owner, dead, kinds, min(room, setSize))
			return err
		})
		if err != nil {
			// Committed or not: a walk over the table finds out.
			q.mu.Lock()
			q.spilledLocked(q.clock.Now())
			q.mu.Unlock()
			return err
		}
		if len(rows) == 0 {
			if total > 0 {
				level := slog.LevelDebug // who accepted them is not gone: they come one by one, all the time
				if strings.Contains(dead, "/") {
					level = slog.LevelInfo
				}
				q.log.Log(ctx, level, "jobs were adopted", "node", q.opts.Node, "from", dead, "jobs", total)
			}
			return nil
		}
		total += len(rows)
		q.mu.Lock()
		q.counts.Adopted += uint64(len(rows))
		q.mu.Unlock()
		for i := range rows {
			rows[i].owner = owner
			q.clamp(&rows[i])
		}
		q.remember(owner, rows)
	}
}

func adoptSet(tx *db.Tx, owner, dead string, kinds []string, limit int) ([]row, error) {
	var ids []string
	err := tx.Query(sqlDueFirst, []any{dead, kinds, limit}, func(r *db.Row) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return queryRows(tx, sqlAdopt, owner, dead, ids)
}

const (
	sqlWalk = `SELECT ` + jobColumns + ` FROM jobs
		WHERE owner = $1 AND (run_at, id) > ($2, $3) ORDER BY run_at, id LIMIT $4`
	sqlStrays = `SELECT count(*) FROM jobs WHERE owner = $1 AND created_at < $2`
)

// keepMemory puts far-off jobs out of a memory that is too full, and fetches
// jobs from the table into one that has room.
func (q *Queue) keepMemory(ctx context.Context) error {
	q.keeping.Lock() // a walk is alone
	defer q.keeping.Unlock()
	if err := q.trim(ctx); err != nil {
		return fmt.Errorf("make room in memory: %w", err)
	}
	if err := q.findStrays(ctx); err != nil {
		return fmt.Errorf("count the jobs of this node: %w", err)
	}
	if err := q.walk(ctx); err != nil {
		return fmt.Errorf("fetch jobs into memory: %w", err)
	}
	return nil
}

// trim puts out of memory what is due last, when there is too much or what is
// due now has no room.
func (q *Queue) trim(ctx context.Context) error {
	q.mu.Lock()
	owner := q.owner
	var out []*scheduler.Entry[held]
	var moved []note
	m := q.momentLocked()
	full := q.memory.Len() > q.opts.MemoryMax || q.spill.on && !q.spill.from.After(m.now)
	if over := q.memory.Len() - q.opts.MemoryMax/2; full && over > 0 && owner != ownerNobody {
		out = q.memory.Furthest(over, m.passed+nearby)
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
	q.mu.Unlock()
	if len(moved) > 0 {
		err := q.db.Write(ctx, func(tx *db.Tx) error {
			tx.Defer(sqlPark, -1, db.RowsOf(noteColumns, moved))
			return nil
		})
		if err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner != owner {
		return nil
	}
	for i, e := range out {
		if e.Waits() && e.Due == dues[i] { // nothing happened to it meanwhile
			q.memory.Forget(e)
			e.Job.kind.leaves(e.Job.Job)
			q.counts.Spills++
			q.spilledLocked(m.wall(e.Due))
		}
	}
	return nil
}

// findStrays compares the table with the memory once in a while: a transaction
// whose COMMIT went through although its caller was told otherwise leaves rows
// that no memory holds.
func (q *Queue) findStrays(ctx context.Context) error {
	q.mu.Lock()
	owner, before := q.owner, db.Micros(q.clock.Now().Add(-strayAge))
	due := !q.spill.on && owner != ownerNobody && time.Since(q.strayLook) >= strayAge/2
	if due {
		q.strayLook = time.Now()
	}
	q.mu.Unlock()
	if !due {
		return nil
	}
	var stored int
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(sqlStrays, []any{owner, before}, &stored)
		return err
	})
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	remembered := 0
	for e := range q.memory.All() {
		if e.Job.created < before {
			remembered++
		}
	}
	if q.owner == owner && stored > remembered {
		q.spilledLocked(q.clock.Now())
	}
	return nil
}

// walk reads the jobs of this node in the order of their times and takes those
// that are not in memory, until the memory is three quarters full.
func (q *Queue) walk(ctx context.Context) error {
	q.mu.Lock()
	owner, times := q.owner, q.spill.times
	room := q.opts.MemoryMax*3/4 - q.memory.Len()
	begin := q.spill.on && owner != ownerNobody && room > 0 && q.phase == started
	if begin {
		q.spill.walked = map[string]bool{}
	}
	q.mu.Unlock()
	if !begin {
		return nil
	}
	defer func() {
		q.mu.Lock()
		q.spill.walked = nil
		q.mu.Unlock()
	}()
	for at, id := int64(0), ""; ; {
		var rows []row
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = queryRows(tx, sqlWalk, owner, at, id, setSize)
			return err
		})
		if err != nil {
			return err
		}
		if over := q.walkSet(owner, times, rows); over {
			return nil
		}
		last := rows[len(rows)-1]
		at, id = db.Micros(last.RunAt), last.ID
	}
}

// walkSet takes one set of a walk and says whether the walk is over.
func (q *Queue) walkSet(owner string, times uint64, rows []row) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner != owner || q.phase != started {
		return true
	}
	m := q.momentLocked()
	defer q.dispatchLocked()
	for i := range rows {
		r := &rows[i]
		if q.memory.Find(r.ID) != nil || q.spill.walked[r.ID] || q.kinds[r.Kind] == nil {
			continue
		}
		if q.memory.Len() >= q.opts.MemoryMax*3/4 {
			q.spill.from = r.RunAt
			return true
		}
		planned := *r // the walk goes on from the row's own time
		planned.owner = owner
		q.clamp(&planned)
		q.putLocked(&planned, m)
	}
	if len(rows) < setSize {
		if q.spill.times == times {
			q.spill.on = false
		}
		q.relaxLocked()
		return true
	}
	return false
}

const (
	sqlWake = `INSERT INTO job_wakes (subject, at) SELECT value, now_micros() FROM texts($1) WHERE true
		ON CONFLICT (subject) DO UPDATE SET at = excluded.at`
	sqlWakes     = `SELECT subject, at, CASE WHEN at < now_micros() - $1 THEN 1 ELSE 0 END FROM job_wakes ORDER BY at LIMIT $2`
	sqlWakesDone = `DELETE FROM job_wakes WHERE (subject, at) IN (SELECT subject, at FROM rows($1) AS w)`
	// Jobs are found by the ids that those of a subject have. unindexed(owner) keeps both engines from
	// reading all jobs of the owner, BETWEEN from a join that reads all there are.
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

// keepWakes writes the hints for jobs that are not in this memory, and takes
// those of other nodes for jobs that are this node's.
func (q *Queue) keepWakes(ctx context.Context) error {
	q.mu.Lock()
	owner, spilled := q.owner, q.spill.on
	subjects := make([]string, 0, len(q.wakes))
	for s := range q.wakes {
		subjects = append(subjects, s)
		q.wakes[s] = false
	}
	q.mu.Unlock()
	if owner == ownerNobody {
		return nil
	}
	if len(subjects) > 0 {
		slices.Sort(subjects) // two nodes that write the same rows lock them in one order
		err := q.db.Write(ctx, func(tx *db.Tx) error {
			tx.Defer(sqlWake, -1, subjects)
			return nil
		})
		if err != nil {
			return fmt.Errorf("write hints for other nodes: %w", err)
		}
		q.mu.Lock()
		for _, s := range subjects {
			if heardAgain := q.wakes[s]; !heardAgain {
				delete(q.wakes, s)
			}
		}
		q.relaxLocked()
		q.mu.Unlock()
	}
	var heard []wake
	var over []bool
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		heard, over = nil, nil
		return tx.Query(sqlWakes, []any{wakeKept.Microseconds(), maxWakes}, func(r *db.Row) error {
			var w wake
			var old bool
			err := r.Scan(&w.subject, &w.at, &old)
			heard, over = append(heard, w), append(over, old)
			return err
		})
	})
	if err != nil || len(heard) == 0 {
		return err
	}
	return q.takeWakes(ctx, owner, spilled, heard, over)
}

// takeWakes runs the jobs that were heard of.
func (q *Queue) takeWakes(ctx context.Context, owner string, spilled bool, heard []wake, over []bool) error {
	q.mu.Lock()
	m := q.momentLocked()
	var done []wake
	var unknown []string
	for i, w := range heard {
		switch {
		case q.memory.Wake(w.subject, m.passed):
			done = append(done, w)
		case over[i]:
			done = append(done, w)
		default:
			unknown = append(unknown, w.subject)
		}
	}
	q.dispatchLocked()
	q.mu.Unlock()
	if spilled && len(unknown) > 0 {
		var rows []row
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = queryRows(tx, sqlSubjects, owner, unknown)
			return err
		})
		if err != nil {
			return fmt.Errorf("fetch jobs that were heard of: %w", err)
		}
		for i := range rows {
			rows[i].owner, rows[i].RunAt = owner, m.now
			if at := slices.IndexFunc(heard, func(w wake) bool { return w.subject == rows[i].Subject }); at >= 0 {
				done = append(done, heard[at])
			}
		}
		q.remember(owner, rows)
	}
	if len(done) == 0 {
		return nil
	}
	slices.SortFunc(done, func(a, b wake) int { return strings.Compare(a.subject, b.subject) })
	return q.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(sqlWakesDone, -1, db.RowsOf(wakeColumns, done))
		return nil
	})
}
