package inbox

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
)

// erasureWindow is how many texts one statement looks at.
const erasureWindow = 5_000

const (
	sendersAfter = `SELECT id, sender FROM inbox_texts WHERE id > $1 ORDER BY id LIMIT $2`
	eraseText    = `UPDATE inbox_texts SET sender = $2, message = '', digest = '', answer = CASE WHEN answer = 'due' THEN 'refused' ELSE answer END WHERE id = $1`
	eraseParts   = `DELETE FROM inbox_parts WHERE sender = $1`
)

// OfNumber passes each text from a number to each.
func (s *Store) OfNumber(ctx context.Context, number msisdn.MSISDN, each func(Text) error) error {
	return db.WalkNaming(ctx, s.DB, sendersAfter, erasureWindow, number.International(), func(ids []string) error {
		for _, id := range ids {
			var t Text
			err := s.DB.Read(ctx, func(tx *db.Tx) error { return tx.Query(textByID, []any{id}, t.scan) })
			if err == nil && t.ID != "" {
				err = each(t)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Erase takes the number and the words off a text in tx. The parts of a text that is not complete are deleted.
func Erase(tx *db.Tx, t Text, instead string) {
	tx.Defer(eraseText, -1, t.ID, instead)
	tx.Defer(eraseParts, -1, t.From)
}
