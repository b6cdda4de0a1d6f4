package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

const (
	receiptWindow = 48 * time.Hour
	// unmatchedMatchAfter is the minimum age of a receipt with an unknown id before it may match an unknown message.
	// Until then, the receipt's own message may still get its row.
	unmatchedMatchAfter = 2 * time.Minute
	sweepAtOnce         = 500
)

const (
	unknownMessages = `SELECT u.tenant, u.campaign, u.message, c.mode, c.credits FROM unsure u
		JOIN campaigns c ON c.tenant = u.tenant AND c.id = u.campaign WHERE u.since < $1 ORDER BY u.since LIMIT $2`
	failUnknown = `UPDATE messages SET status = 'failed', error = 'no receipt came' FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no
		AND messages.status = 'unknown' AND messages.accepted = 0`
	dropUnknown = `DELETE FROM unsure WHERE (tenant, campaign, message) IN (SELECT r.of_tenant, r.of_campaign, r.of_no FROM rows($1) AS r)`
)

var unknownColumns = []db.Column[message]{
	{Name: "tenant", Text: func(m message) string { return m.Tenant }},
	{Name: "campaign", Text: func(m message) string { return m.Campaign }},
	{Name: "message", Int: func(m message) int64 { return m.No }},
	{Name: "recipient", Text: func(m message) string { return m.Recipient }},
	{Name: "since", Int: func(m message) int64 { return db.Micros(m.SubmittedAt) }},
}

// refundUnknown fails and refunds unknown messages that got no receipt within the receipt window. more means that
// there may be further ones.
func (b *receiptBook) refundUnknown(ctx context.Context, before time.Time) (more bool, err error) {
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		var keys []messageKey
		counts := tallies{}
		var refunds []ledger.Transfer
		if err := tx.Query(unknownMessages, []any{before, sweepAtOnce}, func(r *db.Row) error {
			var k messageKey
			c := Campaign{}
			err := r.Scan(&k.tenant, &k.campaign, &k.no, &c.Mode, &c.Credits)
			keys = append(keys, k)
			c.Tenant, c.ID = k.tenant, k.campaign
			counts.of(k.tenant, k.campaign).back++
			refunds = append(refunds, refund(c, 1, k.no, b.clock.Now()))
			return err
		}); err != nil {
			return err
		}
		more = len(keys) == sweepAtOnce
		if len(keys) == 0 {
			return nil
		}
		if err := postRefunds(tx, b.ledger, refunds); err != nil {
			return err
		}
		// The guards fail if a message got a receipt meanwhile. The next sweep then reads its state again.
		tx.Defer(failUnknown, int64(len(keys)), db.RowsOf(messageKeyColumns, keys))
		tx.Defer(dropUnknown, int64(len(keys)), db.RowsOf(messageKeyColumns, keys))
		counts.deferAll(tx)
		return nil
	})
	return more, err
}

const (
	unmatchedMatches = `SELECT u.tenant, u.campaign, u.message, u.since, c.segments, ` + earlyFields + ` FROM unsure u
		JOIN campaigns c ON c.tenant = u.tenant AND c.id = u.campaign
		JOIN early_receipts e ON e.recipient = u.recipient AND e.received_at >= u.since AND e.received_at < $1
		WHERE e.upstream_id = '' OR NOT EXISTS (SELECT 1 FROM parts p WHERE p.upstream_id = e.upstream_id AND p.recipient = e.recipient AND p.submitted_at > $3)
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.upstream_id = e.upstream_id AND m.recipient = e.recipient AND m.submitted_at > $3)
		ORDER BY u.since, e.id LIMIT $2`
	endUnknown = `UPDATE messages SET status = r.to_status, accepted = r.to_open, delivered_at = CASE WHEN r.to_status = 'delivered' THEN r.at ELSE 0 END,
		error = r.why, upstream_id = r.upstream FROM rows($1) AS r WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no
		AND messages.status = 'unknown' AND messages.accepted = 0`
)

var unknownEndColumns = append(slices.Clone(messageEndColumns), db.Column[messageEnd]{Name: "upstream", Text: func(c messageEnd) string { return c.upstream }})

// matchUnmatchedReceipts assigns receipts with an unknown id to unknown messages to the same number, oldest first.
// For such a message, the response with the id was lost. The receipt proves that the operator accepted the segment.
// The id is stored with the message, so that a repeated receipt matches no second message.
func (b *receiptBook) matchUnmatchedReceipts(ctx context.Context, before time.Time) (more bool, err error) {
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		ended := map[messageKey]*messageEnd{}
		spent := map[[2]string]bool{}   // receipts that are used, by upstream id and our id
		claimed := map[[2]string]bool{} // segments that are matched, by upstream id and number
		var used []earlyReceipt
		var parts []part
		rows := 0
		if err := tx.Query(unmatchedMatches, []any{before, sweepAtOnce, b.clock.Now().Add(-repeatWindow)}, func(r *db.Row) error {
			var k messageKey
			var e earlyReceipt
			var segments int64
			var since time.Time
			if err := r.Scan(&k.tenant, &k.campaign, &k.no, &since, &segments, &e.UpstreamID, &e.ID, &e.Recipient, &e.State, &e.Code, &e.ReceivedAt); err != nil {
				return err
			}
			rows++
			receipt, segment := [2]string{e.UpstreamID, e.ID}, [2]string{e.UpstreamID, e.Recipient}
			c := ended[k]
			switch {
			case spent[receipt]:
				return nil
			case e.UpstreamID != "" && claimed[segment]: // a repeated receipt
				spent[receipt] = true
				used = append(used, e)
				return nil
			case c != nil && c.open == segments:
				return nil
			}
			if c == nil {
				c = &messageEnd{messageKey: k, status: StatusDelivered}
				ended[k] = c
			}
			c.open++ // counts the segments with a receipt
			c.at = e.ReceivedAt
			if c.status = worst(string(c.status), e.State); e.State != string(StatusDelivered) {
				c.why = e.Code
			}
			spent[receipt], claimed[segment] = true, true
			used = append(used, e)
			if segments == 1 {
				c.upstream = e.UpstreamID
				return nil
			}
			parts = append(parts, part{UpstreamID: e.UpstreamID, Tenant: k.tenant, Campaign: k.campaign, Message: k.no, Part: c.open,
				Recipient: e.Recipient, State: e.State, SubmittedAt: since})
			return nil
		}); err != nil || rows == 0 {
			return err
		}
		more = rows == sweepAtOnce
		ends := make([]messageEnd, 0, len(ended))
		keys := make([]messageKey, 0, len(ended))
		for k, c := range ended {
			ends, keys = append(ends, *c), append(keys, k)
		}
		slices.SortFunc(ends, func(a, b messageEnd) int { return a.compare(b.messageKey) })
		tx.Defer(endUnknown, int64(len(ends)), db.RowsOf(unknownEndColumns, ends))
		tx.Defer(dropUnknown, int64(len(keys)), db.RowsOf(messageKeyColumns, keys))
		db.Insert(tx, "parts", partColumns, parts)
		dropEarlyReceipts(tx, used)
		return nil
	})
	return more, err
}
