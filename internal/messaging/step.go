package messaging

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
)

// step is one commit of a chunk's delivery: the results of one slice and the marks of the next.
type step struct {
	job      string
	campaign Campaign
	chunk    int64
	size     int // recipients of the chunk
	results  []result
	claim    []message // born as sending
	again    []message // queued -> sending
	last     bool      // the chunk is over
}

// stepped is the verdict; stopped says that an operator stopped the campaign and the chunk is over.
type stepped struct{ stopped bool }

const (
	campaignStates = `SELECT c.tenant, c.id, c.status FROM rows($1) AS asked JOIN campaigns c ON c.tenant = asked.of_tenant AND c.id = asked.of_id`
	earlyReceipts  = `SELECT e.upstream_id, e.id, e.recipient, e.state, e.received_at FROM texts($1) JOIN early_receipts e ON e.upstream_id = texts.value`
	forgetEarly    = `DELETE FROM early_receipts WHERE upstream_id IN (SELECT value FROM texts($1))`
	recordResults  = `UPDATE messages SET status = r.to_status, accepted = r.to_accepted, open = r.to_open, submitted_at = r.at,
		delivered_at = r.delivered, error = r.why FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND no = r.of_no AND status = 'sending'`
	markAgain = `UPDATE messages SET status = 'sending' FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND no = r.of_no AND status = 'queued'`
	endChunks = `UPDATE chunks SET state = r.to_state FROM rows($1) AS r
		WHERE tenant = r.of_tenant AND campaign = r.of_campaign AND no = r.of_no AND state = 'ready'`
	countCampaigns = `UPDATE campaigns SET left_over = left_over - r.ended, refunded = refunded + r.back,
		status = CASE WHEN left_over = r.ended AND status = 'active' THEN 'done' ELSE status END
		FROM rows($1) AS r WHERE tenant = r.of_tenant AND id = r.of_id`
	messageStatus = `SELECT status FROM messages WHERE tenant = $1 AND campaign = $2 AND no = $3`
	chunkState    = `SELECT state FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`
)

var askedCampaign = []db.Column[*step]{
	{Name: "of_tenant", Text: func(s *step) string { return s.campaign.Tenant }},
	{Name: "of_id", Text: func(s *step) string { return s.campaign.ID }},
}

var keyOfMessage = []db.Column[message]{
	{Name: "of_tenant", Text: func(m message) string { return m.Tenant }},
	{Name: "of_campaign", Text: func(m message) string { return m.Campaign }},
	{Name: "of_no", Int: func(m message) int64 { return m.No }},
}

var resultColumns = append(append([]db.Column[message]{}, keyOfMessage...),
	db.Column[message]{Name: "to_status", Text: func(m message) string { return string(m.Status) }},
	db.Column[message]{Name: "to_accepted", Int: func(m message) int64 { return m.Accepted }},
	db.Column[message]{Name: "to_open", Int: func(m message) int64 { return m.Open }},
	db.Column[message]{Name: "at", Int: func(m message) int64 { return db.Micros(m.SubmittedAt) }},
	db.Column[message]{Name: "delivered", Int: func(m message) int64 { return db.Micros(m.DeliveredAt) }},
	db.Column[message]{Name: "why", Text: func(m message) string { return m.Error }},
)

// chunkEnd closes a chunk.
type chunkEnd struct {
	tenant, campaign string
	no               int64
	state            string
}

var chunkEndColumns = []db.Column[chunkEnd]{
	{Name: "of_tenant", Text: func(c chunkEnd) string { return c.tenant }},
	{Name: "of_campaign", Text: func(c chunkEnd) string { return c.campaign }},
	{Name: "of_no", Int: func(c chunkEnd) int64 { return c.no }},
	{Name: "to_state", Text: func(c chunkEnd) string { return c.state }},
}

// tally is what a batch changes about one campaign.
type tally struct {
	campaign Campaign
	ended    int64 // chunks
	back     int64 // messages whose credits go back
}

var tallyColumns = []db.Column[*tally]{
	{Name: "of_tenant", Text: func(t *tally) string { return t.campaign.Tenant }},
	{Name: "of_id", Text: func(t *tally) string { return t.campaign.ID }},
	{Name: "ended", Int: func(t *tally) int64 { return t.ended }},
	{Name: "back", Int: func(t *tally) int64 { return t.back }},
}

// advance commits a batch of steps.
func (m *Messaging) advance(ctx context.Context, batch []*step) ([]lane.Verdict[stepped], error) {
	var verdicts []lane.Verdict[stepped]
	landed := func(tx *db.Tx) (bool, error) { return stepLanded(tx, batch) }
	err := m.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		var err error
		verdicts, err = m.advanceIn(tx, batch)
		return err
	})
	return verdicts, err
}

// stepLanded recognises a batch by the first row that it must have changed.
func stepLanded(tx *db.Tx, batch []*step) (bool, error) {
	s := batch[0]
	var word string
	c := s.campaign
	switch {
	case len(s.results) > 0:
		_, err := tx.One(messageStatus, []any{c.Tenant, c.ID, s.results[0].message.No}, &word)
		return word != string(StatusSending), err
	case len(s.claim) > 0:
		found, err := tx.One(messageStatus, []any{c.Tenant, c.ID, s.claim[0].No}, &word)
		if found || err != nil {
			return found, err
		}
	case len(s.again) > 0:
		_, err := tx.One(messageStatus, []any{c.Tenant, c.ID, s.again[0].No}, &word)
		return word == string(StatusSending), err
	}
	_, err := tx.One(chunkState, []any{c.Tenant, c.ID, s.chunk}, &word)
	return word != chunkReady, err
}

func (m *Messaging) advanceIn(tx *db.Tx, batch []*step) ([]lane.Verdict[stepped], error) {
	stopped, err := m.look(tx, batch)
	if err != nil {
		return nil, err
	}
	verdicts := make([]lane.Verdict[stepped], len(batch))
	tallies := map[string]*tally{}
	var refunds []ledger.Transfer
	var writes stepWrites
	for i, s := range batch {
		t := tallies[s.campaign.ID]
		if t == nil {
			t = &tally{campaign: s.campaign}
			tallies[s.campaign.ID] = t
		}
		halted := stopped[s.campaign.ID] && !s.last
		verdicts[i].Value.stopped = halted
		back := writes.add(s, halted)
		if back > 0 {
			refunds = append(refunds, m.refund(s, back, halted))
		}
		t.back += back
		if s.last || halted {
			t.ended++
		}
	}
	if err := m.giveBack(tx, refunds); err != nil {
		return nil, err
	}
	writes.post(tx)
	var counted []*tally
	for _, t := range tallies {
		if t.ended > 0 || t.back > 0 {
			counted = append(counted, t)
		}
	}
	if len(counted) > 0 {
		tx.Defer(countCampaigns, int64(len(counted)), db.RowsOf(tallyColumns, counted))
	}
	m.jobs.Finish(tx, writes.finished...)
	return verdicts, nil
}

// look reads which campaigns were stopped, and applies the receipts that were quicker than the answers.
func (m *Messaging) look(tx *db.Tx, batch []*step) (stopped map[string]bool, err error) {
	stopped = map[string]bool{}
	byID := map[string]*part{}
	owner := map[*part]*result{}
	var ids []string
	for _, s := range batch {
		for i := range s.results {
			r := &s.results[i]
			for p := range r.parts {
				byID[r.parts[p].UpstreamID], owner[&r.parts[p]] = &r.parts[p], r
				ids = append(ids, r.parts[p].UpstreamID)
			}
		}
	}
	queries := []db.Query{{SQL: campaignStates, Args: []any{db.RowsOf(askedCampaign, batch)}, Each: func(r *db.Row) error {
		var tenantID, id, status string
		err := r.Scan(&tenantID, &id, &status)
		stopped[id] = status == string(CampaignStopped)
		return err
	}}}
	var early []string
	if len(ids) > 0 {
		queries = append(queries, db.Query{SQL: earlyReceipts, Args: []any{ids}, Each: func(r *db.Row) error {
			var e earlyReceipt
			if err := r.Scan(&e.UpstreamID, &e.ID, &e.Recipient, &e.State, &e.ReceivedAt); err != nil {
				return err
			}
			p := byID[e.UpstreamID]
			if p == nil || e.Recipient != "" && e.Recipient != p.Recipient || p.State != partOpen {
				return nil
			}
			early = append(early, e.UpstreamID)
			owner[p].receive(p, e)
			return nil
		}})
	}
	if err := tx.Gather(queries...); err != nil {
		return nil, err
	}
	if len(early) > 0 {
		tx.Defer(forgetEarly, -1, early)
	}
	return stopped, nil
}

// receive applies a receipt to a message whose parts are all in memory. A run of the transaction that
// comes again finds the part closed and the message as it is.
func (r *result) receive(p *part, e earlyReceipt) {
	p.State = e.State
	r.message.Open--
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

// stepWrites collects the rows of a batch.
type stepWrites struct {
	results  []message
	parts    []part
	claims   []message
	again    []message
	ends     []chunkEnd
	finished []string
}

// add takes one step and says how many messages it gives back: those that nobody took, and of a
// stopped campaign those that were not begun.
func (w *stepWrites) add(s *step, halted bool) (back int64) {
	for _, r := range s.results {
		w.results = append(w.results, r.message)
		w.parts = append(w.parts, r.parts...)
		if r.message.Accepted == 0 && (r.message.Status == StatusRejected || r.message.Status == StatusFailed) {
			back++
		}
	}
	end := chunkEnd{s.campaign.Tenant, s.campaign.ID, s.chunk, chunkDone}
	switch {
	case halted:
		begun := int64(s.size)
		if len(s.claim) > 0 {
			begun = s.claim[0].No - s.chunk*chunkSize
		}
		back += int64(s.size) - begun + int64(len(s.again))
		for _, msg := range s.again {
			msg.Status, msg.Error = StatusFailed, "the campaign was stopped"
			w.again = append(w.again, msg)
			w.results = append(w.results, msg)
		}
		end.state = chunkStopped
		w.ends, w.finished = append(w.ends, end), append(w.finished, s.job)
	case s.last:
		w.ends, w.finished = append(w.ends, end), append(w.finished, s.job)
	default:
		w.claims, w.again = append(w.claims, s.claim...), append(w.again, s.again...)
	}
	return back
}

func (w *stepWrites) post(tx *db.Tx) {
	if len(w.again) > 0 {
		tx.Defer(markAgain, int64(len(w.again)), db.RowsOf(keyOfMessage, w.again))
	}
	if len(w.results) > 0 {
		tx.Defer(recordResults, int64(len(w.results)), db.RowsOf(resultColumns, w.results))
	}
	db.Insert(tx, "parts", partColumns, w.parts)
	db.Insert(tx, "messages", messageColumns, w.claims)
	if len(w.ends) > 0 {
		tx.Defer(endChunks, int64(len(w.ends)), db.RowsOf(chunkEndColumns, w.ends))
	}
}

// refund gives messages of one step back. The leg is the place in the chunk, so that no slice is given
// back twice.
func (m *Messaging) refund(s *step, messages int64, halted bool) ledger.Transfer {
	leg := fmt.Sprintf("refund:%d:", s.chunk)
	switch {
	case halted:
		leg += "stopped"
	case len(s.results) > 0:
		leg += fmt.Sprint(s.results[0].message.No)
	}
	return s.campaign.refund(messages, leg, m)
}

func (c Campaign) refund(messages int64, leg string, m *Messaging) ledger.Transfer {
	t := tenant.Tenant{ID: c.Tenant, Mode: c.Mode}
	return ledger.Transfer{Asset: t.Credits(), From: ledger.Used, To: ledger.Credits(c.Tenant),
		Amount: messages * c.Credits, Subject: c.ID, Leg: leg, Kind: "sms_refund", At: m.clock.Now()}
}

// giveBack posts refunds; only then are credits locked.
func (m *Messaging) giveBack(tx *db.Tx, refunds []ledger.Transfer) error {
	if len(refunds) == 0 {
		return nil
	}
	seen := map[ledger.Key]bool{}
	var keys []ledger.Key
	for _, r := range refunds {
		if k := (ledger.Key{Asset: r.Asset, ID: r.To}); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	page, err := m.ledger.Open(tx, keys...)
	if err != nil {
		return err
	}
	if err := page.Add(refunds...); err != nil {
		return err
	}
	page.Post()
	return nil
}
