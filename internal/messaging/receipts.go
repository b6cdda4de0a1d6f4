package messaging

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/provider"
)

// earlyReceipt is a receipt for which no part is known yet.
type earlyReceipt struct {
	UpstreamID string
	ID         string
	Recipient  string
	State      string
	Code       string
	ReceivedAt time.Time
}

var earlyColumns = []db.Column[earlyReceipt]{
	{Name: "upstream_id", Text: func(e earlyReceipt) string { return e.UpstreamID }},
	{Name: "id", Text: func(e earlyReceipt) string { return e.ID }},
	{Name: "recipient", Text: func(e earlyReceipt) string { return e.Recipient }},
	{Name: "state", Text: func(e earlyReceipt) string { return e.State }},
	{Name: "code", Text: func(e earlyReceipt) string { return e.Code }},
	{Name: "received_at", Time: func(e earlyReceipt) time.Time { return e.ReceivedAt }},
}

// Receive stores an operator's receipt; it is committed when Receive returns, so that the operator may
// be told so. A receipt that says nothing final changes nothing; one that comes twice neither.
func (m *Messaging) Receive(ctx context.Context, r provider.Receipt) error {
	if r.State == provider.DeliveryPending {
		return nil
	}
	e := earlyReceipt{UpstreamID: r.UpstreamID, ID: uuid.Must(uuid.NewV7()).String(), Recipient: string(r.To), State: partStates[r.State], Code: r.Code, ReceivedAt: r.At}
	_, err := m.receipts.Do(ctx, "receipts", 3, e)
	return err
}

const (
	partsByID = `SELECT p.upstream_id, p.tenant, p.campaign, p.message FROM texts($1) JOIN parts p ON p.upstream_id = texts.value
		WHERE p.state = 'open' OR p.submitted_at > $2`
	partsOfMessages = `SELECT p.upstream_id, p.tenant, p.campaign, p.message, p.part, p.recipient, p.state, p.submitted_at
		FROM rows($1) AS asked JOIN parts p ON p.tenant = asked.of_tenant AND p.campaign = asked.of_campaign AND p.message = asked.of_no
		ORDER BY p.tenant, p.campaign, p.message, p.part FOR UPDATE OF p`
	closeParts = `UPDATE parts SET state = r.to_state FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND message = r.of_no AND part = r.of_part AND state = 'open'`
	closeMessages = `UPDATE messages SET status = CASE WHEN r.to_open = 0 AND status IN ('submitted', 'unknown') THEN r.to_status ELSE status END,
		open = r.to_open, delivered_at = CASE WHEN r.to_open = 0 AND r.to_status = 'delivered' THEN r.at ELSE delivered_at END,
		error = CASE WHEN r.why <> '' THEN r.why ELSE error END FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND no = r.of_no`
)

// repeatWindow is how long after its submit a closed part still takes the blame for a repeated receipt,
// so that it is not kept as an early one of a message to come.
const repeatWindow = 72 * time.Hour

// messageKey finds a message.
type messageKey struct {
	tenant, campaign string
	no               int64
}

var messageKeyColumns = []db.Column[messageKey]{
	{Name: "of_tenant", Text: func(k messageKey) string { return k.tenant }},
	{Name: "of_campaign", Text: func(k messageKey) string { return k.campaign }},
	{Name: "of_no", Int: func(k messageKey) int64 { return k.no }},
}

// closing is the end of a message by its receipts.
type closing struct {
	messageKey
	open   int64
	status Status
	at     time.Time
	why    string
}

var closingColumns = []db.Column[closing]{
	{Name: "of_tenant", Text: func(c closing) string { return c.tenant }},
	{Name: "of_campaign", Text: func(c closing) string { return c.campaign }},
	{Name: "of_no", Int: func(c closing) int64 { return c.no }},
	{Name: "to_open", Int: func(c closing) int64 { return c.open }},
	{Name: "to_status", Text: func(c closing) string { return string(c.status) }},
	{Name: "at", Int: func(c closing) int64 { return db.Micros(c.at) }},
	{Name: "why", Text: func(c closing) string { return c.why }},
}

var closedPartColumns = []db.Column[*part]{
	{Name: "of_tenant", Text: func(p *part) string { return p.Tenant }},
	{Name: "of_campaign", Text: func(p *part) string { return p.Campaign }},
	{Name: "of_no", Int: func(p *part) int64 { return p.Message }},
	{Name: "of_part", Int: func(p *part) int64 { return p.Part }},
	{Name: "to_state", Text: func(p *part) string { return p.State }},
}

// takeReceipts commits a batch of receipts. It may run twice after a lost answer: a part that is closed
// stays closed.
func (m *Messaging) takeReceipts(ctx context.Context, batch []earlyReceipt) ([]lane.Verdict[struct{}], error) {
	err := m.db.WriteRecognising(ctx, func(*db.Tx) (bool, error) { return false, nil }, func(tx *db.Tx) error {
		return m.takeReceiptsIn(tx, batch)
	})
	return make([]lane.Verdict[struct{}], len(batch)), err
}

func (m *Messaging) takeReceiptsIn(tx *db.Tx, batch []earlyReceipt) error {
	parts, byMessage, err := m.lockParts(tx, batch)
	if err != nil {
		return err
	}
	var closed []*part
	var early []earlyReceipt
	touched := map[messageKey]earlyReceipt{}
	for _, e := range batch {
		p, known := match(parts[e.UpstreamID], e)
		if !known {
			early = append(early, e)
			continue
		}
		if p == nil {
			continue // said before
		}
		p.State = e.State
		closed = append(closed, p)
		touched[messageKey{p.Tenant, p.Campaign, p.Message}] = e
	}
	var ends []closing
	for key, e := range touched {
		c := closing{messageKey: key, at: e.ReceivedAt}
		var states []string
		for _, p := range byMessage[key] {
			states = append(states, p.State)
			if p.State == partOpen {
				c.open++
			}
		}
		c.status = worst(states...)
		if e.State != "delivered" {
			c.why = cut(e.Code, messageError)
		}
		ends = append(ends, c)
	}
	if len(closed) > 0 {
		tx.Defer(closeParts, int64(len(closed)), db.RowsOf(closedPartColumns, closed))
		tx.Defer(closeMessages, int64(len(ends)), db.RowsOf(closingColumns, ends))
	}
	db.Insert(tx, "early_receipts", earlyColumns, early)
	return nil
}

// lockParts finds the parts that the receipts may mean, with all parts of their messages.
func (m *Messaging) lockParts(tx *db.Tx, batch []earlyReceipt) (map[string][]*part, map[messageKey][]*part, error) {
	ids := make([]string, 0, len(batch))
	for _, e := range batch {
		ids = append(ids, e.UpstreamID)
	}
	seen := map[messageKey]bool{}
	var keys []messageKey
	err := tx.Query(partsByID, []any{ids, db.Micros(m.clock.Now().Add(-repeatWindow))}, func(r *db.Row) error {
		var id string
		var k messageKey
		if err := r.Scan(&id, &k.tenant, &k.campaign, &k.no); err != nil {
			return err
		}
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
		return nil
	})
	parts, byMessage := map[string][]*part{}, map[messageKey][]*part{}
	if err != nil || len(keys) == 0 {
		return parts, byMessage, err
	}
	err = tx.Query(partsOfMessages, []any{db.RowsOf(messageKeyColumns, keys)}, func(r *db.Row) error {
		var p part
		if err := r.Scan(&p.UpstreamID, &p.Tenant, &p.Campaign, &p.Message, &p.Part, &p.Recipient, &p.State, &p.SubmittedAt); err != nil {
			return err
		}
		key := messageKey{p.Tenant, p.Campaign, p.Message}
		parts[p.UpstreamID], byMessage[key] = append(parts[p.UpstreamID], &p), append(byMessage[key], &p)
		return nil
	})
	return parts, byMessage, err
}

// match finds the part that a receipt means: the newest open one of that id and recipient. known with
// no part says that it repeats what is known.
func match(candidates []*part, e earlyReceipt) (newest *part, known bool) {
	for _, p := range candidates {
		if e.Recipient != "" && e.Recipient != p.Recipient {
			continue
		}
		known = true
		if p.State == partOpen && (newest == nil || p.SubmittedAt.After(newest.SubmittedAt)) {
			newest = p
		}
	}
	return newest, known
}
