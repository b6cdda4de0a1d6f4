package messaging

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/lane"
)

// earlyReceipt is a receipt, stored only while no part is known that it may mean.
type earlyReceipt struct {
	UpstreamID string
	ID         string
	Recipient  string
	State      string
	Code       string
	ReceivedAt time.Time
	stored     bool // it has a row
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
	earlyReceipts = `SELECT ` + earlyFields + ` FROM early_receipts e WHERE e.upstream_id IN (SELECT value FROM texts($1)) ORDER BY e.received_at + 0`
	keepEarly     = `INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at)
		SELECT upstream_id, id, recipient, state, code, received_at FROM rows($1) AS r WHERE true ON CONFLICT (upstream_id, id) DO NOTHING`
	// An id of ours says by itself which is meant. Ids grow with time: their range is a part of the look-up
	// where many receipts have no upstream_id, and id || '' keeps the set from being one.
	dropEarly = `DELETE FROM early_receipts WHERE upstream_id IN (SELECT value FROM texts($1))
		AND id BETWEEN $3 AND $4 AND id || '' IN (SELECT value FROM texts($2))`
)

// openPart is a part of a result that has no row yet.
type openPart struct {
	of   *result
	part int
}

// earlyQuery applies the receipts that were quicker than the answers to the parts of one transaction, by
// their ids, and notes which it used. One that came twice is used up with the first: what is kept would
// be taken for the receipt of another message to that number, whose answer was lost.
func earlyQuery(byID map[string][]openPart, used *[]earlyReceipt) db.Query {
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
			case !p.may(e):
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

// earlyBird is when this node last kept a receipt that was quicker than the answer to its submit. Receipts come
// to the node that submits, so that without one nothing need be looked for; what another node has kept, the
// pass over early receipts finds.
type earlyBird struct {
	at   atomic.Int64
	sent atomic.Int64 // the latest time of a submit
}

func (e *earlyBird) note(now time.Time) { e.at.Store(db.Micros(now)) }

func (e *earlyBird) submitted(at time.Time) {
	for now := db.Micros(at); ; {
		last := e.sent.Load()
		if last >= now || e.sent.CompareAndSwap(last, now) {
			return
		}
	}
}

// since gives the time under which a receipt is kept that comes now. It is after all that was submitted, also where a
// clock was set back since: only by these times is it known later what it may be of.
func (e *earlyBird) since(at time.Time) time.Time {
	return db.FromMicros(max(db.Micros(at), e.sent.Load()))
}

// lately says that one may still wait for its part.
func (e *earlyBird) lately(now time.Time) bool {
	at := e.at.Load()
	return at > 0 && now.Sub(db.FromMicros(at)) < earlyPassOver
}

func forgetEarly(tx *db.Tx, used []earlyReceipt) {
	if len(used) == 0 {
		return
	}
	upstream, ids := make([]string, len(used)), make([]string, len(used))
	for i, e := range used {
		upstream[i], ids[i] = e.UpstreamID, e.ID
	}
	tx.Defer(dropEarly, -1, upstream, ids, slices.Min(ids), slices.Max(ids))
}

// The pass over receipts that nobody knew when they came. A step and a receipt that are committed at once
// miss each other; one of later passes finds both, also where the receipt repeats one that was not missed.
const (
	earlyPassEvery = 5 * time.Second
	earlyPassOver  = 10 * time.Minute // age of the receipts that a frequent pass looks at
	earlyAtOnce    = 500
	// Those that match knows, and no others: one that it leaves would be found again and again, before the rest.
	knownEarly = `SELECT ` + earlyFields + ` FROM early_receipts e WHERE e.received_at > $1 AND e.upstream_id <> ''
		AND (EXISTS (SELECT 1 FROM messages m WHERE m.upstream_id = e.upstream_id AND e.recipient IN ('', m.recipient)
				AND m.submitted_at <= e.received_at + $4 AND (m.open > 0 OR e.recipient <> '' AND m.submitted_at > $3))
			OR EXISTS (SELECT 1 FROM parts p WHERE p.upstream_id = e.upstream_id AND e.recipient IN ('', p.recipient)
				AND p.submitted_at <= e.received_at + $4 AND (p.state = 'open' OR e.recipient <> '' AND p.submitted_at > $3)))
		ORDER BY e.received_at LIMIT $2`
)

// passEarly takes early receipts whose part is known by now.
func (m *Messaging) passEarly(ctx context.Context) error {
	return m.takeEarly(ctx, m.clock.Now().Add(-earlyPassOver))
}

func (m *Messaging) takeEarly(ctx context.Context, since time.Time) error {
	for {
		var list []earlyReceipt
		err := m.db.Read(ctx, func(tx *db.Tx) error {
			list = nil
			return tx.Query(knownEarly, []any{since, earlyAtOnce, m.clock.Now().Add(-repeatWindow), clockSkew.Microseconds()}, func(r *db.Row) error {
				var e earlyReceipt
				err := e.scan(r)
				list = append(list, e)
				return err
			})
		})
		var verdicts []lane.Verdict[took]
		if err == nil && len(list) > 0 {
			verdicts, err = m.takeReceipts(ctx, list)
		}
		taken := slices.ContainsFunc(verdicts, func(v lane.Verdict[took]) bool { return v.Value != tookEarly })
		if err != nil || !taken || len(list) < earlyAtOnce {
			return err
		}
	}
}
