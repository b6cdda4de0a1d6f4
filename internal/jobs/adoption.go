package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
)

const sqlParked = `SELECT owner FROM jobs WHERE owner IN (SELECT value FROM texts($1)) LIMIT 1`

// takeParked adopts the jobs that wait for a node that runs their kind. It runs at every round of the maintainer,
// because other nodes may have accepted such jobs just now.
func (r *runner) takeParked(ctx context.Context) error {
	r.mu.Lock()
	owner := r.owner
	var wanted []string
	for _, k := range r.kinds {
		if k.Takes != nil && k.Takes() {
			wanted = append(wanted, parked(k.Kind))
		}
	}
	r.mu.Unlock()
	if owner == ownerNobody || len(wanted) == 0 {
		return nil
	}
	found := false
	err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
		var one string
		found, err = tx.One(sqlParked, []any{wanted}, &one)
		return err
	})
	for i := 0; err == nil && found && i < len(wanted); i++ {
		err = r.adopt(ctx, owner, wanted[i])
	}
	if err != nil {
		return fmt.Errorf("take jobs that wait for this node: %w", err)
	}
	return nil
}

// wants reports whether this node adopts the jobs of an owner. It returns false only for jobs that wait for a node of
// a kind that this node does not run.
func (r *runner) wants(owner string) bool {
	kind, waits := strings.CutPrefix(owner, ownerParked)
	if !waits {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[kind]
	return k != nil && k.takes()
}

const (
	sqlDueFirst = `SELECT id FROM jobs WHERE owner = $1 AND kind IN (SELECT value FROM texts($2)) ORDER BY run_at LIMIT $3`
	// The ids are given as a set. If the statement selected them itself, a plan made for a small table would compare
	// every job with the selection. unindexed(owner) keeps both engines from reading all jobs of the owner. The
	// statement checks again that the owner is dead and that our own lease is alive.
	sqlAdopt = `UPDATE jobs SET owner = $1, adopted = 1
		WHERE id IN (SELECT value FROM texts($3)) AND unindexed(owner) = $2
		AND NOT EXISTS (SELECT 1 FROM job_leases WHERE job_leases.owner = $2 AND expires_at > 0)
		AND EXISTS (SELECT 1 FROM job_leases WHERE job_leases.owner = $1 AND expires_at > 0)
		RETURNING ` + jobColumns
)

// adopt takes over the jobs of a dead owner in sets, in the order in which they are due. It ends when there are no
// more or the memory is full.
func (r *runner) adopt(ctx context.Context, owner, dead string) error {
	r.mu.Lock()
	kinds := make([]string, 0, len(r.kinds))
	for name, k := range r.kinds {
		if k.takes() {
			kinds = append(kinds, name)
		}
	}
	r.mu.Unlock()
	slices.Sort(kinds)
	for total := 0; ; {
		r.mu.Lock()
		room := r.opts.MemoryMax - r.memory.Len()
		current := r.owner == owner && r.phase == started
		r.mu.Unlock()
		if room <= 0 || !current {
			return nil
		}
		var rows []row
		err := r.db.Write(ctx, func(tx *db.Tx) (err error) {
			rows, err = adoptSet(tx, owner, dead, kinds, min(room, setSize))
			return err
		})
		if err != nil {
			// The set may have been committed nevertheless. In that case a walk over the table finds its
			// jobs.
			r.mu.Lock()
			r.overflowedLocked(r.clock.Now())
			r.mu.Unlock()
			return err
		}
		if len(rows) == 0 {
			if total > 0 {
				level := slog.LevelDebug // jobs that wait for a node that runs their kind arrive one by one, all the time
				if strings.Contains(dead, "/") {
					level = slog.LevelInfo
				}
				r.log.Log(ctx, level, "adopted jobs of dead node", "node", r.opts.Node, "from", dead, "jobs", total)
			}
			return nil
		}
		total += len(rows)
		r.mu.Lock()
		r.counts.Adopted += uint64(len(rows))
		r.mu.Unlock()
		for i := range rows {
			rows[i].owner = owner
			r.clamp(&rows[i])
		}
		r.remember(owner, rows)
	}
}

func adoptSet(tx *db.Tx, owner, dead string, kinds []string, limit int) ([]row, error) {
	ids, err := db.All(tx, sqlDueFirst, []any{dead, kinds, limit}, func(id *string, found *db.Row) error { return found.Scan(id) })
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return queryRows(tx, sqlAdopt, owner, dead, ids)
}
