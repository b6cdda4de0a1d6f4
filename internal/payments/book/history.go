package book

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/problem"
)

// Filter selects payments of one tenant's history.
type Filter struct {
	Kind      Kind
	Status    string    // a public status (Payment.PublicStatus); empty: all
	Reference string    // exact; empty: all
	From, To  time.Time // UTC days, both inclusive; zero: open
	Page      int       // from 1; 0 means 1
	Size      int       // 1 to MaxPageSize; 0 means DefaultPageSize
	Narrowing           // for Narrowed and Export alone
}

// Page sizes of a history.
const (
	DefaultPageSize = 15
	MaxPageSize     = 100
)

// Page is one page of a history, newest first.
type Page struct {
	Rows     []Payment
	Total    int64
	Page     int
	Size     int
	LastPage int64 // at least 1
	From, To int64 // positions of the first and last row, from 1; 0 when there are none
}

// publicStatuses are the accepted values of Filter.Status.
var publicStatuses = []string{"success", "submitted", "pending", "failed", "invalid", "declined"}

// check sets the defaults. It returns an error that names the invalid fields.
func (f *Filter) check() error {
	if f.Page == 0 {
		f.Page = 1
	}
	if f.Size == 0 {
		f.Size = DefaultPageSize
	}
	var bad problem.Fields
	if f.Status != "" && !slices.Contains(publicStatuses, f.Status) {
		bad.Add("status", "must be one of "+strings.Join(publicStatuses, ", "))
	}
	if f.Page < 1 {
		bad.Add("page", "must be at least 1")
	}
	if f.Size < 1 || f.Size > MaxPageSize {
		bad.Add("page_size", "must be between 1 and 100")
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
		bad.Add("to", "must not be before from")
	}
	f.Narrowing.check(&bad)
	return bad.Err()
}

// History returns one page of a tenant's payments of one kind, with the exact total. Every page costs the same at any
// size of the history.
func (rd *Reader) History(ctx context.Context, tenant string, f Filter) (Page, error) {
	if err := f.check(); err != nil {
		return Page{}, err
	}
	page := Page{Page: f.Page, Size: f.Size, LastPage: 1}
	err := rd.db.ReadSnapshot(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if f.Reference != "" {
			page.Rows, page.Total, err = byReference(tx, tenant, f)
			return err
		}
		page.Rows, page.Total, err = rd.page(tx, tenant, f)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	if page.Total > 0 {
		page.LastPage = (page.Total + int64(f.Size) - 1) / int64(f.Size)
	}
	if n := int64(len(page.Rows)); n > 0 {
		page.From = f.offset() + 1
		page.To = f.offset() + n
	}
	return page, nil
}

// offset returns the number of newer payments that precede the page.
func (f Filter) offset() int64 {
	if int64(f.Page-1) > math.MaxInt64/MaxPageSize {
		return math.MaxInt64
	}
	return int64(f.Page-1) * int64(f.Size)
}

const historyByReference = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = $2 AND reference = $3`

// byReference returns the payment with the reference, and the number of matches, which is 0 or 1.
func byReference(tx *db.Tx, tenant string, f Filter) ([]Payment, int64, error) {
	var rows []Payment
	err := tx.Query(historyByReference, []any{tenant, f.Kind, f.Reference}, appendPayment(&rows))
	if err != nil || len(rows) == 0 {
		return nil, 0, err
	}
	at := clock.Day(rows[0].CreatedAt)
	switch {
	case f.Status != "" && rows[0].PublicStatus() != f.Status:
		return nil, 0, nil
	case !f.From.IsZero() && at < clock.Day(f.From), !f.To.IsZero() && at > clock.Day(f.To):
		return nil, 0, nil
	case f.Page > 1:
		return nil, 1, nil
	}
	return rows, 1, nil
}

const (
	historyAt = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq IN (SELECT value FROM ints($3)) ORDER BY seq DESC`

	historyBetween = `SELECT ` + paymentColumns + ` FROM payments
WHERE tenant = $1 AND kind = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq DESC`
)

// page returns a page and the total number of matches.
func (rd *Reader) page(tx *db.Tx, tenant string, f Filter) ([]Payment, int64, error) {
	chosen := history.Filter{From: f.From, To: f.To, Offset: f.offset(), Size: int64(f.Size)}
	if f.Status != "" {
		status, ok := storedStatus(f.Kind, f.Status)
		if !ok {
			return nil, 0, nil
		}
		if chosen.Status.Finals = []string{string(status)}; status.Open() {
			chosen.Status = history.Status{Finals: finals, Rest: true}
		}
	}
	seqs, total, err := history.Read(tx, history.List{Tenant: tenant, Kind: string(f.Kind)}, rd.clock.Now()).Page(chosen)
	if err != nil || len(seqs) == 0 {
		return nil, total, err
	}
	var rows []Payment
	err = tx.Query(historyAt, []any{tenant, f.Kind, seqs}, appendPayment(&rows))
	return rows, total, err
}

// finals are the final statuses, which the history counters count.
var finals = []string{string(StatusSuccess), string(StatusFailed), string(StatusDeclined), string(StatusInvalid)}

// storedStatus returns the stored status of a public one. ok is false if no payment of the kind ever has it.
func storedStatus(k Kind, public string) (s Status, ok bool) {
	open := "pending"
	if k == KindTopUp || k == KindBundle {
		open = "submitted"
	}
	switch {
	case public == open:
		return StatusPending, true
	case public == "pending" || public == "submitted":
		return "", false
	}
	return Status(public), true
}

// Count returns the number of payments of all tenants and kinds.
func (rd *Reader) Count(ctx context.Context) (int64, error) {
	return db.Get(ctx, rd.db, func(tx *db.Tx) (int64, error) { return history.CountAll(tx) })
}

// Total returns the number of a tenant's payments of one kind.
func (rd *Reader) Total(ctx context.Context, tenant string, k Kind) (int64, error) {
	return db.Get(ctx, rd.db, func(tx *db.Tx) (int64, error) {
		return history.Total(tx, history.List{Tenant: tenant, Kind: string(k)})
	})
}

// exportRows is the number of rows that one statement of an export reads.
const exportRows = 1000

// Export calls each for every match of a filter, newest first. It ignores the filter's page and size. Each
// statement continues after the last key, so that payments accepted during the export do not shift rows.
func (rd *Reader) Export(ctx context.Context, tenant string, f Filter, each func(Payment) error) error {
	f.Page, f.Size = 1, MaxPageSize
	if err := f.check(); err != nil {
		return err
	}
	ctx = db.Bulk(ctx, tenant)
	for low, high := int64(0), int64(0); ; {
		var rows []Payment
		err := rd.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			if high == 0 {
				l := history.Read(tx, history.List{Tenant: tenant, Kind: string(f.Kind)}, rd.clock.Now())
				if low, high, err = l.Bounds(f.From, f.To); err != nil {
					return err
				}
			}
			rows = nil
			return tx.Query(historyBetween, []any{tenant, f.Kind, max(low, high-exportRows+1), high}, appendPayment(&rows))
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, pay := range rows {
			if f.Status != "" && pay.PublicStatus() != f.Status || f.Reference != "" && pay.Reference != f.Reference || !f.selects(pay) {
				continue
			}
			if err := each(pay); err != nil {
				return err
			}
		}
		if high = rows[len(rows)-1].Seq - 1; high < low || high == 0 {
			return nil
		}
	}
}
