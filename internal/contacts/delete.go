package contacts

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	markDeleted   = `UPDATE contact_groups SET deleted_at = $3 WHERE tenant = $1 AND id = $2`
	deletedGroups = `SELECT tenant, id FROM contact_groups WHERE deleted_at <> 0 ORDER BY deleted_at LIMIT $1`
	// deleteSet selects a range of the key, so that its plan does not depend on the statistics of the table.
	deleteSet = `DELETE FROM contacts WHERE tenant = $1 AND group_id = $2
		AND id <= (SELECT max(first.id) FROM (SELECT id FROM contacts WHERE tenant = $1 AND group_id = $2 ORDER BY id LIMIT $3) AS first)`
	deleteEmptied = `DELETE FROM contact_groups WHERE tenant = $1 AND id = $2 AND deleted_at <> 0 AND contacts = 0`
)

// DeleteGroup removes a group with its contacts. A campaign that was accepted before continues, because it has its
// own list of recipients. The first transaction removes the group. Its contacts follow in sets. If the call is
// interrupted, Sweep removes the rest.
func (s *Store) DeleteGroup(ctx context.Context, tenant, id string) error {
	err := s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		if _, err := lockGroup(tx, tenant, id); err != nil {
			return err
		}
		tx.Defer(markDeleted, 1, tenant, id, s.clock.Now())
		return nil
	})
	if err == nil {
		_ = s.empty(ctx, tenant, id) // Sweep continues later, and reports a lasting error
	}
	return err
}

// empty removes the contacts of a deleted group in transactions of atOnce rows, and the group's row with the last. Several
// callers at once share the work.
func (s *Store) empty(ctx context.Context, tenant, id string) error {
	for removed := int64(atOnce); removed == atOnce; {
		if err := s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) (err error) {
			if removed, err = tx.Exec(deleteSet, tenant, id, atOnce); err != nil {
				return err
			}
			if removed > 0 {
				tx.Defer(growGroup, 1, tenant, id, -removed)
			}
			tx.Defer(deleteEmptied, -1, tenant, id)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

const (
	// SweepEvery is the pause between two sweeps.
	SweepEvery = 10 * time.Minute
	// groupsAtOnce is the maximum number of groups of one sweep.
	groupsAtOnce = 100
)

// Sweep removes the remaining contacts of deleted groups, because the call that deleted them was interrupted.
func (s *Store) Sweep(ctx context.Context) error {
	type group struct{ tenant, id string }
	deleted, err := db.ReadAll(db.Bulk(ctx, ""), s.db, deletedGroups, []any{groupsAtOnce}, func(g *group, r *db.Row) error {
		return r.Scan(&g.tenant, &g.id)
	})
	if err != nil {
		return err
	}
	for _, g := range deleted {
		if err := s.empty(ctx, g.tenant, g.id); err != nil {
			return err
		}
	}
	return nil
}
