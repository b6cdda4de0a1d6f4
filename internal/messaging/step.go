package messaging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
)

// step is one commit of a chunk's delivery: the results that have come and the marks of what is sent next. It counts
// only while turn is the chunk's last one, so that one owner at a time delivers a chunk, and next becomes
// the last one, so that a step that was committed is known again.
type step struct {
	job        *chunkJob
	work       *work
	turn, next int64
	results    []result
	claim      []message // marked; they have no row yet
	markedAt   time.Time // of the oldest that is marked and has no row
	again      []message // queued -> sending
	inFlight   int       // marked before, neither among the results nor recorded: the chunk does not end
	last       bool      // the chunk is over
	leaves     bool      // the job goes on without the chunk, which gets one of its own
	look       bool      // commit it even if there is nothing to write: the campaign may be stopped
}

// idle says that there is no need to commit the step.
func (s *step) idle() bool { return s.still() && !s.look }

// still says that the step changes nothing by itself.
func (s *step) still() bool { return len(s.results)+len(s.claim)+len(s.again) == 0 && !s.last }

// queued are the messages among the results that wait to be offered again.
func (s *step) queued() []message {
	var waiting []message
	for _, r := range s.results {
		if r.message.Status == StatusQueued {
			r.message.stored = true
			waiting = append(waiting, r.message)
		}
	}
	return waiting
}

// guardedByRows says that the step is all that is written of a small campaign after its mark: a row for each
// recipient. Their keys are its guard, since whoever takes the campaign over gives each a row, and the
// campaign's own row need not change.
func (s *step) guardedByRows() bool {
	if s.row().goes() || !s.last || len(s.results) != len(s.work.chunk.Recipients) {
		return false
	}
	return !slices.ContainsFunc(s.results, func(r result) bool { return r.message.stored || r.message.unaccepted() })
}

// whole says that the step marks all of a chunk whose campaign was accepted so lately that nobody asks whether
// it was stopped meanwhile.
func (s *step) whole(now time.Time) bool {
	age := now.Sub(s.work.campaign.CreatedAt) // below 0 where the clock was set back: nobody knows
	return s.turn == 0 && len(s.claim)+len(s.again) == len(s.work.chunk.Recipients) && age >= 0 && age < freshness
}

func (s *step) key() chunkKey { return s.work.chunk.key() }

func (s *step) row() *turnRow { return s.work.chunk.row() }

// errTakenOver says that another owner delivers the chunk now, or has.
var errTakenOver = errors.New("messaging: another owner has the chunk")

// stepped is the verdict; stopped says that an operator stopped the campaign and the chunk is over.
type stepped struct{ stopped bool }

const (
	landedRows = `SELECT 1 FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id AND m.no = 0
		WHERE c.tenant = $1 AND c.id = $2 AND c.turn = $3`
	recordResults = `UPDATE messages SET status = r.to_status, accepted = r.to_accepted, open = r.to_open, submitted_at = r.at,
		delivered_at = r.delivered, error = r.why, upstream_id = r.to_upstream FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no AND messages.status = 'sending'`
	markAgain = `UPDATE messages SET status = 'sending', submitted_at = r.at FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no AND messages.status = 'queued'`
	// A large campaign is done with its last chunk.
	countCampaigns = `UPDATE campaigns SET left_over = campaigns.left_over - r.ended, refunded = campaigns.refunded + r.back,
			status = CASE WHEN r.ended > 0 AND campaigns.left_over = r.ended AND campaigns.status = 'active' THEN 'done' ELSE campaigns.status END
		FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_id`
)

var keyOfMessage = []db.Column[message]{
	{Name: "of_tenant", Text: func(m message) string { return m.Tenant }},
	{Name: "of_campaign", Text: func(m message) string { return m.Campaign }},
	{Name: "of_no", Int: func(m message) int64 { return m.No }},
}

var againColumns = append(append([]db.Column[message]{}, keyOfMessage...),
	db.Column[message]{Name: "at", Int: func(m message) int64 { return db.Micros(m.SubmittedAt) }})

var resultColumns = append(append([]db.Column[message]{}, keyOfMessage...),
	db.Column[message]{Name: "to_status", Text: func(m message) string { return string(m.Status) }},
	db.Column[message]{Name: "to_accepted", Int: func(m message) int64 { return m.Accepted }},
	db.Column[message]{Name: "to_open", Int: func(m message) int64 { return m.Open }},
	db.Column[message]{Name: "at", Int: func(m message) int64 { return db.Micros(m.SubmittedAt) }},
	db.Column[message]{Name: "delivered", Int: func(m message) int64 { return db.Micros(m.DeliveredAt) }},
	db.Column[message]{Name: "why", Text: func(m message) string { return m.Error }},
	db.Column[message]{Name: "to_upstream", Text: func(m message) string { return m.UpstreamID }},
)

var unsureColumns = []db.Column[message]{
	{Name: "tenant", Text: func(m message) string { return m.Tenant }},
	{Name: "campaign", Text: func(m message) string { return m.Campaign }},
	{Name: "message", Int: func(m message) int64 { return m.No }},
	{Name: "recipient", Text: func(m message) string { return m.Recipient }},
	{Name: "since", Int: func(m message) int64 { return db.Micros(m.SubmittedAt) }},
}

// tally is what a transaction changes about one campaign.
type tally struct {
	tenant, campaign string
	ended            int64 // chunks
	back             int64 // messages whose credits go back
}

var tallyColumns = []db.Column[*tally]{
	{Name: "of_tenant", Text: func(t *tally) string { return t.tenant }},
	{Name: "of_id", Text: func(t *tally) string { return t.campaign }},
	{Name: "ended", Int: func(t *tally) int64 { return t.ended }},
	{Name: "back", Int: func(t *tally) int64 { return t.back }},
}

// tallies are those of one transaction, by campaign.
type tallies map[string]*tally

func (t tallies) of(tenant, campaign string) *tally {
	if t[campaign] == nil {
		t[campaign] = &tally{tenant: tenant, campaign: campaign}
	}
	return t[campaign]
}

func (t tallies) post(tx *db.Tx) {
	var changed []*tally
	for _, one := range t {
		if one.ended > 0 || one.back > 0 {
			changed = append(changed, one)
		}
	}
	if len(changed) == 0 {
		return
	}
	slices.SortFunc(changed, func(a, b *tally) int { return strings.Compare(a.campaign, b.campaign) })
	tx.Defer(countCampaigns, int64(len(changed)), db.RowsOf(tallyColumns, changed))
}

// advance commits a batch of steps.
func (m *Messaging) advance(ctx context.Context, batch []*step) ([]lane.Verdict[stepped], error) {
	var verdicts []lane.Verdict[stepped]
	landed := func(tx *db.Tx) (bool, error) { return stepLanded(tx, batch) }
	try := func(trusting bool) error {
		return m.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
			var err error
			verdicts, err = m.advanceIn(tx, batch, trusting)
			return err
		})
	}
	// The owner of a chunk knows its row: the turn is guarded where the row changes, and looked at only
	// when a guard says no, or a message has a row already.
	err := try(true)
	if errors.Is(err, db.ErrGuard) || errors.Is(err, db.ErrUnique) {
		err = try(false)
	}
	return verdicts, err
}

// stepLanded recognises a batch by a chunk whose turn it must have changed. Where none tells, the batch
// runs again, which finds out for each step.
func stepLanded(tx *db.Tx, batch []*step) (bool, error) {
	for _, s := range batch {
		key, sql, want := s.key(), s.row().turn, s.next
		last := key.no
		switch {
		case s.guardedByRows():
			sql, last, want = landedRows, s.turn, 1
		case s.still(), s.last && s.row().goes():
			continue
		}
		var turn int64
		found, err := tx.One(sql, []any{key.tenant, key.campaign, last}, &turn)
		if err != nil || found && turn == want {
			return found && err == nil, err
		}
	}
	return false, nil
}

// advanceIn is one transaction. Trusting, it does not look at chunks of which their steps know enough.
func (m *Messaging) advanceIn(tx *db.Tx, batch []*step, trusting bool) ([]lane.Verdict[stepped], error) {
	// A run that comes again must find the results as they were.
	outcomes := make([][]result, len(batch))
	for i, s := range batch {
		outcomes[i] = copyResults(s.results)
	}
	chunks, err := m.look(tx, batch, outcomes, trusting)
	if err != nil {
		return nil, err
	}
	verdicts := make([]lane.Verdict[stepped], len(batch))
	counts := tallies{}
	var refunds []ledger.Transfer
	writes := newStepWrites()
	for i, s := range batch {
		at, there := chunks[s.key()]
		switch {
		case !there && s.last: // committed before, or another owner's end: over either way
			writes.finish(s.job)
			continue
		case there && at.turn == s.next && !s.still(): // committed before
			if s.leaves {
				writes.finish(s.job)
			}
			continue
		case !there, at.turn != s.turn:
			verdicts[i].Err = errTakenOver
			continue
		}
		c := s.work.campaign
		halted := at.stopped && !s.last && s.inFlight == 0
		verdicts[i].Value.stopped = halted
		back, first := writes.add(s, outcomes[i], halted)
		if s.leaves && !halted {
			rest, err := s.rest()
			if err != nil {
				return nil, err
			}
			writes.rest = append(writes.rest, rest)
		}
		if back > 0 {
			refunds = append(refunds, m.refund(c, back, first))
		}
		if !s.row().goes() {
			continue // the refunds are counted with the turn
		}
		t := counts.of(c.Tenant, c.ID)
		t.back += back
		if s.last || halted {
			t.ended++
		}
	}
	if err := m.giveBack(tx, refunds); err != nil {
		return nil, err
	}
	writes.post(tx)
	counts.post(tx)
	m.jobs.Add(tx, writes.rest...)
	m.jobs.Finish(tx, writes.finished...)
	tx.AfterCommit(func() {
		for job, ended := range writes.ended {
			job.left -= ended
		}
	})
	return verdicts, nil
}

func copyResults(results []result) []result {
	copied := make([]result, len(results))
	for i, r := range results {
		copied[i] = result{message: r.message, parts: slices.Clone(r.parts)}
	}
	return copied
}

// look locks the chunks of a batch, reads which campaigns were stopped, and applies to the results the
// receipts that were quicker than the answers. Trusting, it takes the word of steps that know enough.
func (m *Messaging) look(tx *db.Tx, batch []*step, outcomes [][]result, trusting bool) (map[chunkKey]lockedTurn, error) {
	chunks := map[chunkKey]lockedTurn{}
	asked := map[*turnRow][]chunkKey{}
	for _, s := range batch {
		if trusting && (s.last || s.whole(m.clock.Now())) {
			chunks[s.key()] = lockedTurn{turn: s.turn}
		} else {
			asked[s.row()] = append(asked[s.row()], s.key())
		}
	}
	var queries []db.Query
	for _, row := range turnRows {
		if len(asked[row]) > 0 {
			queries = append(queries, row.lock(asked[row], chunks))
		}
	}
	byID := map[string][]openPart{}
	for _, results := range outcomes {
		for i := range results {
			for p := range results[i].parts {
				if id := results[i].parts[p].UpstreamID; id != "" {
					byID[id] = append(byID[id], openPart{&results[i], p})
				}
			}
		}
	}
	var used []earlyReceipt
	if len(byID) > 0 && m.early.lately(m.clock.Now()) {
		queries = append(queries, earlyQuery(byID, &used))
	}
	if len(queries) > 0 {
		if err := tx.Gather(queries...); err != nil {
			return nil, err
		}
	}
	forgetEarly(tx, used)
	return chunks, nil
}

func newStepWrites() *stepWrites {
	return &stepWrites{moved: map[*turnRow][]chunkTurn{}, over: map[*turnRow][]chunkTurn{}, ended: map[*chunkJob]int{}}
}

// stepWrites collects the rows of a batch.
type stepWrites struct {
	results  []message
	parts    []part
	born     []message
	again    []message
	unsure   []message
	moved    map[*turnRow][]chunkTurn
	over     map[*turnRow][]chunkTurn
	rest     []jobs.Job
	ended    map[*chunkJob]int // chunks of each job that are over with this
	finished []string          // jobs of which that are all
}

// finish ends a job for one of its chunks.
func (w *stepWrites) finish(job *chunkJob) {
	if w.ended[job]++; w.ended[job] == job.left {
		w.finished = append(w.finished, job.id)
	}
}

// add takes one step and says how many messages it gives back and the first of them: those that nobody
// took, and of a stopped campaign those that were not begun.
func (w *stepWrites) add(s *step, results []result, halted bool) (back, first int64) {
	refund := func(msg message) {
		if back == 0 {
			first = msg.No
		}
		back++
	}
	for _, r := range results {
		if halted && r.message.Status == StatusQueued {
			r.message.Status, r.message.Error = StatusFailed, whyStopped
		}
		w.result(r)
		if r.message.unaccepted() {
			refund(r.message)
		}
	}
	turn, over := chunkTurn{chunkKey: s.key(), was: s.turn, turn: s.next, markedAt: s.markedAt}, halted || s.last
	if halted {
		w.halt(s, refund)
	} else {
		turn.begin, w.again = int64(len(s.claim)), append(w.again, s.again...)
	}
	if turn.back = back; over || s.leaves {
		w.finish(s.job)
	}
	switch {
	case !over && s.still(), s.guardedByRows():
	case over:
		w.over[s.row()] = append(w.over[s.row()], turn)
	default:
		w.moved[s.row()] = append(w.moved[s.row()], turn)
	}
	return back, first
}

// result notes what became of a message, which is born with that unless it was queued before.
func (w *stepWrites) result(r result) {
	if r.message.stored {
		w.results = append(w.results, r.message)
	} else {
		w.born = append(w.born, r.message)
	}
	for _, p := range r.parts {
		if !p.Single {
			w.parts = append(w.parts, p)
		}
	}
	if r.message.Status == StatusUnknown && r.message.Accepted == 0 {
		w.unsure = append(w.unsure, r.message)
	}
}

const whyStopped = "the campaign was stopped"

// halt ends what a stopped campaign has not begun: rows that wait, and recipients without a row.
func (w *stepWrites) halt(s *step, refund func(message)) {
	for _, msg := range s.work.again {
		w.again = append(w.again, msg)
		msg.Status, msg.Error = StatusFailed, whyStopped
		w.results = append(w.results, msg)
		refund(msg)
	}
	for place := s.work.next; place < len(s.work.chunk.Recipients); place++ {
		msg := s.work.message(place, StatusFailed, s.work.chunk.CreatedAt)
		msg.Error = whyStopped
		w.born = append(w.born, msg)
		refund(msg)
	}
}

func (w *stepWrites) post(tx *db.Tx) {
	guarded := func(sql string, columns []db.Column[message], rows []message) {
		if len(rows) > 0 {
			tx.Defer(sql, int64(len(rows)), db.RowsOf(columns, rows))
		}
	}
	// The chunks first, as whoever takes one over does: nobody waits for the other in a ring.
	for _, row := range turnRows {
		row.moveAll(tx, w.moved[row], w.over[row])
	}
	guarded(markAgain, againColumns, w.again)
	guarded(recordResults, resultColumns, w.results)
	db.Insert(tx, "parts", partColumns, w.parts)
	db.Insert(tx, "unsure", unsureColumns, w.unsure)
	db.Insert(tx, "messages", messageColumns, w.born)
}

// refund is the transfer that gives messages of a campaign back. The leg names the first of them: a
// message is given back once, by the guard of its row, so that no two transfers name the same.
func (m *Messaging) refund(c Campaign, messages, first int64) ledger.Transfer {
	t := tenant.Tenant{ID: c.Tenant, Mode: c.Mode}
	return ledger.Transfer{Asset: t.Credits(), From: ledger.Used, To: ledger.Credits(c.Tenant), Amount: messages * c.Credits,
		Subject: c.ID, Leg: fmt.Sprintf("refund:%d", first), Kind: "sms_refund", At: m.clock.Now()}
}

// giveBack posts refunds; only then are credits locked.
func (m *Messaging) giveBack(tx *db.Tx, refunds []ledger.Transfer) error {
	if len(refunds) == 0 {
		return nil
	}
	keys := make([]ledger.Key, len(refunds))
	for i, r := range refunds {
		keys[i] = ledger.Key{Asset: r.Asset, ID: r.To}
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
