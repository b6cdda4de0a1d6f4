package delivery

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

// Report is the result of Check.
type Report struct {
	At        time.Time
	Campaigns int64 // number of checked campaigns
	Messages  int64 // number of checked messages
	ledger.Findings
}

const (
	checkCounts = `SELECT (SELECT count(*) FROM campaigns), (SELECT count(*) FROM messages)`
	// checkCharges: each campaign was charged its cost once, and the ledger's refunds are those that its row counts.
	checkCharges = `SELECT c.id, 'was charged ' || coalesce(charge.amount, 0) || ' credits and given ' || coalesce(back.amount, 0) || ' back, not ' ||
			(c.credits * c.recipients) || ' and ' || (c.credits * c.refunded)
		FROM campaigns c
		LEFT JOIN transfers charge ON charge.subject = c.id AND charge.leg = 'charge'
			AND charge.from_account = 'credits:' || c.tenant AND charge.to_account = 'used'
		LEFT JOIN (SELECT subject, sum(amount) AS amount FROM transfers WHERE kind = 'sms_refund' AND from_account = 'used' GROUP BY subject) back ON back.subject = c.id
		WHERE coalesce(charge.amount, 0) <> c.credits * c.recipients OR coalesce(back.amount, 0) <> c.credits * c.refunded LIMIT 100`
	// checkRefunds: the refunded messages are those that no mobile operator accepted.
	checkRefunds = `SELECT c.id, 'counts ' || c.refunded || ' refunded messages, its rows are ' || coalesce(m.n, 0) FROM campaigns c
		LEFT JOIN (SELECT tenant, campaign, count(*) AS n FROM messages WHERE no >= 0 AND accepted = 0 AND status IN ('failed', 'rejected')
			GROUP BY tenant, campaign) m ON m.tenant = c.tenant AND m.campaign = c.id
		WHERE c.refunded <> coalesce(m.n, 0) LIMIT 100`
	// checkRows: every recipient has a message row or waits in a chunk. A recipient of a small campaign waits in the
	// campaign's row, which must have a job.
	checkRows = `SELECT c.id, 'has ' || c.recipients || ' recipients, ' || coalesce(m.n, 0) || ' rows, and ' || coalesce(k.waiting, 0) || ' in chunks'
		FROM campaigns c
		LEFT JOIN (SELECT tenant, campaign, count(*) AS n FROM messages WHERE no >= 0 GROUP BY tenant, campaign) m ON m.tenant = c.tenant AND m.campaign = c.id
		LEFT JOIN (SELECT ch.tenant, ch.campaign, sum(ch.size - (SELECT count(*) FROM messages b WHERE b.tenant = ch.tenant AND b.campaign = ch.campaign
				AND b.no >= ch.no * 1000 AND b.no < (ch.no + 1) * 1000)) AS waiting
			FROM chunks ch WHERE ch.state = 'ready' GROUP BY ch.tenant, ch.campaign) k ON k.tenant = c.tenant AND k.campaign = c.id
		WHERE c.numbers = '' AND c.recipients <> coalesce(m.n, 0) + coalesce(k.waiting, 0) OR c.recipients < coalesce(m.n, 0) LIMIT 100`
	checkSmall = `SELECT c.id, 'waits for ' || (c.recipients - coalesce(m.n, 0)) || ' of its messages, and has no job' FROM campaigns c
		LEFT JOIN (SELECT tenant, campaign, count(*) AS n FROM messages WHERE no >= 0 AND status NOT IN ('queued', 'sending')
			GROUP BY tenant, campaign) m ON m.tenant = c.tenant AND m.campaign = c.id
		WHERE c.numbers <> '' AND c.recipients <> coalesce(m.n, 0) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = c.id || '/0')
			AND c.id NOT IN (SELECT value FROM texts($1)) LIMIT 100`
	checkChunks = `SELECT c.id, 'is ' || c.status || ', counts ' || c.left_over || ' chunks, and has ' || coalesce(k.n, 0) FROM campaigns c
		LEFT JOIN (SELECT tenant, campaign, count(*) AS n FROM chunks WHERE state = 'ready' GROUP BY tenant, campaign) k ON k.tenant = c.tenant AND k.campaign = c.id
		WHERE c.left_over <> coalesce(k.n, 0) OR c.recipients > 10 AND c.numbers <> '' OR c.numbers <> '' AND (k.n > 0 OR c.status = 'done')
			OR c.numbers = '' AND (c.status = 'active') <> (c.left_over > 0) AND c.status <> 'stopped' LIMIT 100`
	checkOpen = `SELECT m.campaign, 'message ' || m.no || ' is ' || m.status || ' and waits for ' || m.open || ' receipts, its parts for ' || coalesce(p.n, 0) FROM messages m
		LEFT JOIN (SELECT tenant, campaign, message, count(*) AS n FROM parts WHERE state = 'open' GROUP BY tenant, campaign, message) p
			ON p.tenant = m.tenant AND p.campaign = m.campaign AND p.message = m.no
		WHERE m.open <> CASE WHEN m.upstream_id = '' THEN coalesce(p.n, 0) WHEN m.status = 'submitted' THEN 1 ELSE 0 END
			OR (m.open > 0 AND m.status <> 'submitted') LIMIT 100`
	checkOver = `SELECT m.campaign, 'message ' || m.no || ' is ' || m.status || ', and its campaign is over' FROM messages m
		JOIN campaigns c ON c.tenant = m.tenant AND c.id = m.campaign
		WHERE m.status IN ('queued', 'sending') AND c.left_over = 0 AND c.numbers = '' LIMIT 100`
	checkUnsure = `SELECT m.campaign, 'message ' || m.no || ' is ' || m.status || ', and in the list of the unsure: ' || coalesce(u.n, 0) FROM messages m
		LEFT JOIN (SELECT tenant, campaign, message, count(*) AS n FROM unsure GROUP BY tenant, campaign, message) u
			ON u.tenant = m.tenant AND u.campaign = m.campaign AND u.message = m.no
		WHERE (m.status = 'unknown' AND m.accepted = 0) <> (coalesce(u.n, 0) = 1) LIMIT 100`
	// checkStrays uses a set difference. A lookup of each subject would scan all campaigns, because they have no
	// index on the id alone.
	checkStrays = `SELECT x.subject, 'has transfers and no row' FROM (
		SELECT subject FROM transfers WHERE kind IN ('sms_charge', 'sms_refund') EXCEPT SELECT id FROM campaigns) AS x LIMIT 100`
)

// check compares all campaigns and messages with the ledger on one snapshot and returns the differences. Each
// campaign must be charged once. Only messages that no mobile operator accepted may be refunded. Counters must equal
// the numbers of rows.
func check(ctx context.Context, d *db.DB, now time.Time) (Report, error) {
	r := Report{At: now}
	err := d.ReadWhole(ctx, func(tx *db.Tx) error {
		r.Problems = nil
		inVolleys, err := campaignsOfBatches(tx)
		if err != nil {
			return err
		}
		if _, err := tx.One(checkCounts, nil, &r.Campaigns, &r.Messages); err != nil {
			return err
		}
		for _, c := range []db.Query{{SQL: checkCharges}, {SQL: checkRefunds}, {SQL: checkRows}, {SQL: checkSmall, Args: []any{inVolleys}}, {SQL: checkChunks},
			{SQL: checkOpen}, {SQL: checkOver}, {SQL: checkUnsure}, {SQL: checkStrays}} {
			if err := tx.Query(c.SQL, c.Args, func(row *db.Row) error {
				var campaign, what string
				err := row.Scan(&campaign, &what)
				r.Add("campaign %s %s", campaign, what)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return r, err
}
