package contacts

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
)

const contactsAfter = `SELECT id, msisdn FROM contacts WHERE id > $1 ORDER BY id LIMIT $2`

// erasureWindow is how many contacts one statement reads while it searches all tenants for a number.
const erasureWindow = 5_000

// OfNumber calls each for every contact with a number, of all tenants. It reads all contacts, a limited
// number at a time.
func (s *Store) OfNumber(ctx context.Context, number msisdn.MSISDN, each func(Contact) error) error {
	return db.WalkNaming(ctx, s.db, contactsAfter, erasureWindow, number.International(), func(ids []string) error {
		for _, id := range ids {
			var c Contact
			err := s.db.Read(ctx, func(tx *db.Tx) error { return tx.Query(selectContact, []any{id}, c.scan) })
			if err == nil && c.ID != "" {
				err = each(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
