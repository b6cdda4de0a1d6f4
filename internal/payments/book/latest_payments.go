package book

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// LatestFilter selects among the newest payments of all tenants. Empty fields match all.
type LatestFilter struct {
	Tenant  string
	Kind    Kind
	Status  string    // a public status (Payment.PublicStatus)
	Channel string    // a network, BANK or WALLET
	Rail    string    // provider of the current attempt
	From    time.Time // earliest time of acceptance, inclusive
	To      time.Time // latest time of acceptance, exclusive
	Before  string    // id; the list continues with older payments
	Limit   int       // maximum number of rows, 1 to MaxPageSize; 0 means DefaultPageSize
	Narrowing
}

// publicStatusSQL is Payment.PublicStatus in SQL.
const publicStatusSQL = `CASE WHEN status = 'waiting' THEN 'pending' WHEN status = 'pending' AND kind IN ('topup', 'bundle') THEN 'submitted' ELSE status END`

const latestInWindow = `SELECT ` + paymentColumns + ` FROM payments WHERE id < $1 AND id >= $2 AND ($3 = '' OR tenant || '' = $3)
AND ($4 = '' OR kind || '' = $4) AND ($5 = '' OR ` + publicStatusSQL + ` = $5) AND ($6 = '' OR channel = $6) AND ($7 = '' OR rail = $7)
AND amount >= $9 AND ($10 = 0 OR amount <= $10) AND ($11 = 0 OR status = 'pending' AND (escalated_at IS NOT NULL OR refusal <> '' OR class = $12))
ORDER BY id DESC LIMIT $8`

// Latest lists the newest payments of all tenants. One call scans at most 10,000 payments, or for 50 ms and at least
// 1,000. If there are more, More is the id from which the next call continues. The result has no total, because that would need a count of all rows.
func (rd *Reader) Latest(ctx context.Context, n LatestFilter) (Found, error) {
	if n.Limit == 0 {
		n.Limit = DefaultPageSize
	}
	if err := n.check(); err != nil {
		return Found{}, err
	}
	top, bottom := "g", "" // ids are hexadecimal
	if !n.To.IsZero() {
		top = bound(n.To)
	}
	if n.Before != "" {
		top = min(top, n.Before)
	}
	if !n.From.IsZero() {
		bottom = bound(n.From)
	}
	var found Found
	err := rd.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		found = Found{}
		begun := rd.clock.Elapsed()
		for top := top; found.Scanned < latestMost && (found.Scanned == 0 || rd.clock.Elapsed()-begun < scanFor); top = found.More {
			var end string
			var looked int
			if _, err := tx.One(windowEnd, []any{top, bottom, latestWindow}, &end, &looked); err != nil {
				return err
			}
			if found.More = ""; looked == 0 {
				return nil
			}
			found.Scanned += looked
			args := []any{top, end, n.Tenant, string(n.Kind), n.Status, n.Channel, n.Rail, n.Limit - len(found.Payments), n.Least, n.Most, boolean(n.Unknown), provider.Unknown.String()}
			if err := tx.Query(latestInWindow, args, appendPayment(&found.Payments)); err != nil {
				return err
			}
			if len(found.Payments) == n.Limit {
				found.More = found.Payments[n.Limit-1].ID
				return nil
			}
			if looked < latestWindow {
				return nil
			}
			found.More = end
		}
		return nil
	})
	return found, err
}

func (n LatestFilter) check() error {
	var bad problem.Fields
	if n.Status != "" && !slices.Contains(publicStatuses, n.Status) {
		bad.Add("status", "must be one of "+strings.Join(publicStatuses, ", "))
	}
	if n.Limit < 1 || n.Limit > MaxPageSize {
		bad.Add("limit", "must be between 1 and 100")
	}
	n.Narrowing.check(&bad)
	return bad.Err()
}

// MaxNewer is the upper limit of the count of Newer.
const MaxNewer = 100

const countNewer = `SELECT count(*) FROM (SELECT 1 FROM payments WHERE id > $1 LIMIT $2) AS newer`

// Newer counts the payments of all tenants that were accepted after the payment id, up to MaxNewer.
func (rd *Reader) Newer(ctx context.Context, id string) (n int64, err error) {
	_, err = rd.db.ReadOne(ctx, countNewer, []any{id, MaxNewer}, &n)
	return n, err
}
