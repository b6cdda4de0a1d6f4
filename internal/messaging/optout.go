package messaging

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
)

const insertOptOut = `INSERT INTO opt_outs (tenant, msisdn, reason, created_at) VALUES ($1, $2, $3, $4)
	ON CONFLICT (tenant, msisdn) DO NOTHING`

// OptOut puts numbers on the tenant's list of those that are never sent a campaign. One-time passwords
// reach them still: they asked for those themselves.
func (m *Messaging) OptOut(ctx context.Context, tenant, reason string, numbers ...msisdn.MSISDN) error {
	return m.db.Write(ctx, func(tx *db.Tx) error {
		for _, n := range numbers {
			tx.Defer(insertOptOut, -1, tenant, string(n), cut(reason, maxDescription), m.clock.Now())
		}
		return nil
	})
}

const deleteOptOut = `DELETE FROM opt_outs WHERE tenant = $1 AND msisdn = $2`

// OptIn takes a number off the list and says whether it was on it.
func (m *Messaging) OptIn(ctx context.Context, tenant string, number msisdn.MSISDN) (bool, error) {
	var rows int64
	err := m.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		rows, err = tx.Exec(deleteOptOut, tenant, string(number))
		return err
	})
	return rows > 0, err
}

const findOptOuts = `SELECT o.msisdn FROM texts($2) JOIN opt_outs o ON o.tenant = $1 AND o.msisdn = texts.value`

// excludeOptOuts leaves out of a list who asked not to be written to.
func excludeOptOuts(tx *db.Tx, tenant string, list *recipientList) error {
	out := map[msisdn.MSISDN]bool{}
	for rest := list.numbers; len(rest) > 0; {
		n := min(len(rest), contactsAtOnce)
		numbers := make([]string, n)
		for i, number := range rest[:n] {
			numbers[i] = string(number)
		}
		if err := tx.Query(findOptOuts, []any{tenant, numbers}, func(r *db.Row) error {
			var number string
			if err := r.Scan(&number); err != nil {
				return err
			}
			out[msisdn.MSISDN(number)] = true
			return nil
		}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if len(out) == 0 {
		return nil
	}
	kept := list.numbers[:0]
	for _, n := range list.numbers {
		if !out[n] {
			kept = append(kept, n)
		}
	}
	list.excluded, list.numbers = len(list.numbers)-len(kept), kept
	return nil
}
