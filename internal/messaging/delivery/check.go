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
	// A set of a check has at most setOfCampaigns campaigns. It ends with the campaign that reaches setOfRecipients.
	setOfCampaigns  = 1000
	setOfRecipients = 10_000

	campaignsAfter = `SELECT id, recipients FROM campaigns WHERE id > $1 ORDER BY id LIMIT $2`
	checkCounts    = `SELECT (SELECT count(*) FROM campaigns), (SELECT count(*) FROM messages)`

	// checkCharges: each campaign was charged its cost once, and the ledger's refunds are those that its row counts.
	checkCharges = `SELECT id, 'was charged ' || charged || ' credits and given ' || back || ' back, not ' || cost || ' and ' || due FROM (
		SELECT c.id, c.credits * c.recipients AS cost, c.credits * c.refunded AS due,
			coalesce((SELECT t.amount FROM transfers t WHERE t.subject = c.id AND t.leg = 'charge' AND t.from_account = 'credits:' || c.tenant AND t.to_account = 'used'), 0) AS charged,
			coalesce((SELECT sum(t.amount) FROM transfers t WHERE t.subject = c.id AND t.kind = 'sms_refund' AND t.from_account = 'used'), 0) AS back
		FROM campaigns c WHERE c.id IN (SELECT value FROM texts($1))) AS x WHERE charged <> cost OR back <> due LIMIT 100`
	// checkRefunds: the refunded messages are those that no mobile operator accepted.
	checkRefunds = `SELECT id, 'counts ' || refunded || ' refunded messages, its rows are ' || n FROM (
		SELECT c.id, c.refunded, (SELECT count(*) FROM messages m WHERE m.tenant = c.tenant AND m.campaign = c.id AND m.no >= 0 AND m.accepted = 0
			AND m.status IN ('failed', 'rejected')) AS n
		FROM campaigns c WHERE c.id IN (SELECT value FROM texts($1))) AS x WHERE refunded <> n LIMIT 100`
	// checkRows: every recipient has a message row or waits in a chunk. A recipient of a small campaign waits in the
	// campaign's row, which must have a job.
	checkRows = `SELECT id, 'has ' || recipients || ' recipients, ' || n || ' rows, and ' || waiting || ' in chunks' FROM (
		SELECT c.id, c.recipients, c.numbers, (SELECT count(*) FROM messages m WHERE m.tenant = c.tenant AND m.campaign = c.id AND m.no >= 0) AS n,
			coalesce((SELECT sum(ch.size - (SELECT count(*) FROM messages b WHERE b.tenant = ch.tenant AND b.campaign = ch.campaign
				AND b.no >= ch.no * 1000 AND b.no < (ch.no + 1) * 1000)) FROM chunks ch WHERE ch.tenant = c.tenant AND ch.campaign = c.id AND ch.state = 'ready'), 0) AS waiting
		FROM campaigns c WHERE c.id IN (SELECT value FROM texts($1))) AS x
		WHERE numbers = '' AND recipients <> n + waiting OR recipients < n LIMIT 100`
	checkSmall = `SELECT id, 'waits for ' || (recipients - n) || ' of its messages, and has no job' FROM (
		SELECT c.id, c.recipients, (SELECT count(*) FROM messages m WHERE m.tenant = c.tenant AND m.campaign = c.id AND m.no >= 0 AND m.status NOT IN ('queued', 'sending')) AS n
		FROM campaigns c WHERE c.id IN (SELECT value FROM texts($1)) AND c.numbers <> '') AS x
		WHERE recipients <> n AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = x.id || '/0') AND id NOT IN (SELECT value FROM texts($2)) LIMIT 100`
	checkChunks = `SELECT id, 'is ' || status || ', counts ' || left_over || ' chunks, and has ' || n FROM (
		SELECT c.id, c.status, c.left_over, c.recipients, c.numbers, (SELECT count(*) FROM chunks ch WHERE ch.tenant = c.tenant AND ch.campaign = c.id AND ch.state = 'ready') AS n
		FROM campaigns c WHERE c.id IN (SELECT value FROM texts($1))) AS x
		WHERE left_over <> n OR recipients > 10 AND numbers <> '' OR numbers <> '' AND (n > 0 OR status = 'done')
			OR numbers = '' AND (status = 'active') <> (left_over > 0) AND status <> 'stopped' LIMIT 100`
	checkOpen = `SELECT campaign, 'message ' || no || ' is ' || status || ' and waits for ' || open || ' receipts, its parts for ' || n FROM (
		SELECT m.campaign, m.no, m.status, m.open, CASE WHEN m.upstream_id <> '' THEN CASE WHEN m.status = 'submitted' THEN 1 ELSE 0 END
			ELSE (SELECT count(*) FROM parts p WHERE p.tenant = m.tenant AND p.campaign = m.campaign AND p.message = m.no AND p.state = 'open') END AS n
		FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id WHERE c.id IN (SELECT value FROM texts($1))) AS x
		WHERE open <> n OR open > 0 AND status <> 'submitted' LIMIT 100`
	checkOver = `SELECT m.campaign, 'message ' || m.no || ' is ' || m.status || ', and its campaign is over' FROM campaigns c
		JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id
		WHERE c.id IN (SELECT value FROM texts($1)) AND m.status IN ('queued', 'sending') AND c.left_over = 0 AND c.numbers = '' LIMIT 100`
	checkUnsure = `SELECT campaign, 'message ' || no || ' is ' || status || ', and in the list of the unsure: ' || n FROM (
		SELECT m.campaign, m.no, m.status, m.accepted, (SELECT count(*) FROM unsure u WHERE u.tenant = m.tenant AND u.campaign = m.campaign AND u.message = m.no) AS n
		FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id WHERE c.id IN (SELECT value FROM texts($1))) AS x
		WHERE (status = 'unknown' AND accepted = 0) <> (n = 1) LIMIT 100`
	// checkStrays: a transfer for messages has a campaign.
	checkStrays = `SELECT DISTINCT t.subject, 'has transfers and no row' FROM transfers t WHERE t.subject IN (SELECT value FROM texts($1))
		AND t.kind IN ('sms_charge', 'sms_refund') AND NOT EXISTS (SELECT 1 FROM campaigns c WHERE c.id = t.subject) LIMIT 100`
	strays = `SELECT x.subject FROM (SELECT subject FROM transfers WHERE kind IN ('sms_charge', 'sms_refund') EXCEPT SELECT id FROM campaigns) AS x LIMIT 100`

	waitingAfter = `SELECT c.id, c.recipients FROM campaigns c JOIN (SELECT DISTINCT campaign FROM chunks WHERE state = 'ready' AND campaign > $1) AS w ON c.id = w.campaign
		ORDER BY c.id LIMIT $2`
)

// check compares all campaigns and messages with the ledger on one snapshot and returns the differences. Each
// campaign must be charged once. Only messages that no mobile operator accepted may be refunded. Counters must equal
// the numbers of rows.
func check(ctx context.Context, d *db.DB, now time.Time) (r Report, err error) {
	err = d.ReadWhole(ctx, func(tx *db.Tx) error {
		r = Report{At: now}
		if _, err := tx.One(checkCounts, nil, &r.Campaigns, &r.Messages); err != nil {
			return err
		}
		for position, whole := "", false; !whole; {
			var err error
			if position, whole, err = CheckAfter(tx, position, &r.Findings); err != nil {
				return err
			}
		}
		subjects, err := tx.Texts(strays)
		if err == nil {
			err = CheckStrays(tx, subjects, &r.Findings)
		}
		return err
	})
	return r, err
}

// CheckAfter checks the next campaigns after an id, with their messages. It returns the last id, and reports whether there are no
// more.
func CheckAfter(tx *db.Tx, after string, found *ledger.Findings) (last string, whole bool, err error) {
	return checkSet(tx, campaignsAfter, after, found)
}

// checkSet checks the campaigns that a query returns, up to the size of a set.
func checkSet(tx *db.Tx, sql, after string, found *ledger.Findings) (last string, whole bool, err error) {
	var ids []string
	read, recipients := 0, 0
	err = tx.Query(sql, []any{after, setOfCampaigns}, func(r *db.Row) error {
		var id string
		var n int
		err := r.Scan(&id, &n)
		if read++; recipients < setOfRecipients {
			ids = append(ids, id)
		}
		recipients += n
		return err
	})
	if err != nil || len(ids) == 0 {
		return after, err == nil, err
	}
	return ids[len(ids)-1], len(ids) == read && read < setOfCampaigns, checkCampaigns(tx, ids, found)
}

// CheckSubjects checks the campaigns that transfers name, and that each transfer for messages has a campaign.
func CheckSubjects(tx *db.Tx, subjects []string, found *ledger.Findings) error {
	if err := checkCampaigns(tx, subjects, found); err != nil {
		return err
	}
	return CheckStrays(tx, subjects, found)
}

// CheckStrays checks that each transfer for messages has a campaign.
func CheckStrays(tx *db.Tx, subjects []string, found *ledger.Findings) error {
	return differences(tx, db.Query{SQL: checkStrays, Args: []any{subjects}}, found)
}

// CheckWaiting checks the next large campaigns after an id that still have unsent messages. It returns the last id, and reports
// whether there are no more.
func CheckWaiting(tx *db.Tx, after string, found *ledger.Findings) (last string, whole bool, err error) {
	return checkSet(tx, waitingAfter, after, found)
}

func checkCampaigns(tx *db.Tx, ids []string, found *ledger.Findings) error {
	batched, err := campaignsOfBatches(tx)
	if err != nil {
		return err
	}
	for _, sql := range []string{checkCharges, checkRefunds, checkRows, checkSmall, checkChunks, checkOpen, checkOver, checkUnsure} {
		q := db.Query{SQL: sql, Args: []any{ids}}
		if sql == checkSmall {
			q.Args = append(q.Args, batched)
		}
		if err := differences(tx, q, found); err != nil {
			return err
		}
	}
	return nil
}

// differences adds the rows of a query: a campaign and its fault.
func differences(tx *db.Tx, q db.Query, found *ledger.Findings) error {
	return tx.Query(q.SQL, q.Args, func(row *db.Row) error {
		var campaign, fault string
		err := row.Scan(&campaign, &fault)
		found.Add("campaign %s %s", campaign, fault)
		return err
	})
}
