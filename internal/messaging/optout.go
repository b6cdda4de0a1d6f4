package messaging

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/label"
	"github.com/makola/makola/internal/msisdn"
)

// maxReason is the most characters of the reason of an opt-out; a longer one is cut.
const maxReason = 500

const insertOptOut = `INSERT INTO opt_outs (tenant, msisdn, reason, created_at) VALUES ($1, $2, $3, $4)
	ON CONFLICT (tenant, msisdn) DO NOTHING`

// OptOut puts numbers on the tenant's list of those that are never sent a campaign; every node heeds it
// within a second. One-time passwords reach them still: they asked for those themselves.
func (m *Messaging) OptOut(tx *db.Tx, tenant, reason string, numbers ...msisdn.MSISDN) {
	tx.AfterCommit(func() { m.optOuts.Forget(tenant) })
	for _, n := range numbers {
		tx.Defer(insertOptOut, -1, tenant, string(n), label.Cut(reason, maxReason), m.clock.Now())
	}
}

const deleteOptOut = `DELETE FROM opt_outs WHERE tenant = $1 AND msisdn = $2`

// OptIn takes a number off the list and says whether it was on it.
func (m *Messaging) OptIn(tx *db.Tx, tenant string, number msisdn.MSISDN) (bool, error) {
	rows, err := tx.Exec(deleteOptOut, tenant, string(number))
	return rows > 0, err
}

const anyOptOut = `SELECT 1 FROM opt_outs WHERE tenant = $1 LIMIT 1`

// loadOptOuts says whether the tenant has a list at all: most have none, and no question for each send.
func (m *Messaging) loadOptOuts(ctx context.Context, tenant string) (found bool, err error) {
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		var one int64
		found, err = tx.One(anyOptOut, []any{tenant}, &one)
		return err
	})
	return found, err
}

// Each number is looked for by itself: where few had opted out when the plan was made, a join reads the tenant's
// whole list, and once for each number.
const findOptOuts = `SELECT value FROM texts($2) WHERE value = (SELECT o.msisdn FROM opt_outs o WHERE o.tenant = $1 AND o.msisdn = value)`

// optedOut finds who of a list asked not to be written to.
func optedOut(tx *db.Tx, tenant string, list []msisdn.MSISDN) (map[msisdn.MSISDN]bool, error) {
	out := map[msisdn.MSISDN]bool{}
	for rest := list; len(rest) > 0; {
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
			return nil, err
		}
		rest = rest[n:]
	}
	return out, nil
}

// without gives a list without some of its numbers.
func without(list []msisdn.MSISDN, out map[msisdn.MSISDN]bool) []msisdn.MSISDN {
	if len(out) == 0 {
		return list
	}
	kept := make([]msisdn.MSISDN, 0, len(list)-len(out))
	for _, n := range list {
		if !out[n] {
			kept = append(kept, n)
		}
	}
	return kept
}

const listOptOuts = `SELECT msisdn, reason, created_at FROM opt_outs WHERE tenant = $1 AND msisdn > $2 ORDER BY msisdn LIMIT $3`

// OptedOut is a number that the tenant may not send campaigns to.
type OptedOut struct {
	MSISDN    msisdn.MSISDN
	Reason    string
	CreatedAt time.Time
}

// OptOuts gives at most limit numbers of the list in their order, after the number after.
func (m *Messaging) OptOuts(ctx context.Context, tenant string, after msisdn.MSISDN, limit int) ([]OptedOut, error) {
	var all []OptedOut
	err := m.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.Query(listOptOuts, []any{tenant, after, limit}, func(r *db.Row) error {
			var o OptedOut
			err := r.Scan(&o.MSISDN, &o.Reason, &o.CreatedAt)
			all = append(all, o)
			return err
		})
	})
	return all, err
}
