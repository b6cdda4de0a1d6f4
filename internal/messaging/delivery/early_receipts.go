package delivery

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
)

// earlyReceipt is a receipt that is stored until it matches a part.
type earlyReceipt struct {
	UpstreamID string
	ID         string
	Recipient  string
	State      string
	Code       string
	ReceivedAt time.Time
	stored     bool // the receipt has a row
}

// fits reports whether the receipt may belong to the part. A stored receipt must not be older than the part's submit.
// A new receipt is later than every submit, even if the clock was set back.
func (p part) fits(e earlyReceipt) bool {
	return (e.Recipient == "" || e.Recipient == p.Recipient) && (!e.stored || !e.ReceivedAt.Before(p.SubmittedAt.Add(-clockSkew)))
}

const earlyFields = `e.upstream_id, e.id, e.recipient, e.state, e.code, e.received_at`

func (e *earlyReceipt) scan(r *db.Row) error {
	e.stored = true
	return r.Scan(&e.UpstreamID, &e.ID, &e.Recipient, &e.State, &e.Code, &e.ReceivedAt)
}

var earlyColumns = []db.Column[earlyReceipt]{
	{Name: "upstream_id", Text: func(e earlyReceipt) string { return e.UpstreamID }},
	{Name: "id", Text: func(e earlyReceipt) string { return e.ID }},
	{Name: "recipient", Text: func(e earlyReceipt) string { return e.Recipient }},
	{Name: "state", Text: func(e earlyReceipt) string { return e.State }},
	{Name: "code", Text: func(e earlyReceipt) string { return e.Code }},
	{Name: "received_at", Time: func(e earlyReceipt) time.Time { return e.ReceivedAt }},
}

const (
	// repeatWindow is how long after its submit a closed part is matched with repeated receipts. Within it, repeated
	// receipts are not stored as early ones.
	repeatWindow = 72 * time.Hour
	// clockSkew is the maximum difference between the clocks of two nodes. A stored receipt that is older than a
	// submit by more belongs to an earlier message, because the operator has reused its id.
	clockSkew     = time.Minute
	earlyPassOver = 10 * time.Minute // maximum age of the receipts that a frequent pass checks
)

const (
	earlyReceipts = `SELECT ` + earlyFields + ` FROM early_receipts e WHERE e.upstream_id IN (SELECT value FROM texts($1)) ORDER BY unindexed(e.id)`
	keepEarly     = `INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at)
		SELECT upstream_id, id, recipient, state, code, received_at FROM rows($1) AS r WHERE true ON CONFLICT (upstream_id, id) DO NOTHING`
	// Only our id identifies the row. Ids grow with time, so the range of ids narrows the search if many receipts
	// have no upstream_id. unindexed(id) keeps the planner from using the set instead of the range.
	dropEarly = `DELETE FROM early_receipts WHERE upstream_id IN (SELECT value FROM texts($1))
		AND id BETWEEN $3 AND $4 AND unindexed(id) IN (SELECT value FROM texts($2))`
)

// openPart identifies a part of a result. The part has no row yet.
type openPart struct {
	of   *result
	part int
}

// earlyReceiptsQuery returns the query that applies early receipts to the parts of a transaction by their ids. It
// adds the applied receipts to used. It also adds repeated receipts to used. Otherwise a repeated receipt could
// later match another message to the same number whose response was lost.
func earlyReceiptsQuery(byID map[string][]openPart, used *[]earlyReceipt) db.Query {
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	return db.Query{SQL: earlyReceipts, Args: []any{ids}, Each: func(r *db.Row) error {
		var e earlyReceipt
		if err := e.scan(r); err != nil {
			return err
		}
		repeats := false
		for _, candidate := range byID[e.UpstreamID] {
			p := &candidate.of.parts[candidate.part]
			switch {
			case !p.fits(e):
			case p.State == partOpen:
				candidate.of.receive(p, e)
				*used = append(*used, e)
				return nil
			default:
				repeats = e.Recipient != ""
			}
		}
		if repeats {
			*used = append(*used, e)
		}
		return nil
	}}
}

// receive applies a receipt to a message whose parts are all in memory.
func (r *result) receive(p *part, e earlyReceipt) {
	p.State = e.State
	r.message.Open--
	if e.State != string(StatusDelivered) && e.Code != "" {
		r.message.Error = e.Code
	}
	if r.message.Open > 0 {
		return
	}
	states := make([]string, len(r.parts))
	for i := range r.parts {
		states[i] = r.parts[i].State
	}
	r.message.Status = worst(states...)
	if r.message.Status == StatusDelivered {
		r.message.DeliveredAt = e.ReceivedAt
	}
}

// earlyReceiptTimes has the times at which this node last stored an early receipt and last submitted a message.
// Receipts arrive at the node that submits. If that node has stored none recently, steps need not look for one.
// matchRecentReceipts handles receipts that another node stored.
type earlyReceiptTimes struct {
	keptAt      atomic.Int64
	submittedAt atomic.Int64 // time of the latest submit
}

func (e *earlyReceiptTimes) kept(now time.Time) { e.keptAt.Store(db.Micros(now)) }

func (e *earlyReceiptTimes) submitted(at time.Time) {
	for now := db.Micros(at); ; {
		last := e.submittedAt.Load()
		if last >= now || e.submittedAt.CompareAndSwap(last, now) {
			return
		}
	}
}

// receivedAt returns the time that is stored with a receipt that arrives at a time. It is never before a submit, even
// if the clock was set back. These times later decide to which message the receipt may belong.
func (e *earlyReceiptTimes) receivedAt(at time.Time) time.Time {
	return db.FromMicros(max(db.Micros(at), e.submittedAt.Load()))
}

// mayWait reports whether this node stored an early receipt recently, which may still wait for its part.
func (e *earlyReceiptTimes) mayWait(now time.Time) bool {
	at := e.keptAt.Load()
	return at > 0 && now.Sub(db.FromMicros(at)) < earlyPassOver
}

func dropEarlyReceipts(tx *db.Tx, used []earlyReceipt) {
	if len(used) == 0 {
		return
	}
	upstream, ids := make([]string, len(used)), make([]string, len(used))
	for i, e := range used {
		upstream[i], ids[i] = e.UpstreamID, e.ID
	}
	tx.Defer(dropEarly, -1, upstream, ids, slices.Min(ids), slices.Max(ids))
}
