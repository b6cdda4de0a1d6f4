package inbox

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	partsEvery = time.Minute
	sweepEvery = 10 * time.Minute
	sweepSet   = 1_000 // rows of a transaction
)

const (
	lateTexts = `SELECT mode, sender, number, reference, total FROM inbox_parts WHERE joined_at = 0
		GROUP BY mode, sender, number, reference, total HAVING min(received_at) < $1 ORDER BY min(received_at) LIMIT $2`
	sweepParts = `DELETE FROM inbox_parts WHERE (mode, sender, number, reference, total, no) IN
		(SELECT mode, sender, number, reference, total, no FROM inbox_parts WHERE joined_at <> 0 AND received_at < $1 ORDER BY received_at LIMIT $2)`
	sweepTexts = `DELETE FROM inbox_texts WHERE id IN (SELECT id FROM inbox_texts WHERE received_at < $1 ORDER BY received_at LIMIT $2)`
)

// closeParts stores the texts whose last part does not come, without it.
func (s *Store) closeParts(ctx context.Context) error {
	var late []partKey
	if err := s.DB.Read(ctx, func(tx *db.Tx) error {
		late = nil
		return tx.Query(lateTexts, []any{s.Clock.Ago(partsWait), sweepSet}, func(r *db.Row) error {
			var k partKey
			err := r.Scan(&k.mode, &k.sender, &k.number, &k.reference, &k.total)
			late = append(late, k)
			return err
		})
	}); err != nil {
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

// sweep deletes texts that are older than they are kept.
func (s *Store) sweep(ctx context.Context) error {
	return db.Prune(ctx, s.DB, sweepTexts, sweepSet, s.Clock.Ago(s.Keep))
}
