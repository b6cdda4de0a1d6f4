package book

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// MaxStuck is the maximum number of payments in the list of Stuck.
const MaxStuck = 1000

const stuckPayments = `SELECT ` + paymentColumns + ` FROM payments WHERE escalated_at IS NOT NULL ORDER BY escalated_at, id LIMIT $1`

// Stuck lists the open payments that need an operator, oldest first: their outcome is unknown, or they have been open
// for too long.
func (rd *Reader) Stuck(ctx context.Context) ([]Payment, error) {
	return rd.list(ctx, stuckPayments, MaxStuck)
}

// StuckFilter narrows the payments that need attention.
type StuckFilter struct {
	Owner     string // id of the owner; empty: any owner
	Ownerless bool   // only payments without an owner
	After     string // StuckCursor of the last payment on the previous page; empty: the first page
	Limit     int
}

// ofOwner selects payments of an owner ($1), or payments without an owner ($2 = 1).
const ofOwner = ` AND ($1 = '' OR EXISTS (SELECT 1 FROM payment_owners o WHERE o.payment = payments.id AND o.person = $1))
	AND ($2 = 0 OR NOT EXISTS (SELECT 1 FROM payment_owners o WHERE o.payment = payments.id))`

const stuckPage = `SELECT ` + paymentColumns + ` FROM payments WHERE escalated_at IS NOT NULL AND (escalated_at > $3 OR escalated_at = $3 AND id > $4)` + ofOwner + `
	ORDER BY escalated_at, id LIMIT $5`

// StuckCursor returns the cursor of a payment, from which the next StuckPage continues.
func StuckCursor(p Payment) string {
	return strconv.FormatInt(p.EscalatedAt.UnixMicro(), 10) + "." + p.ID
}

// StuckPage lists the payments of Stuck in pages, optionally for one owner.
func (rd *Reader) StuckPage(ctx context.Context, f StuckFilter) ([]Payment, error) {
	after, id, _ := strings.Cut(f.After, ".")
	at, err := strconv.ParseInt(cmp.Or(after, "0"), 10, 64)
	if err != nil {
		return nil, problem.Field("after", "must be a value from a link of the list")
	}
	return rd.list(ctx, stuckPage, f.Owner, asNumber(f.Ownerless), at, id, f.Limit)
}

func asNumber(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

const countStuck = `SELECT count(*), CAST(COALESCE(sum(amount), 0) AS BIGINT) FROM (SELECT amount FROM payments WHERE escalated_at IS NOT NULL` + ofOwner + ` LIMIT $3) AS few`

// CountStuck returns the number of payments of StuckPage and the sum of their amounts. most is the maximum
// count.
func (rd *Reader) CountStuck(ctx context.Context, f StuckFilter, most int) (n int, sum money.Pesewas, err error) {
	_, err = rd.db.ReadOne(ctx, countStuck, []any{f.Owner, asNumber(f.Ownerless), int64(most)}, &n, &sum)
	return n, sum, err
}

// Doubt is an open payment that needs an operator.
type Doubt struct {
	ID, Tenant, Rail string
	Kind             Kind
	Amount           money.Pesewas
	Since            time.Time
}

const doubts = `SELECT id, tenant, rail, kind, amount, escalated_at FROM payments WHERE escalated_at IS NOT NULL ORDER BY escalated_at, id LIMIT $1`

// Doubts returns a few columns of the payments of Stuck, up to most.
func (rd *Reader) Doubts(ctx context.Context, most int) ([]Doubt, error) {
	return db.ReadAll(db.Bulk(ctx, ""), rd.db, doubts, []any{int64(most)}, func(d *Doubt, r *db.Row) error {
		return r.Scan(&d.ID, &d.Tenant, &d.Rail, &d.Kind, &d.Amount, &d.Since)
	})
}

// ByIDs returns the existing payments with these ids, of any tenant, by id.
func (rd *Reader) ByIDs(ctx context.Context, ids []string) (map[string]Payment, error) {
	list, err := rd.list(ctx, paymentsByID, ids)
	all := make(map[string]Payment, len(list))
	for _, pay := range list {
		all[pay.ID] = pay
	}
	return all, err
}

// The final statuses are counted by the index alone. batch_status may be older than the row if a node of the version before wrote it.
const (
	openOfBatch = `SELECT count(*) FROM (SELECT 1 FROM payments WHERE batch = $1 AND batch_status IN ('', 'pending') AND batch <> ''
	AND status = 'pending' AND escalated_at IS NULL LIMIT $2) AS p`

	statusesOfBatch = `SELECT batch_status, count(*) FROM payments WHERE batch = $1 AND batch_status IN ('success', 'failed') AND batch <> '' GROUP BY batch_status
UNION ALL SELECT status, count(*) FROM payments WHERE batch = $1 AND batch_status IN ('', 'pending') AND batch <> '' GROUP BY status`
)

// OpenOfBatch counts the open payouts of a batch, up to most. It excludes payouts that need an operator.
func (rd *Reader) OpenOfBatch(ctx context.Context, batch string, most int) (n int, err error) {
	_, err = rd.db.ReadOne(ctx, openOfBatch, []any{batch, int64(most)}, &n)
	return n, err
}

// StatusesOfBatch returns the number of payouts of a batch in each status.
func (rd *Reader) StatusesOfBatch(ctx context.Context, batch string) (n map[Status]int, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		n = map[Status]int{}
		return tx.Query(statusesOfBatch, []any{batch}, func(r *db.Row) error {
			var status Status
			var count int
			err := r.Scan(&status, &count)
			n[status] += count
			return err
		})
	})
	return n, err
}

const findAny = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $1 UNION ALL ` + paymentByProviderReference

// Find returns a payment of any tenant by its id or the ProviderReference of any attempt, with or without hyphens.
func (rd *Reader) Find(ctx context.Context, id string) (Payment, error) {
	if parsed, err := uuid.Parse(id); err == nil {
		id = parsed.String()
	}
	found, err := rd.list(ctx, findAny, id)
	if err != nil {
		return Payment{}, err
	}
	if len(found) == 0 {
		return Payment{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	return found[0], nil
}

const (
	lookupID = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $4 AND tenant || '' = $1 AND kind || '' IN ($2, $3)`

	lookupProviderReference = `SELECT ` + paymentColumns + ` FROM payments WHERE provider_reference = $4 AND tenant || '' = $1 AND kind || '' IN ($2, $3)`

	lookupReference = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind IN ($2, $3) AND reference = $4`
)

// Lookup returns a tenant's payment by its id, Reference or ProviderReference. A payment of the kind first takes
// precedence over one of the kind second.
func (rd *Reader) Lookup(ctx context.Context, tenantID, id string, first, second Kind) (Payment, bool, error) {
	var found []Payment
	ours := strings.ToLower(id) // a UUID may be written in capitals; a Reference is case-sensitive
	err := rd.db.Read(ctx, func(tx *db.Tx) error {
		found = nil
		args := []any{tenantID, first, second, ours}
		return tx.Gather(
			db.Query{SQL: lookupID, Args: args, Each: appendPayment(&found)},
			db.Query{SQL: lookupProviderReference, Args: args, Each: appendPayment(&found)},
			db.Query{SQL: lookupReference, Args: []any{tenantID, first, second, id}, Each: appendPayment(&found)},
		)
	})
	if err != nil || len(found) == 0 {
		return Payment{}, false, err
	}
	best := found[0]
	for _, pay := range found {
		byOurs := pay.ID == ours || pay.ProviderReference == ours
		if !byOurs && best.ID != ours && best.ProviderReference != ours && pay.Kind == first {
			best = pay
			break
		}
	}
	return best, true, nil
}

// Collection returns the collection of a tenant with this id, ProviderReference or client's reference. It returns
// an error if the text matches two collections.
func (rd *Reader) Collection(ctx context.Context, tenant, id string) (pay Payment, found bool, err error) {
	var list []Payment
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		args := []any{tenant, KindCollection, KindCollection, strings.ToLower(id)}
		return tx.Gather(
			db.Query{SQL: lookupID, Args: args, Each: appendPayment(&list)},
			db.Query{SQL: lookupProviderReference, Args: args, Each: appendPayment(&list)},
			db.Query{SQL: lookupReference, Args: []any{tenant, KindCollection, KindCollection, id}, Each: appendPayment(&list)},
		)
	})
	for _, one := range list {
		if found && one.ID != pay.ID {
			return Payment{}, false, problem.Field("transaction_id", "names two collections: give the ext_transaction_id of one")
		}
		pay, found = one, true
	}
	return pay, found, err
}

const newestPayment = `SELECT COALESCE(max(id), '') FROM payments`

// Newest returns the acceptance time of the newest payment, by the clock of the node that accepted it. It is zero if
// there is no payment.
func Newest(ctx context.Context, d *db.DB) (at time.Time, err error) {
	var id string
	_, err = d.ReadOne(ctx, newestPayment, nil, &id)
	if made, bad := uuid.Parse(id); bad == nil && made.Version() == 7 {
		at = time.Unix(made.Time().UnixTime()).UTC()
	}
	return at, err
}
