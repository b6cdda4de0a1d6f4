package book

import (
	"context"
	"strconv"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/problem"
)

const (
	// narrowedSpan is the number of payments that one statement scans.
	narrowedSpan = 1_000
	// narrowedMost limits the payments that Narrowed scans.
	narrowedMost = 50 * narrowedSpan
)

const narrowedBetween = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq BETWEEN $3 AND $4 AND amount >= $5 AND ($6 = 0 OR amount <= $6) AND ($7 = '' OR status = $7)
AND ($8 = 0 OR status = 'pending') ORDER BY seq DESC`

// Narrowed lists the payments of a history that match its narrowing, newest first and at most f.Size. One call scans
// up to 50,000 payments, or for 50 ms and at least 1,000. before is the field More of the previous page.
func (rd *Reader) Narrowed(ctx context.Context, tenant string, f Filter, before string) (Found, error) {
	if err := f.check(); err != nil {
		return Found{}, err
	}
	last, err := strconv.ParseInt(before, 10, 64)
	if before != "" && (err != nil || last < 1) {
		return Found{}, problem.Field("before", "must be the number of a payment")
	}
	status, possible := storedStatus(f.Kind, f.Status)
	if f.Status == "" {
		possible = true
	}
	var found Found
	err = rd.db.ReadSnapshot(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		found = Found{}
		low, high, err := history.Read(tx, history.List{Tenant: tenant, Kind: string(f.Kind)}, rd.clock.Now()).Bounds(f.From, f.To)
		if err != nil || !possible {
			return err
		}
		if last > 0 {
			high = min(high, last-1)
		}
		begun := rd.clock.Elapsed()
		for high >= low && found.Scanned < narrowedMost && (found.Scanned == 0 || rd.clock.Elapsed()-begun < scanFor) {
			from := max(low, high-narrowedSpan+1)
			found.Scanned += int(high - from + 1)
			args := []any{tenant, f.Kind, from, high, f.Least, f.Most, status, boolean(f.Unknown)}
			if err := tx.Query(narrowedBetween, args, func(r *db.Row) error {
				p, err := scanPayment(r)
				if err == nil && f.selects(p) && len(found.Payments) <= f.Size {
					found.Payments = append(found.Payments, p)
				}
				return err
			}); err != nil {
				return err
			}
			if len(found.Payments) > f.Size {
				found.Payments = found.Payments[:f.Size]
				found.More = strconv.FormatInt(found.Payments[f.Size-1].Seq, 10)
				return nil
			}
			high = from - 1
		}
		if high >= low {
			found.More = strconv.FormatInt(high+1, 10)
		}
		return nil
	})
	return found, err
}
