package book

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
)

// A rowReader reads the rows of payments for their jobs. Concurrent reads share one statement, because jobs
// read the row of every open payment at least once.
type rowReader = groupcommit.Committer[string, *Payment]

func newRowReader(d *db.DB) *rowReader {
	return groupcommit.New(groupcommit.Options{Systemic: Systemic}, func(ctx context.Context, ids []string) ([]groupcommit.Verdict[*Payment], error) {
		rows := make(map[string]*Payment, len(ids))
		err := d.Read(ctx, func(tx *db.Tx) error {
			return tx.Query(paymentsByID, []any{ids}, func(r *db.Row) error {
				pay, err := scanPayment(r)
				rows[pay.ID] = &pay
				return err
			})
		})
		verdicts := make([]groupcommit.Verdict[*Payment], len(ids))
		for i, id := range ids {
			verdicts[i].Value = rows[id]
		}
		return verdicts, err
	})
}
