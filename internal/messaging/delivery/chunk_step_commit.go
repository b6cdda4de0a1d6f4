package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
)

// stepTries is how often a step is tried again after an error, unless the database is unavailable.
const stepTries = 5

// stepCommit commits the steps of all chunks in group commits.
type stepCommit struct {
	db          *db.DB
	ledger      *ledger.Ledger
	jobs        *jobs.Queue
	clock       *clock.Clock
	log         *slog.Logger
	receipts    *receiptBook
	committer   *groupcommit.Committer[*step, stepped]
	uncommitted clock.Seldom // limits the log lines about steps that are tried again
}

func newStepCommit(d Deps, receipts *receiptBook) *stepCommit {
	l := &stepCommit{db: d.DB, ledger: d.Ledger, jobs: d.Jobs, clock: d.Clock, log: d.Log, receipts: receipts}
	l.committer = groupcommit.New(groupcommit.Options{MaxRows: 5_000, Systemic: systemic}, l.advance)
	return l
}

// commit retries a step until it is committed, because the responses of mobile operators are stored nowhere else.
func (l *stepCommit) commit(ctx context.Context, s *step) (stepped, error) {
	rows := 2 + 3*len(s.results) + len(s.claim) + len(s.retry)
	for try := 0; ; try++ {
		done, err := l.committer.Do(context.WithoutCancel(ctx), s.work.campaign.Tenant, rows, s)
		away := errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
		if err == nil || errors.Is(err, errTakenOver) || errors.Is(err, groupcommit.ErrClosed) || !away && try >= stepTries {
			return done, err
		}
		if try == 0 {
			if missed, ok := l.uncommitted.May(l.clock.Now()); ok {
				l.log.WarnContext(ctx, "chunk step not committed, retrying", "campaign", s.work.campaign.ID, "error", err, "others", missed)
			}
		}
		if l.clock.Sleep(ctx, min(leastRetry<<min(try, 8), mostRetry)) != nil {
			return done, err
		}
	}
}

// advance commits a batch of steps in one transaction.
func (l *stepCommit) advance(ctx context.Context, batch []*step) ([]groupcommit.Verdict[stepped], error) {
	var verdicts []groupcommit.Verdict[stepped]
	landed := func(tx *db.Tx) (bool, error) { return stepCommitted(tx, batch) }
	try := func(trusting bool) error {
		return l.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
			var err error
			verdicts, err = l.advanceIn(tx, batch, trusting)
			return err
		})
	}
	// The first attempt does not lock rows: the owner of a chunk knows its turn, which guards the writes. Rows are
	// read and locked only if a guard fails or a message has a row already.
	err := try(true)
	if errors.Is(err, db.ErrGuard) || errors.Is(err, db.ErrUnique) {
		err = try(false)
	}
	return verdicts, err
}

// stepCommitted reports whether a batch was committed, by the turn of one of its chunks. If no step proves it, the
// batch runs again and decides for each step.
func stepCommitted(tx *db.Tx, batch []*step) (bool, error) {
	for _, s := range batch {
		key, sql, want := s.key(), s.row().turn, s.next
		last := key.no
		switch {
		case s.guardedByRows():
			sql, last, want = committedRows, s.turn, 1
		case s.empty(), s.last && s.row().goes():
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

// advanceIn commits a batch in one transaction. If trusting is set, it does not lock the chunks of steps whose writes
// are guarded.
func (l *stepCommit) advanceIn(tx *db.Tx, batch []*step, trusting bool) ([]groupcommit.Verdict[stepped], error) {
	// The results are copied, because the transaction may run again and must find them unchanged.
	outcomes := make([][]result, len(batch))
	for i, s := range batch {
		outcomes[i] = copyResults(s.results)
	}
	chunks, err := l.lockChunks(tx, batch, outcomes, trusting)
	if err != nil {
		return nil, err
	}
	verdicts := make([]groupcommit.Verdict[stepped], len(batch))
	counts := tallies{}
	var refunds []ledger.Transfer
	writes := newStepWrites()
	for i, s := range batch {
		at, there := chunks[s.key()]
		switch {
		case !there && s.last: // committed before, or finished by another owner
			writes.finish(s.job)
			continue
		case there && at.turn == s.next && !s.empty(): // committed before
			if s.leaves {
				writes.finish(s.job)
			}
			continue
		case !there, at.turn != s.turn:
			verdicts[i].Err = errTakenOver
			continue
		}
		c := s.work.campaign
		stopped := at.stopped && !s.last && s.inFlight == 0
		verdicts[i].Value.stopped = stopped
		back, first := writes.add(s, outcomes[i], stopped)
		if s.leaves && !stopped {
			rest, err := s.rest()
			if err != nil {
				return nil, err
			}
			writes.rest = append(writes.rest, rest)
		}
		if back > 0 {
			refunds = append(refunds, refund(c, back, first, l.clock.Now()))
		}
		if !s.row().goes() {
			continue // the write of the turn also counts the refunds
		}
		t := counts.of(c.Tenant, c.ID)
		t.back += back
		if s.last || stopped {
			t.ended++
		}
	}
	if err := postRefunds(tx, l.ledger, refunds); err != nil {
		return nil, err
	}
	writes.deferAll(tx)
	counts.deferAll(tx)
	l.jobs.Add(tx, writes.rest...)
	l.jobs.Finish(tx, writes.finished...)
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

// lockChunks locks the chunks of a batch and reads which campaigns are stopped. It applies receipts that arrived
// before the responses to their submits. If trusting is set, it does not lock the chunks of steps whose writes are
// guarded.
func (l *stepCommit) lockChunks(tx *db.Tx, batch []*step, outcomes [][]result, trusting bool) (map[chunkKey]lockedTurn, error) {
	chunks := map[chunkKey]lockedTurn{}
	asked := map[*turnRow][]chunkKey{}
	for _, s := range batch {
		if trusting && (s.last || s.claimsAll(l.clock.Now())) {
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
	if len(byID) > 0 && l.receipts.times.mayWait(l.clock.Now()) {
		queries = append(queries, earlyReceiptsQuery(byID, &used))
	}
	if len(queries) > 0 {
		if err := tx.Gather(queries...); err != nil {
			return nil, err
		}
	}
	dropEarlyReceipts(tx, used)
	return chunks, nil
}
