package inbox

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/webhook"
)

const (
	partsEvery = time.Minute
	sweepEvery = 10 * time.Minute
	sweepSet   = 200 // rows of a transaction
)

const (
	lateTexts = `SELECT mode, sender, number, reference, total FROM inbox_parts WHERE joined_at = 0
		GROUP BY mode, sender, number, reference, total HAVING min(received_at) < $1 ORDER BY min(received_at) LIMIT $2`
	sweepParts = `DELETE FROM inbox_parts WHERE (mode, sender, number, reference, total, no) IN
		(SELECT mode, sender, number, reference, total, no FROM inbox_parts WHERE joined_at <> 0 AND received_at < $1 ORDER BY received_at LIMIT $2)`
	oldTexts = `SELECT id, tenant, received_at FROM inbox_texts WHERE received_at < $1 AND received_at >= $2 AND (received_at > $2 OR id > $3)
		ORDER BY received_at, id LIMIT $4`
	deleteText = `DELETE FROM inbox_texts WHERE id = $1`
)

// closeParts stores texts without the parts that did not arrive in time.
func (s *Store) closeParts(ctx context.Context) error {
	late, err := db.ReadAll(ctx, s.DB, lateTexts, []any{s.Clock.Ago(partsWait), sweepSet}, func(k *partKey, r *db.Row) error {
		return r.Scan(&k.mode, &k.sender, &k.number, &k.reference, &k.total)
	})
	if err != nil {
		return err
	}
	for _, key := range late {
		if err := s.DB.Write(ctx, func(tx *db.Tx) error {
			parts, err := readParts(tx, key)
			if err != nil || len(parts) == 0 || !parts[0].joined.IsZero() { // the text was completed meanwhile
				return err
			}
			_, err = s.join(tx, key, parts, received{})
			return err
		}); err != nil {
			return err
		}
	}
	return db.Prune(ctx, s.DB, sweepParts, sweepSet, s.Clock.Ago(partsWait+repeatWithin))
}

// sweep deletes texts that are older than they are kept, and empties their events. A text whose event is not delivered yet
// stays until it is.
func (s *Store) sweep(ctx context.Context) error {
	type old struct {
		id, tenant string
		at         time.Time
	}
	ctx = db.Bulk(ctx, "")
	before := s.Clock.Ago(s.Keep)
	for after := (old{at: time.Unix(0, 0)}); ; {
		set, err := db.ReadAll(ctx, s.DB, oldTexts, []any{before, after.at, after.id, sweepSet}, func(o *old, r *db.Row) error {
			return r.Scan(&o.id, &o.tenant, &o.at)
		})
		if err != nil || len(set) == 0 {
			return err
		}
		if err := s.DB.Write(ctx, func(tx *db.Tx) error {
			for _, o := range set {
				pending, err := webhook.EmptyEvents(tx, o.tenant, o.id)
				if err != nil {
					return err
				}
				if !pending {
					tx.Defer(deleteText, -1, o.id)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		after = set[len(set)-1]
	}
}
