package book

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
)

// A readLane reads the rows that runs of jobs go on from. Each open payment's row is
// read at least once more before it is settled: jobs that come together share one
// statement, which costs a fraction of one transaction each.
type readLane = groupcommit.Committer[string, *Payment]

func newReadLane(d *db.DB) *readLane {
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
