package delivery

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// stepWrites collects the rows that a batch of steps writes.
type stepWrites struct {
	results  []message
	parts    []part
	inserted []message
	retry    []message
	unknown  []message
	moved    map[*turnRow][]chunkTurn
	over     map[*turnRow][]chunkTurn
	rest     []jobs.Job
	ended    map[*chunkJob]int // number of ended chunks by job
	finished []string          // jobs whose last chunk has ended
}

func newStepWrites() *stepWrites {
	return &stepWrites{moved: map[*turnRow][]chunkTurn{}, over: map[*turnRow][]chunkTurn{}, ended: map[*chunkJob]int{}}
}

const (
	committedRows = `SELECT 1 FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id AND m.no = 0
		WHERE c.tenant = $1 AND c.id = $2 AND c.turn = $3`
	recordResults = `UPDATE messages SET status = r.to_status, accepted = r.to_accepted, open = r.to_open, submitted_at = r.at,
		delivered_at = r.delivered, error = r.why, upstream_id = r.to_upstream FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no AND messages.status = 'sending'`
	claimAgain = `UPDATE messages SET status = 'sending', submitted_at = r.at FROM rows($1) AS r
		WHERE messages.tenant IN (r.of_tenant) AND messages.campaign = r.of_campaign AND messages.no = r.of_no AND messages.status = 'queued'`
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

// finish ends one chunk of a job, and the job with its last chunk.
func (w *stepWrites) finish(job *chunkJob) {
	if w.ended[job]++; w.ended[job] == job.left {
		w.finished = append(w.finished, job.id)
	}
}

// add adds a step's rows. It returns the number of refunded messages and the place of the first. Messages that no
// mobile operator accepted are refunded, as are the unsent messages of a stopped campaign.
func (w *stepWrites) add(s *step, results []result, stopped bool) (back, first int64) {
	refund := func(msg message) {
		if back == 0 {
			first = msg.No
		}
		back++
	}
	for _, r := range results {
		if stopped && r.message.Status == StatusQueued {
			r.message.Status, r.message.Error = StatusFailed, whyStopped
		}
		w.result(r)
		if r.message.unaccepted() {
			refund(r.message)
		}
	}
	turn, over := chunkTurn{chunkKey: s.key(), was: s.turn, turn: s.next, claimedAt: s.claimedAt}, stopped || s.last
	if stopped {
		w.failUnsent(s, refund)
	} else {
		turn.begin, w.retry = int64(len(s.claim)), append(w.retry, s.retry...)
	}
	if turn.back = back; over || s.leaves {
		w.finish(s.job)
	}
	switch {
	case !over && s.empty(), s.guardedByRows():
	case over:
		w.over[s.row()] = append(w.over[s.row()], turn)
	default:
		w.moved[s.row()] = append(w.moved[s.row()], turn)
	}
	return back, first
}

// result adds the result of a message. It inserts the message's row, or updates the row of a message that was queued
// before.
func (w *stepWrites) result(r result) {
	if r.message.stored {
		w.results = append(w.results, r.message)
	} else {
		w.inserted = append(w.inserted, r.message)
	}
	for _, p := range r.parts {
		if !p.Single {
			w.parts = append(w.parts, p)
		}
	}
	if r.message.Status == StatusUnknown && r.message.Accepted == 0 {
		w.unknown = append(w.unknown, r.message)
	}
}

// failUnsent fails the messages of a stopped campaign that were not submitted: queued messages, and recipients
// without a row.
func (w *stepWrites) failUnsent(s *step, refund func(message)) {
	for _, msg := range s.work.retry {
		w.retry = append(w.retry, msg)
		msg.Status, msg.Error = StatusFailed, whyStopped
		w.results = append(w.results, msg)
		refund(msg)
	}
	for place := s.work.next; place < len(s.work.chunk.Recipients); place++ {
		msg := s.work.message(place, StatusFailed, s.work.chunk.CreatedAt)
		msg.Error = whyStopped
		w.inserted = append(w.inserted, msg)
		refund(msg)
	}
}

func (w *stepWrites) deferAll(tx *db.Tx) {
	guarded := func(sql string, columns []db.Column[message], rows []message) {
		if len(rows) > 0 {
			tx.Defer(sql, int64(len(rows)), db.RowsOf(columns, rows))
		}
	}
	// The rows with turns are locked first, as in takeOver, so that transactions cannot deadlock.
	for _, row := range turnRows {
		row.moveAll(tx, w.moved[row], w.over[row])
	}
	guarded(claimAgain, againColumns, w.retry)
	guarded(recordResults, resultColumns, w.results)
	db.Insert(tx, "parts", partColumns, w.parts)
	db.Insert(tx, "unsure", unknownColumns, w.unknown)
	db.Insert(tx, "messages", messageColumns, w.inserted)
}
