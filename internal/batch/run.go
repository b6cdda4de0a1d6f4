package batch

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

func (s *Batches) register() {
	s.jobs.Register(jobs.Handler{Kind: jobKind, Workers: 4, Tenant: tenantOf, PerTurn: func(string, string) int { return 1 }, Run: func(ctx context.Context, j jobs.Job) jobs.Outcome {
		return s.run(ctx, tenantOf(j), j.Subject)
	}})
}

// run accepts the next rows as bulk work, and ends the batch after the last row. It continues at the position stored
// in the batch's row, so it may run again or twice.
func (s *Batches) run(ctx context.Context, tenant, id string) jobs.Outcome {
	ctx = db.Bulk(ctx, tenant) // single payouts of anybody go first
	b, err := s.Get(ctx, tenant, id)
	if problem.Is(err, problem.NotFound) || err == nil && b.Status != Running {
		return jobs.Done()
	}
	var wait time.Duration
	if err == nil && b.Next > b.Lines {
		err = s.end(ctx, tenant, id, eventFinish, "the batch is done", "the program", nil)
		if problem.Is(err, problem.Invalid) { // the batch was cancelled at the same time
			return jobs.Done()
		}
	} else if err == nil {
		wait, err = s.runBlock(ctx, b)
	}
	if err != nil {
		return jobs.RetryAfter(max(troubleTime, problem.From(err).RetryAfter), err)
	}
	return jobs.Later(wait)
}

// Back-pressure: a batch has at most maxOpen payouts without an outcome. At this limit it tries again after
// openPause.
const (
	maxOpen   = 5000
	openPause = 2 * time.Second
)

// runBlock verifies that the next block equals the approved one, then accepts its rows, set by set. It pauses the batch
// at a lasting cause against its rows. wait is the time until the next run.
func (s *Batches) runBlock(ctx context.Context, b Batch) (wait time.Duration, err error) {
	caller, err := s.sender(ctx, b)
	if problem.Is(err, problem.Forbidden) {
		return 0, s.stopped(ctx, b, CauseKey)
	}
	if err != nil {
		return 0, err
	}
	caller.Daily = 0 // the wallet paid for the whole batch when it started
	open, err := s.payments.OpenOfBatch(ctx, b.ID, s.maxOpen)
	if err != nil || open >= s.maxOpen {
		return openPause, err
	}
	first := (b.Next-1)/blockRows*blockRows + 1
	rows, err := s.rowsOf(ctx, b, first)
	if err != nil {
		return 0, err
	}
	if !b.intact(rows) {
		s.log.Error("batch rows differ from the approved rows", "batch", b.ID, "tenant", b.Tenant, "block", (b.Next-1)/blockRows)
		return 0, s.stopped(ctx, b, CauseAltered)
	}
	end := min(first+blockRows, b.Lines+1) // the first line after the block
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.State != RowReady || r.Line < b.Next })
	for range s.runSets {
		set, next := rows, end
		if most := s.pace.rows(); len(set) > most {
			set, next = rows[:most], rows[most].Line
		}
		begun := time.Now()
		more, err := s.acceptSet(ctx, caller, b, set, next)
		if err == nil && more {
			err = rest(ctx, s.pace.took(len(set), time.Since(begun)))
		}
		if err != nil || !more {
			return 0, err
		}
		b.Next, rows = next, rows[len(set):]
		if len(rows) == 0 {
			return 0, nil
		}
	}
	return 0, nil
}

// acceptSet is accept. more reports whether the whole set is decided.
func (s *Batches) acceptSet(ctx context.Context, caller idempotency.Caller, b Batch, set []Row, next int) (more bool, err error) {
	done, cause, err := s.accept(ctx, caller, b, set, next)
	if problem.Is(err, problem.InProgress) {
		return false, nil // another process continued the batch, or a person stopped it. The next run reads it again
	}
	if err == nil && cause != "" {
		err = s.stopped(ctx, b, Cause(cause))
	}
	return done == len(set) && err == nil, err
}

// stopped pauses a batch whose rows cannot be accepted now. It ignores a batch that was stopped or has ended
// meanwhile.
func (s *Batches) stopped(ctx context.Context, b Batch, cause Cause) error {
	s.log.Warn("batch paused", "batch", b.ID, "tenant", b.Tenant, "cause", string(cause))
	err := s.pause(ctx, b.Tenant, b.ID, cause, nil)
	if problem.Is(err, problem.Invalid) {
		return nil
	}
	return err
}

// intact reports whether the rows of a block are those that were frozen.
func (b Batch) intact(rows []Row) bool {
	if digestOf(b.blocks) != b.Digest {
		return false
	}
	d := digester{}
	for _, r := range rows {
		if r.State == RowReady || r.State == RowAccepted || r.State == RowRefused {
			d.add(r)
		}
	}
	blocks, _ := d.sums()
	if len(blocks) == 0 { // no row of the block is to be paid, so no row of it may have been frozen
		number := strconv.Itoa((b.Next-1)/blockRows) + " "
		return !slices.ContainsFunc(b.blocks, func(block string) bool { return strings.HasPrefix(block, number) })
	}
	return len(blocks) == 1 && slices.Contains(b.blocks, blocks[0])
}

// accept accepts a set of rows in one transaction, up to the first with a cause against it. next is the first
// undecided line.
func (s *Batches) accept(ctx context.Context, caller idempotency.Caller, b Batch, set []Row, next int) (done int, cause payments.RowCause, err error) {
	var locked Batch // the batch as the last run of the transaction locked it
	order := payments.Rows{Caller: caller, Batch: b.ID, Rows: make([]payments.Row, len(set))}
	for i, r := range set {
		order.Rows[i] = payments.Row{Payout: r.payout(b.Code), Charges: r.Charges, Plan: b.Plan, Rail: r.NameRail}
	}
	order.Lock = func(tx *db.Tx) (money.Pesewas, error) {
		is, err := lock(tx, b.Tenant, b.ID)
		if err == nil && (is.Status != Running || is.Next != b.Next) {
			err = problem.New(problem.InProgress, "batch_moved", "The batch was changed at the same time: try again")
		}
		locked = is
		return is.Rest, err
	}
	order.Write = func(tx *db.Tx, results []payments.RowResult) error {
		decided := make([]storedRow, len(results))
		for i, result := range results {
			decided[i] = storedRow{batch: b.ID, Row: decide(set[i], result)}
			if locked.tally != nil {
				locked.replaces(set[i], decided[i].Row)
			}
			if result.Refused == nil {
				locked.Accepted++
				locked.Rest -= result.Payment.Held()
			}
		}
		if locked.Next = next; len(results) < len(set) {
			locked.Next = set[len(results)].Line
		}
		if err := s.store(tx, locked); err != nil {
			return err
		}
		n, err := tx.Exec(updateDecided, db.RowsOf(decidedColumns, decided))
		if err == nil && int(n) != len(decided) {
			err = errors.New("batch: rows of " + b.ID + " were decided before")
		}
		return err
	}
	return s.payments.PayRows(ctx, order)
}

// decide sets the result of a row.
func decide(r Row, result payments.RowResult) Row {
	if result.Refused == nil {
		r.State, r.Payment = RowAccepted, result.Payment.ID
		return r
	}
	r.State, r.Reason = RowRefused, result.Refused.Code
	if names := result.Refused.FieldNames(); len(names) > 0 {
		r.Reason = names[0] + " " + result.Refused.Fields[names[0]][0]
	}
	return r
}

// CircuitOpen reports whether a running batch waits for a provider that fails. A failure that lasts pauses it.
func (s *Batches) CircuitOpen(ctx context.Context, b Batch) (bool, error) {
	if b.Status != Running {
		return false, nil
	}
	var rows []Row
	err := s.db.Read(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) (err error) {
		rows, err = rowsIn(tx, b.ID, b.Next, b.Next+leastRows)
		return err
	})
	n := slices.IndexFunc(rows, func(r Row) bool { return r.State == RowReady })
	if err != nil || n < 0 {
		return false, err
	}
	t, err := s.tenants.Get(ctx, b.Tenant)
	return err == nil && s.payments.CircuitOpen(ctx, t, rows[n].payout(b.Code)), err
}
