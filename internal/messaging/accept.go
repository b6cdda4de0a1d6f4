package messaging

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

// admission is a campaign on its way in. Everything that is written is made before the first try, so
// that a run after a lost answer writes the same rows.
type admission struct {
	tenant   tenant.Tenant
	campaign Campaign
	chunks   []chunk
	invalid  []string
	staged   bool   // the chunks have rows already
	text     string // what is sent, when it is not the campaign's message: a one-time password's
	otp      *otpRow
}

// admitted is the verdict.
type admitted struct {
	campaign Campaign
	replayed bool
}

// The states of a chunk: staged -> ready (with the charge) -> done or stopped.
const (
	chunkStaged  = "staged"
	chunkReady   = "ready"
	chunkDone    = "done"
	chunkStopped = "stopped"
)

// chunk is a part of a campaign's recipients, and the unit of its delivery.
type chunk struct {
	Tenant     string
	Campaign   string
	No         int64
	State      string
	Recipients []msisdn.MSISDN
	CreatedAt  time.Time
}

// list writes the recipients as they are stored.
func (c chunk) list() string {
	var text strings.Builder
	text.Grow(len(c.Recipients) * 13)
	for i, n := range c.Recipients {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(string(n))
	}
	return text.String()
}

var chunkColumns = []db.Column[chunk]{
	{Name: "tenant", Text: func(c chunk) string { return c.Tenant }},
	{Name: "campaign", Text: func(c chunk) string { return c.Campaign }},
	{Name: "no", Int: func(c chunk) int64 { return c.No }},
	{Name: "state", Text: func(c chunk) string { return c.State }},
	{Name: "size", Int: func(c chunk) int64 { return int64(len(c.Recipients)) }},
	{Name: "recipients", Text: chunk.list},
	{Name: "created_at", Time: func(c chunk) time.Time { return c.CreatedAt }},
}

var campaignColumns = []db.Column[Campaign]{
	{Name: "tenant", Text: func(c Campaign) string { return c.Tenant }},
	{Name: "id", Text: func(c Campaign) string { return c.ID }},
	{Name: "mode", Text: func(c Campaign) string { return string(c.Mode) }},
	{Name: "kind", Text: func(c Campaign) string { return string(c.Kind) }},
	{Name: "sender_id", Text: func(c Campaign) string { return c.SenderID }},
	{Name: "sender", Text: func(c Campaign) string { return c.Sender }},
	{Name: "message", Text: func(c Campaign) string { return c.Message }},
	{Name: "encoding", Text: func(c Campaign) string { return string(c.Encoding) }},
	{Name: "segments", Int: func(c Campaign) int64 { return c.Segments }},
	{Name: "credits", Int: func(c Campaign) int64 { return c.Credits }},
	{Name: "recipients", Int: func(c Campaign) int64 { return c.Recipients }},
	{Name: "invalid", Int: func(c Campaign) int64 { return c.Invalid }},
	{Name: "excluded", Int: func(c Campaign) int64 { return c.Excluded }},
	{Name: "status", Text: func(c Campaign) string { return string(c.Status) }},
	{Name: "access_key", Text: func(c Campaign) string { return c.Key }},
	{Name: "idempotency_key", Text: func(c Campaign) string { return c.IdempotencyKey }},
	{Name: "idempotency_hash", Text: func(c Campaign) string { return c.IdempotencyHash }},
	{Name: "created_at", Time: func(c Campaign) time.Time { return c.CreatedAt }},
	{Name: "left_over", Int: func(c Campaign) int64 { return c.Left }},
	{Name: "refunded", Int: func(c Campaign) int64 { return c.Refunded }},
}

const campaignFields = `tenant, id, mode, kind, sender_id, sender, message, encoding, segments, credits, recipients,
	invalid, excluded, status, access_key, idempotency_key, idempotency_hash, created_at, left_over, refunded`

func (c *Campaign) scan(r *db.Row) error {
	var mode, kind, encoding, status string
	err := r.Scan(&c.Tenant, &c.ID, &mode, &kind, &c.SenderID, &c.Sender, &c.Message, &encoding, &c.Segments, &c.Credits,
		&c.Recipients, &c.Invalid, &c.Excluded, &status, &c.Key, &c.IdempotencyKey, &c.IdempotencyHash, &c.CreatedAt, &c.Left, &c.Refunded)
	c.Mode, c.Kind, c.Encoding, c.Status = tenant.Mode(mode), Kind(kind), smstext.Encoding(encoding), CampaignStatus(status)
	return err
}

// stage stores the chunks of a large campaign in small transactions of their own, before it is
// charged. Until then they are orphans that are swept after an hour.
func (m *Messaging) stage(ctx context.Context, a *admission) error {
	for i := range a.chunks {
		a.chunks[i].State = chunkStaged
		if err := m.db.Write(ctx, func(tx *db.Tx) error {
			db.Insert(tx, "chunks", chunkColumns, a.chunks[i:i+1])
			return nil
		}); err != nil {
			return err
		}
	}
	a.staged = true
	return nil
}

const (
	byIdempotency = `SELECT ` + campaignFields + ` FROM rows($1) AS asked JOIN campaigns c
		ON c.tenant = asked.of_tenant AND c.idempotency_key = asked.of_key AND c.idempotency_key <> ''`
	campaignThere = `SELECT 1 FROM campaigns WHERE tenant = $1 AND id = $2`
	readyChunks   = `UPDATE chunks SET state = 'ready' WHERE tenant = $1 AND campaign = $2 AND state = 'staged'`
)

var idempotencyColumns = []db.Column[*admission]{
	{Name: "of_tenant", Text: func(a *admission) string { return a.campaign.Tenant }},
	{Name: "of_key", Text: func(a *admission) string { return a.campaign.IdempotencyKey }},
}

// admit charges and stores a batch of campaigns in one transaction; each gets its own verdict.
func (m *Messaging) admit(ctx context.Context, batch []*admission) ([]lane.Verdict[admitted], error) {
	var verdicts []lane.Verdict[admitted]
	landed := func(tx *db.Tx) (bool, error) {
		for i, a := range batch {
			if verdicts[i].Err == nil && !verdicts[i].Value.replayed {
				var one int64
				return tx.One(campaignThere, []any{a.campaign.Tenant, a.campaign.ID}, &one)
			}
		}
		return true, nil // nothing was written
	}
	err := m.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		var err error
		verdicts, err = m.admitIn(tx, batch)
		return err
	})
	return verdicts, err
}

func (m *Messaging) admitIn(tx *db.Tx, batch []*admission) ([]lane.Verdict[admitted], error) {
	var page ledger.Page
	before := map[[2]string]Campaign{}
	keys, asked := m.creditKeys(batch), keyed(batch)
	queries := []db.Query{m.ledger.OpenQuery(tx, keys, &page)}
	if len(asked) > 0 {
		queries = append(queries, db.Query{SQL: byIdempotency, Args: []any{db.RowsOf(idempotencyColumns, asked)}, Each: func(r *db.Row) error {
			var c Campaign
			err := c.scan(r)
			before[[2]string{c.Tenant, c.IdempotencyKey}] = c
			return err
		}})
	}
	if err := tx.Gather(queries...); err != nil {
		return nil, err
	}
	verdicts := make([]lane.Verdict[admitted], len(batch))
	var accepted []*admission
	for i, a := range batch {
		verdicts[i] = m.verdict(a, &page, before)
		if verdicts[i].Err == nil && !verdicts[i].Value.replayed {
			accepted = append(accepted, a)
			if a.campaign.IdempotencyKey != "" {
				before[[2]string{a.campaign.Tenant, a.campaign.IdempotencyKey}] = a.campaign
			}
		}
	}
	page.Post()
	m.store(tx, accepted)
	return verdicts, nil
}

// verdict decides one admission on what the transaction has seen.
func (m *Messaging) verdict(a *admission, page *ledger.Page, before map[[2]string]Campaign) lane.Verdict[admitted] {
	c := a.campaign
	if known, ok := before[[2]string{c.Tenant, c.IdempotencyKey}]; ok && c.IdempotencyKey != "" {
		if known.IdempotencyHash != c.IdempotencyHash {
			return lane.Verdict[admitted]{Err: problem.New(problem.Duplicate, "idempotency_key_reused", "This Idempotency-Key was used with another request")}
		}
		return lane.Verdict[admitted]{Value: admitted{known, true}}
	}
	key := a.tenant.SMSCredits()
	if err := page.Add(c.charge(key.Asset)); errors.Is(err, ledger.ErrInsufficient) {
		return lane.Verdict[admitted]{Err: insufficient(page.Balance(key), c.Cost())}
	} else if err != nil {
		return lane.Verdict[admitted]{Err: err}
	}
	return lane.Verdict[admitted]{Value: admitted{campaign: c}}
}

// store defers the rows of what was accepted, with a job for each chunk.
func (m *Messaging) store(tx *db.Tx, accepted []*admission) {
	var campaigns []Campaign
	var chunks []chunk
	var messages []message
	var work []jobs.Job
	for _, a := range accepted {
		campaigns = append(campaigns, a.campaign)
		if a.staged {
			tx.Defer(readyChunks, int64(len(a.chunks)), a.campaign.Tenant, a.campaign.ID)
		} else {
			chunks = append(chunks, a.chunks...)
		}
		for i, text := range a.invalid {
			messages = append(messages, message{Tenant: a.campaign.Tenant, Campaign: a.campaign.ID, No: -1 - int64(i), Recipient: text, Status: StatusInvalid,
				Error: "not a phone number"})
		}
		for _, c := range a.chunks {
			work = append(work, m.chunkJob(a.campaign, c, a.text))
		}
		if a.otp != nil {
			m.storeOTP(tx, *a.otp)
		}
	}
	if len(campaigns) == 0 {
		return
	}
	db.Insert(tx, "campaigns", campaignColumns, campaigns)
	db.Insert(tx, "chunks", chunkColumns, chunks)
	db.Insert(tx, "messages", messageColumns, messages)
	m.jobs.Add(tx, work...)
}

func (m *Messaging) creditKeys(batch []*admission) []ledger.Key {
	seen := map[ledger.Key]bool{}
	var keys []ledger.Key
	for _, a := range batch {
		if k := a.tenant.SMSCredits(); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func keyed(batch []*admission) []*admission {
	var asked []*admission
	for _, a := range batch {
		if a.campaign.IdempotencyKey != "" {
			asked = append(asked, a)
		}
	}
	return asked
}
