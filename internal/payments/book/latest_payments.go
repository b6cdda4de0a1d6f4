package book

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Narrow chooses among the newest payments of all tenants. Empty members do not.
type Narrow struct {
	Tenant  string
	Kind    Kind
	Status  string    // a word as customers read it (Payment.Word)
	Channel string    // a network, BANK or WALLET
	Rail    string    // the provider of the current attempt
	From    time.Time // when it was accepted at the earliest
	To      time.Time // before which it was accepted
	Before  string    // id of the payment before which to go on
	Limit   int       // at most so many, 1 to MaxPageSize; 0 means DefaultPageSize
}

// The word of a payment (Payment.Word) in SQL.
const wordOf = `CASE WHEN status = 'waiting' THEN 'pending' WHEN status = 'pending' AND kind IN ('topup', 'bundle') THEN 'submitted' ELSE status END`

const latestInWindow = `SELECT ` + paymentColumns + ` FROM payments WHERE id < $1 AND id >= $2 AND ($3 = '' OR tenant || '' = $3)
AND ($4 = '' OR kind || '' = $4) AND ($5 = '' OR ` + wordOf + ` = $5) AND ($6 = '' OR channel = $6) AND ($7 = '' OR rail = $7)
ORDER BY id DESC LIMIT $8`

// Latest lists the newest payments of all tenants. One call looks at 10,000 payments at most, whatever the filter lets
// through: More then says where to search further. There is no total: that would count everything.
func (rd *Reader) Latest(ctx context.Context, n Narrow) (Found, error) {
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
		var end string
		var looked int
		if _, err := tx.One(windowEnd, []any{top, bottom, filterWindow}, &end, &looked); err != nil || looked == 0 {
			return err
		}
		found.Looked = looked
		args := []any{top, end, n.Tenant, string(n.Kind), n.Status, n.Channel, n.Rail, n.Limit}
		if err := tx.Query(latestInWindow, args, appendPayment(&found.Payments)); err != nil {
			return err
		}
		switch {
		case len(found.Payments) == n.Limit:
			found.More = found.Payments[n.Limit-1].ID
		case looked == filterWindow:
			found.More = end
		}
		return nil
	})
	return found, err
}

func (n Narrow) check() error {
	var bad problem.Fields
	if n.Status != "" && !slices.Contains(statusWords, n.Status) {
		bad.Add("status", "must be one of "+strings.Join(statusWords, ", "))
	}
	if n.Limit < 1 || n.Limit > MaxPageSize {
		bad.Add("limit", "must be between 1 and 100")
	}
	return bad.Err()
}

// MaxNewer bounds what Newer counts.
const MaxNewer = 100

const countNewer = `SELECT count(*) FROM (SELECT 1 FROM payments WHERE id > $1 LIMIT $2) AS newer`

// Newer says how many payments of all tenants were accepted after one, MaxNewer at most.
func (rd *Reader) Newer(ctx context.Context, id string) (n int64, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(countNewer, []any{id, MaxNewer}, &n)
		return err
	})
	return n, err
}
