package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/usertext"
)

// receiptBook matches receipts with messages. It stores receipts that arrive before their message has a row. It also
// ends messages that got neither a response nor a receipt.
type receiptBook struct {
	db        *db.DB
	ledger    *ledger.Ledger
	clock     *clock.Clock
	log       *slog.Logger
	metrics   metrics
	times     earlyReceiptTimes
	committer *groupcommit.Committer[earlyReceipt, receiptMatch]

	loggedAt time.Duration // on the monotonic clock: when unmatched receipts were last logged; 0: never
}

func newReceiptBook(d Deps, counters metrics) *receiptBook {
	b := &receiptBook{db: d.DB, ledger: d.Ledger, clock: d.Clock, log: d.Log, metrics: counters}
	b.committer = groupcommit.New(groupcommit.Options{MaxRows: 5_000, Systemic: systemic}, b.match)
	return b
}

// receive queues a receipt after earlier ones and returns at once. stored waits for the commit, after which the
// receipt may be acknowledged. A receipt without a final state, or a repeated one, changes nothing.
func (b *receiptBook) receive(ctx context.Context, r provider.Receipt) (stored func() error) {
	if r.State == provider.DeliveryPending {
		return func() error { return nil }
	}
	e := earlyReceipt{UpstreamID: r.UpstreamID, ID: uuid.Must(uuid.NewV7()).String(), Recipient: string(r.To), State: partStates[r.State], Code: usertext.Cut(r.Code, messageError), ReceivedAt: r.At}
	wait := b.committer.Queue(ctx, e.UpstreamID, 3, e)
	return func() error {
		took, err := wait()
		if err == nil {
			b.metrics.received(r, took)
		}
		return err
	}
}

// The statements have no ORDER BY that another index serves. A plan made while the table was empty would otherwise
// read all of that index.
const (
	// The row of a message with one segment is also the row of its part. The status submitted means that the message
	// waits for its receipt.
	singlesByID = `SELECT m.upstream_id, m.tenant, m.campaign, m.no, 1, m.recipient, CASE WHEN m.open > 0 THEN 'open' ELSE m.status END, m.submitted_at
		FROM messages m WHERE m.upstream_id IN (SELECT value FROM texts($1)) AND (m.open > 0 OR m.submitted_at > $2)`
	partFields = `p.upstream_id, p.tenant, p.campaign, p.message, p.part, p.recipient, p.state, p.submitted_at`
	partsByID  = `SELECT ` + partFields + ` FROM parts p
		WHERE p.upstream_id IN (SELECT value FROM texts($1)) AND (p.state = 'open' OR p.submitted_at > $2)`
	partsOfMessages = `SELECT ` + partFields + ` FROM rows($1) AS asked
		JOIN parts p ON p.tenant IN (asked.of_tenant) AND p.campaign = asked.of_campaign AND p.message = asked.of_no
		ORDER BY unindexed(p.tenant), p.campaign, p.message, p.part FOR UPDATE OF p`
	closeParts = `UPDATE parts SET state = r.to_state FROM rows($1) AS r
		WHERE parts.tenant IN (r.of_tenant) AND parts.campaign = r.of_campaign AND parts.message = r.of_no AND parts.part = r.of_part AND parts.state = 'open'`
	closeMessages = `UPDATE messages SET status = CASE WHEN r.to_open = 0 AND messages.status = 'submitted' THEN r.to_status ELSE messages.status END,
		open = r.to_open, delivered_at = CASE WHEN r.to_open = 0 AND r.to_status = 'delivered' THEN r.at ELSE messages.delivered_at END,
		error = CASE WHEN r.why <> '' THEN r.why ELSE messages.error END FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no AND messages.open > 0`
)

// messageKey identifies a message.
type messageKey struct {
	tenant, campaign string
	no               int64
}

func (k messageKey) compare(o messageKey) int {
	return cmp.Or(strings.Compare(k.tenant, o.tenant), strings.Compare(k.campaign, o.campaign), cmp.Compare(k.no, o.no))
}

var messageKeyColumns = []db.Column[messageKey]{
	{Name: "of_tenant", Text: func(k messageKey) string { return k.tenant }},
	{Name: "of_campaign", Text: func(k messageKey) string { return k.campaign }},
	{Name: "of_no", Int: func(k messageKey) int64 { return k.no }},
}

// messageEnd is the state of a message after receipts for its parts were applied.
type messageEnd struct {
	messageKey
	open   int64
	status Status
	at     time.Time
	why    string

	upstream string // id of an unknown message with one segment
}

var messageEndColumns = []db.Column[messageEnd]{
	{Name: "of_tenant", Text: func(c messageEnd) string { return c.tenant }},
	{Name: "of_campaign", Text: func(c messageEnd) string { return c.campaign }},
	{Name: "of_no", Int: func(c messageEnd) int64 { return c.no }},
	{Name: "to_open", Int: func(c messageEnd) int64 { return c.open }},
	{Name: "to_status", Text: func(c messageEnd) string { return string(c.status) }},
	{Name: "at", Int: func(c messageEnd) int64 { return db.Micros(c.at) }},
	{Name: "why", Text: func(c messageEnd) string { return c.why }},
}

var closedPartColumns = []db.Column[*part]{
	{Name: "of_tenant", Text: func(p *part) string { return p.Tenant }},
	{Name: "of_campaign", Text: func(p *part) string { return p.Campaign }},
	{Name: "of_no", Int: func(p *part) int64 { return p.Message }},
	{Name: "of_part", Int: func(p *part) int64 { return p.Part }},
	{Name: "to_state", Text: func(p *part) string { return p.State }},
}

// match matches a batch of receipts. It may run twice if the response to COMMIT is lost, because a closed part stays
// closed.
func (b *receiptBook) match(ctx context.Context, batch []earlyReceipt) ([]groupcommit.Verdict[receiptMatch], error) {
	var verdicts []groupcommit.Verdict[receiptMatch]
	err := b.db.WriteRecognising(ctx, func(*db.Tx) (bool, error) { return false, nil }, func(tx *db.Tx) error {
		var err error
		verdicts, err = b.matchIn(tx, batch)
		return err
	})
	return verdicts, err
}

// matchIn matches the receipts in the order in which they arrived. The first final state of a part counts. Stored
// receipts precede those of the batch.
func (b *receiptBook) matchIn(tx *db.Tx, batch []earlyReceipt) ([]groupcommit.Verdict[receiptMatch], error) {
	found, err := b.findParts(tx, batch)
	if err != nil {
		return nil, err
	}
	matches := make(map[string]receiptMatch, len(batch)) // by our id of the receipt
	var closed []*part
	var early, used []earlyReceipt
	ended := map[messageKey]*messageEnd{}
	for _, e := range inOrder(found.kept, batch) {
		p, known := partOf(found.parts[e.UpstreamID], e)
		switch {
		case !known:
			matches[e.ID] = matchedNone
			if !e.stored {
				e.ReceivedAt = b.times.receivedAt(e.ReceivedAt)
				early = append(early, e)
			}
			continue
		case p == nil:
			matches[e.ID] = matchedRepeat
		default:
			matches[e.ID] = matchedPart
			if p.State = e.State; !p.Single {
				closed = append(closed, p)
			}
			endOf(ended, p.key()).receive(e)
		}
		if e.stored {
			used = append(used, e)
		}
	}
	if ends := messageEnds(ended, found.byMessage); len(ends) > 0 {
		if len(closed) > 0 {
			tx.Defer(closeParts, int64(len(closed)), db.RowsOf(closedPartColumns, closed))
		}
		tx.Defer(closeMessages, int64(len(ends)), db.RowsOf(messageEndColumns, ends))
	}
	if len(early) > 0 {
		b.times.kept(b.clock.Now())
		tx.Defer(keepEarly, -1, db.RowsOf(earlyColumns, early))
	}
	dropEarlyReceipts(tx, used)
	verdicts := make([]groupcommit.Verdict[receiptMatch], len(batch))
	for i, e := range batch {
		verdicts[i].Value = matches[e.ID]
	}
	return verdicts, nil
}

// inOrder returns stored and new receipts in the order in which they arrived. Our ids grow with time, even if the
// clock was set back.
func inOrder(kept, batch []earlyReceipt) []earlyReceipt {
	all := slices.Clone(kept)
	var fresh []earlyReceipt
	for _, e := range batch {
		if e.stored {
			all = append(all, e)
		} else {
			fresh = append(fresh, e)
		}
	}
	slices.SortStableFunc(all, func(a, b earlyReceipt) int { return strings.Compare(a.ID, b.ID) })
	all = slices.CompactFunc(all, func(a, b earlyReceipt) bool { return a.ID == b.ID && a.UpstreamID == b.UpstreamID })
	return append(all, fresh...)
}

func endOf(ended map[messageKey]*messageEnd, key messageKey) *messageEnd {
	if ended[key] == nil {
		ended[key] = &messageEnd{messageKey: key}
	}
	return ended[key]
}

// receive applies a receipt for one of the message's parts.
func (c *messageEnd) receive(e earlyReceipt) {
	c.at = e.ReceivedAt
	if e.State != string(StatusDelivered) && e.Code != "" {
		c.why = e.Code
	}
}

// messageEnds computes the states of the messages whose parts got receipts.
func messageEnds(ended map[messageKey]*messageEnd, byMessage map[messageKey][]*part) []messageEnd {
	ends := make([]messageEnd, 0, len(ended))
	for key, c := range ended {
		var states []string
		for _, p := range byMessage[key] {
			states = append(states, p.State)
			if p.State == partOpen {
				c.open++
			}
		}
		c.status = worst(states...)
		ends = append(ends, *c)
	}
	slices.SortFunc(ends, func(a, b messageEnd) int { return a.messageKey.compare(b.messageKey) })
	return ends
}

// foundParts has the parts to which a batch of receipts may belong.
type foundParts struct {
	parts     map[string][]*part     // by the operator's id
	byMessage map[messageKey][]*part // all parts of their messages
	kept      []earlyReceipt         // stored receipts with the same ids, which have matched nothing so far
}

// findParts reads the parts to which the receipts may belong, and all other parts of their messages. It locks the
// parts of a message with several, because the message's state depends on all of them. A single part is guarded by
// its update.
func (b *receiptBook) findParts(tx *db.Tx, batch []earlyReceipt) (foundParts, error) {
	ids := make([]string, 0, len(batch))
	for _, e := range batch {
		if e.UpstreamID != "" {
			ids = append(ids, e.UpstreamID)
		}
	}
	found := foundParts{parts: map[string][]*part{}, byMessage: map[messageKey][]*part{}}
	add := func(p part) {
		found.byMessage[p.key()] = append(found.byMessage[p.key()], &p)
		if p.UpstreamID != "" {
			found.parts[p.UpstreamID] = append(found.parts[p.UpstreamID], &p)
		}
	}
	seen := map[messageKey]bool{}
	var several []messageKey
	args := []any{ids, b.clock.Now().Add(-repeatWindow)}
	err := tx.Gather(db.Query{SQL: singlesByID, Args: args, Each: func(r *db.Row) error {
		p := part{Single: true}
		err := p.scan(r)
		if !seen[p.key()] {
			seen[p.key()] = true
			add(p)
		}
		return err
	}}, db.Query{SQL: partsByID, Args: args, Each: func(r *db.Row) error {
		var p part
		err := p.scan(r)
		if !seen[p.key()] {
			seen[p.key()] = true
			several = append(several, p.key())
		}
		return err
	}}, db.Query{SQL: earlyReceipts, Args: []any{ids}, Each: func(r *db.Row) error {
		var e earlyReceipt
		err := e.scan(r)
		found.kept = append(found.kept, e)
		return err
	}})
	if err != nil || len(several) == 0 {
		return found, err
	}
	err = tx.Query(partsOfMessages, []any{db.RowsOf(messageKeyColumns, several)}, func(r *db.Row) error {
		var p part
		err := p.scan(r)
		add(p)
		return err
	})
	return found, err
}

func (p *part) scan(r *db.Row) error {
	return r.Scan(&p.UpstreamID, &p.Tenant, &p.Campaign, &p.Message, &p.Part, &p.Recipient, &p.State, &p.SubmittedAt)
}

func (p *part) key() messageKey { return messageKey{p.Tenant, p.Campaign, p.Message} }

// partOf returns the newest open part that fits the receipt. If known is set without a part, the receipt is a
// repeated one.
func partOf(candidates []*part, e earlyReceipt) (newest *part, known bool) {
	for _, p := range candidates {
		if !p.fits(e) {
			continue
		}
		if p.State != partOpen {
			known = known || e.Recipient != ""
		} else if newest == nil || p.SubmittedAt.After(newest.SubmittedAt) {
			newest = p
		}
	}
	return newest, known || newest != nil
}

// Receipts that matched no message are matched again later. If a step and a receipt are committed at the same time,
// neither sees the other. A later pass sees both.
const (
	earlyPassEvery = 5 * time.Second
	earlyAtOnce    = 500
	// The query must find exactly the receipts that match would match. Any other receipt would stay and be found
	// again in each pass, before the others.
	knownEarly = `SELECT ` + earlyFields + ` FROM early_receipts e WHERE e.received_at > $1 AND e.upstream_id <> ''
		AND (EXISTS (SELECT 1 FROM messages m WHERE m.upstream_id = e.upstream_id AND e.recipient IN ('', m.recipient)
				AND m.submitted_at <= e.received_at + $4 AND (m.open > 0 OR e.recipient <> '' AND m.submitted_at > $3))
			OR EXISTS (SELECT 1 FROM parts p WHERE p.upstream_id = e.upstream_id AND e.recipient IN ('', p.recipient)
				AND p.submitted_at <= e.received_at + $4 AND (p.state = 'open' OR e.recipient <> '' AND p.submitted_at > $3)))
		ORDER BY e.received_at, e.id LIMIT $2`
)

// matchRecentReceipts matches the early receipts of the last minutes whose part now has a row.
func (b *receiptBook) matchRecentReceipts(ctx context.Context) error {
	return b.matchEarlyReceipts(ctx, b.clock.Now().Add(-earlyPassOver))
}

func (b *receiptBook) matchEarlyReceipts(ctx context.Context, since time.Time) error {
	for {
		list, err := db.ReadAll(ctx, b.db, knownEarly, []any{since, earlyAtOnce, b.clock.Now().Add(-repeatWindow), clockSkew.Microseconds()}, (*earlyReceipt).scan)
		var verdicts []groupcommit.Verdict[receiptMatch]
		if err == nil && len(list) > 0 {
			verdicts, err = b.match(ctx, list)
		}
		taken := slices.ContainsFunc(verdicts, func(v groupcommit.Verdict[receiptMatch]) bool { return v.Value != matchedNone })
		if err != nil || !taken || len(list) < earlyAtOnce {
			return err
		}
	}
}
