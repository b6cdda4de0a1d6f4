package messaging

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
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
