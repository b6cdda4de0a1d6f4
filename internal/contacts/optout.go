package contacts

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/usertext"
)

// maxReason is the maximum length of the reason of an opt-out, in characters. A longer reason is cut.
const maxReason = 500

// OptOut is a number to which the tenant may send no campaign.
type OptOut struct {
	MSISDN    msisdn.MSISDN
	Reason    string
	ByText    bool // the owner of the number sent STOP
	CreatedAt time.Time
}

const (
	insertOptOuts = `INSERT INTO opt_outs (tenant, msisdn, reason, created_at) SELECT $1, value, $3, $4 FROM texts($2)
	WHERE true ON CONFLICT (tenant, msisdn) DO NOTHING`
	deleteOptOut = `DELETE FROM opt_outs WHERE tenant = $1 AND msisdn = $2`
	listOptOuts  = `SELECT msisdn, reason, by_text, created_at FROM opt_outs WHERE tenant = $1 AND msisdn > $2 ORDER BY msisdn LIMIT $3`
	optOutsPage  = `SELECT msisdn, reason, by_text, created_at FROM opt_outs WHERE tenant = $1 ORDER BY created_at DESC, msisdn LIMIT $2 OFFSET $3`
	anyOptOut    = `SELECT 1 FROM opt_outs WHERE tenant = $1 LIMIT 1`
)

// OptOut adds numbers to the tenant's list of numbers that get no campaigns. Every node applies it within a second.
// One-time passwords are still sent, because the owners of the numbers requested them.
func (s *Store) OptOut(tx *db.Tx, tenant, reason string, numbers ...msisdn.MSISDN) {
	tx.AfterCommit(func() { s.optedOut.Forget(tenant) })
	for set := range slices.Chunk(numbers, atOnce) {
		texts := make([]string, len(set))
		for i, n := range set {
			texts[i] = string(n)
		}
		tx.Defer(insertOptOuts, -1, tenant, texts, usertext.Cut(reason, maxReason), s.clock.Now())
	}
}

// OptIn removes a number from the list and reports whether it was there.
func (s *Store) OptIn(tx *db.Tx, tenant string, number msisdn.MSISDN) (bool, error) {
	rows, err := tx.Exec(deleteOptOut, tenant, string(number))
	return rows > 0, err
}

const (
	stopByText  = `INSERT INTO opt_outs (tenant, msisdn, reason, created_at, by_text) VALUES ($1, $2, $3, $4, 1) ON CONFLICT (tenant, msisdn) DO NOTHING`
	startByText = `DELETE FROM opt_outs WHERE tenant = $1 AND msisdn = $2 AND by_text = 1`
)

// StopByText adds a number to the list because its owner sent a text. It reports whether the number is new there.
func (s *Store) StopByText(tx *db.Tx, tenant, reason string, number msisdn.MSISDN) (bool, error) {
	tx.AfterCommit(func() { s.optedOut.Forget(tenant) })
	rows, err := tx.Exec(stopByText, tenant, string(number), usertext.Cut(reason, maxReason), s.clock.Now())
	return rows > 0, err
}

// StartByText removes a number from the list because its owner sent a text, and reports whether it removed one. A number that a
// person added for another reason stays.
func (s *Store) StartByText(tx *db.Tx, tenant string, number msisdn.MSISDN) (bool, error) {
	rows, err := tx.Exec(startByText, tenant, string(number))
	return rows > 0, err
}

// OptOuts returns at most limit numbers of the list in ascending order, beginning after a number.
func (s *Store) OptOuts(ctx context.Context, tenant string, after msisdn.MSISDN, limit int) ([]OptOut, error) {
	return s.readOptOuts(ctx, listOptOuts, tenant, after, limit)
}

// OptOutsPage gives a page of the list, the newest first, and whether there are more. Pages count from 1.
func (s *Store) OptOutsPage(ctx context.Context, tenant string, page, size int64) (list []OptOut, more bool, err error) {
	size, page = min(max(size, 1), maxContactPage), max(page, 1)
	list, err = s.readOptOuts(ctx, optOutsPage, tenant, size+1, (page-1)*size)
	if int64(len(list)) > size {
		return list[:size], true, err
	}
	return list, false, err
}

func (s *Store) readOptOuts(ctx context.Context, sql string, args ...any) ([]OptOut, error) {
	return db.ReadAll(ctx, s.db, sql, args, func(o *OptOut, r *db.Row) error { return r.Scan(&o.MSISDN, &o.Reason, &o.ByText, &o.CreatedAt) })
}

// HasOptOuts reports whether the tenant's list has any number, as of at most a second ago. Most tenants have none,
// and their sends skip the comparison.
func (s *Store) HasOptOuts(ctx context.Context, tenant string) (bool, error) {
	return s.optedOut.Get(ctx, tenant)
}

func (s *Store) loadOptOuts(ctx context.Context, tenant string) (found bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		var one int64
		found, err = tx.One(anyOptOut, []any{tenant}, &one)
		return err
	})
	return found, err
}

// findOptOuts searches each number separately. A join that was planned while the list was short would read the
// tenant's whole list for each number.
const findOptOuts = `SELECT value FROM texts($2) WHERE value = (SELECT o.msisdn FROM opt_outs o WHERE o.tenant = $1 AND o.msisdn = value)`

// OptedOut returns the numbers of a list that opted out.
func OptedOut(tx *db.Tx, tenant string, list []msisdn.MSISDN) (map[msisdn.MSISDN]bool, error) {
	return lookUp(tx, findOptOuts, []any{tenant}, list)
}

// WithoutOptOuts returns a list of distinct numbers without those that opted out, in the same order.
func WithoutOptOuts(tx *db.Tx, tenant string, list []msisdn.MSISDN) ([]msisdn.MSISDN, error) {
	out, err := lookUp(tx, findOptOuts, []any{tenant}, list)
	if err != nil || len(out) == 0 {
		return list, err
	}
	kept := make([]msisdn.MSISDN, 0, len(list)-len(out))
	for _, n := range list {
		if !out[n] {
			kept = append(kept, n)
		}
	}
	return kept, nil
}

// lookUp returns the numbers of a list that a query finds. The list is the query's last argument.
func lookUp(tx *db.Tx, query string, args []any, list []msisdn.MSISDN) (map[msisdn.MSISDN]bool, error) {
	there := map[msisdn.MSISDN]bool{}
	for set := range slices.Chunk(list, atOnce) {
		numbers := make([]string, len(set))
		for i, n := range set {
			numbers[i] = string(n)
		}
		if err := tx.Query(query, append(slices.Clone(args), numbers), func(r *db.Row) error {
			var number string
			err := r.Scan(&number)
			there[msisdn.MSISDN(number)] = true
			return err
		}); err != nil {
			return nil, err
		}
	}
	return there, nil
}
