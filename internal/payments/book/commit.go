package book

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// Commit commits a batch. If the batch has only settlements that lock no wallet, Commit first tries it without
// reading rows. The owner of a job usually has the current row in memory. If a guard fails, the batch runs again and
// reads the rows from the database.
func (bk *Book) Commit(ctx context.Context, shard int, ops []*Op) ([]groupcommit.Verdict[Result], error) {
	b := &batch{book: bk, shard: shard, ops: ops, optimistic: optimistic(ops)}
	err := bk.db.WriteRecognising(ctx, b.wasCommitted, b.run)
	if b.optimistic && errors.Is(err, db.ErrGuard) {
		b.optimistic = false
		err = bk.db.WriteRecognising(ctx, b.wasCommitted, b.run)
	}
	return b.verdicts, err
}

// optimistic reports whether a batch consists of settlements whose guards detect an outdated copy in memory.
func optimistic(ops []*Op) bool {
	for _, o := range ops {
		if o.Settle == nil || !o.Settle.Known || o.Settle.locksWallet() || o.Settle.Payment.Child != "" || o.Settle.InTx != nil {
			return false
		}
	}
	return true
}

// run is the body of the transaction. It may run more than once.
func (b *batch) run(tx *db.Tx) error {
	b.reset()
	var err error
	if b.split, err = b.book.floats.read(tx, b.book.clock.Now()); err != nil {
		return err
	}
	if err := b.gather(tx); err != nil {
		return err
	}
	if err := b.lockReserves(tx); err != nil {
		return err
	}
	for i, o := range b.ops {
		var r Result
		var err error
		switch {
		case o.Accept != nil:
			r, err = b.acceptOne(o.Accept)
		case o.Draw != nil:
			err = b.drawOne(o.Draw)
		default:
			r, err = b.settleOne(o.Settle)
		}
		var refusal *problem.Error
		if err != nil && !errors.As(err, &refusal) {
			return err // a bug in one request: the group commit retries each request alone to find it
		}
		b.verdicts[i] = groupcommit.Verdict[Result]{Value: r, Err: err}
	}
	return b.write(tx)
}

// gather locks the wallets and then the ends of the lists, and then reads the rows. All are sent in one round trip to
// the database.
func (b *batch) gather(tx *db.Tx) error {
	wallets := map[ledger.Key]bool{}
	references := map[string]bool{}
	keys := map[idempotencyKey]bool{}
	rows, refunded := map[string]bool{}, map[string]bool{}
	for _, o := range b.ops {
		if a := o.Accept; a != nil {
			b.note(a.Payment, wallets, references, keys)
			noteRefund(a, rows, refunded)
			if a.Child != nil {
				b.note(*a.Child, wallets, references, keys)
			}
			if a.limited() {
				b.spending[spenderOf(a.Payment)] = &spent{}
			}
			continue
		}
		if o.Draw != nil {
			for _, pay := range o.Draw.Payments {
				b.note(pay, wallets, references, keys)
			}
			continue
		}
		if a := o.Settle.Refund; a != nil {
			b.note(a.Payment, wallets, references, keys)
			noteRefund(a, rows, refunded)
		}
		pay := o.Settle.Payment
		if b.optimistic {
			if b.rows[pay.ID] == nil {
				b.rows[pay.ID] = &pay
			}
			continue
		}
		rows[pay.ID] = true
		if pay.Child != "" {
			rows[pay.Child] = true
		}
		if pay.RefundOf != "" {
			rows[pay.RefundOf], refunded[pay.RefundOf] = true, true
		}
		if o.Settle.Event == EventReversed && pay.Kind == KindCollection {
			refunded[pay.ID] = true
		}
		if o.Settle.locksWallet() {
			wallets[walletOf(pay)] = true
		}
	}
	var queries []db.Query
	b.page = &ledger.Page{}
	if lock := b.book.ledger.OpenQuery(tx, slices.Collect(maps.Keys(wallets)), b.page); lock.SQL != "" {
		queries = append(queries, lock)
	}
	if len(b.ends) > 0 {
		queries = append(queries, b.ends.LockQuery())
	}
	if len(b.spending) > 0 {
		queries = append(queries, b.spending.query(b.today))
	}
	if len(references) > 0 {
		queries = append(queries, db.Query{SQL: byOwnReference, Args: []any{slices.Collect(maps.Keys(references))}, Each: b.scan(func(p *Payment) {
			b.byReference[referenceOf(*p)] = p
		})})
	}
	if len(keys) > 0 {
		queries = append(queries, db.Query{SQL: paymentsByKey, Args: []any{db.RowsOf(idempotencyColumns, slices.Collect(maps.Keys(keys)))}, Each: b.scan(func(p *Payment) {
			b.byKey[idempotencyOf(*p)] = p
		})})
	}
	if len(rows) > 0 {
		queries = append(queries, db.Query{SQL: paymentsLocked, Args: []any{slices.Collect(maps.Keys(rows))}, Each: b.scan(func(p *Payment) {
			b.rows[p.ID] = p
		})})
	}
	if len(refunded) > 0 { // read after the locks of the collections
		queries = append(queries, refundQuery(slices.Collect(maps.Keys(refunded)), b.refunds))
	}
	return tx.Gather(queries...)
}

// note collects the keys of the rows that an acceptance needs.
func (b *batch) note(p Payment, wallets map[ledger.Key]bool, references map[string]bool, keys map[idempotencyKey]bool) {
	if p.debit() > 0 {
		wallets[walletOf(p)] = true
	}
	if p.Channel == ChannelWallet && !p.Received() {
		wallets[ledger.Key{Asset: asset(p.Mode), ID: ledger.Wallet(p.Details.To)}] = true
	}
	b.ends.Add(listOf(p))
	references[p.ProviderReference] = true
	if p.IdempotencyKey != "" {
		keys[idempotencyOf(p)] = true
	}
}

// noteRefund collects the keys of the rows that a refund needs.
func noteRefund(a *Acceptance, rows, refunded map[string]bool) {
	if of := a.Refunds; of != nil {
		rows[of.ID], refunded[of.ID] = true, true
		if of.Child != "" {
			rows[of.Child] = true
		}
	}
}

// write defers all writes. gather has already locked the wallets and the ends of the lists. Writes go in a fixed
// order, so that concurrent batches cannot deadlock: rows, counter shards, jobs, tenants.
func (b *batch) write(tx *db.Tx) error {
	b.ends.Defer(tx)
	b.spending.deferWrites(tx, b.today)
	if len(b.released) > 0 {
		tx.Defer(keyRelease, int64(len(b.released)), db.RowsOf(releaseColumns, b.released))
	}
	db.Insert(tx, "payments", insertColumns, b.inserts)
	b.deferMoves(tx)
	b.page.Post()
	b.tally.Defer(tx, b.shard)
	db.Insert(tx, "payment_looks", recheckColumns, b.rechecks)
	inserts, moves := b.inserts, b.moves
	tx.AfterCommit(func() { b.book.counts.committed(inserts, moves) })
	if n := len(inserts); n > 0 {
		b.book.watch.Commits(tx, b.shard, recovery.Payment, inserts[n-1].Tenant, inserts[n-1].ID)
	}
	if err := b.book.webhooks.Queue(tx, b.events...); err != nil {
		return err
	}
	// The hooks run before the jobs become visible to their handlers.
	if len(b.opened) > 0 || len(b.closed) > 0 {
		opened, closed := b.opened, b.closed
		tx.AfterCommit(func() {
			for _, row := range opened {
				b.book.hooks.Opened(row)
			}
			for _, id := range closed {
				b.book.hooks.Closed(id)
			}
		})
	}
	b.book.jobs.Finish(tx, b.finished...)
	b.book.jobs.Add(tx, b.jobs...)
	if len(b.stopped) > 0 {
		b.book.tenants.StopPayouts(tx, b.stopped...)
	}
	for _, also := range b.inTx {
		if err := also(tx); err != nil {
			return err
		}
	}
	return nil
}

// deferMoves defers the changes of rows in the order of their ids.
func (b *batch) deferMoves(tx *db.Tx) {
	lowered, raised := b.refundChanges()
	deferRefunds(tx, lowered) // before the reversal of a collection whose refund fails in the same transaction
	if len(b.changes) > 0 {
		slices.SortFunc(b.changes, func(x, y AttemptChange) int { return cmp.Compare(x.Row.ID, y.Row.ID) })
		tx.Defer(paymentsChange, int64(len(b.changes)), db.RowsOf(changeColumns, b.changes))
	}
	if len(b.moves) > 0 {
		slices.SortFunc(b.moves, func(x, y move) int { return cmp.Compare(x.row.ID, y.row.ID) })
		tx.Defer(paymentsMove, int64(len(b.moves)), db.RowsOf(moveColumns, b.moves))
	}
	if len(b.reported) > 0 {
		slices.SortFunc(b.reported, func(x, y reportedChange) int { return cmp.Compare(x.row.ID, y.row.ID) })
		tx.Defer(paymentsReported, int64(len(b.reported)), db.RowsOf(reportedColumns, b.reported))
	}
	deferRefunds(tx, raised) // after the success of a collection that is refunded in the same transaction
	db.Insert(tx, "attempts", abandonedColumns, b.abandoned)
	db.Insert(tx, "payment_contradictions", contradictionColumns, b.contradictions)
}

// wasCommitted reports whether the batch was committed after the response to its COMMIT was lost. It looks for one
// row, which proves the whole batch. Locking that row first waits until the doubtful transaction has ended.
func (b *batch) wasCommitted(tx *db.Tx) (bool, error) {
	switch {
	case len(b.inserts) > 0:
		pay := *b.inserts[0]
		end := history.Ends{}
		end.Add(listOf(pay))
		there := false
		err := tx.Gather(end.LockQuery(), db.Query{SQL: paymentByID, Args: []any{pay.ID, pay.Tenant, pay.Kind}, Each: func(*db.Row) error {
			there = true
			return nil
		}})
		return there, err
	case len(b.moves) > 0:
		m := b.moves[0]
		return b.matches(tx, m.row, func(is Payment) bool { return is.Status == m.row.Status && is.SettledAt.Equal(m.row.SettledAt) })
	case len(b.reported) > 0:
		m := b.reported[0]
		return b.matches(tx, m.row, func(is Payment) bool {
			return is.ContradictedAt.Equal(m.row.ContradictedAt) && is.LastReported == m.row.LastReported
		})
	case len(b.changes) > 0:
		m := b.changes[0]
		return b.matches(tx, m.Row, func(is Payment) bool {
			return is.Attempt == m.Row.Attempt && is.Submissions == m.Row.Submissions && is.SendingAt.Equal(m.Row.SendingAt) && is.EscalatedAt.Equal(m.Row.EscalatedAt) && is.ApprovalDeadline.Equal(m.Row.ApprovalDeadline) &&
				is.Refusal == m.Row.Refusal && is.RefusedAt.Equal(m.Row.RefusedAt) && is.WaitedFor.Equal(m.Row.WaitedFor) && is.VoucherAt.Equal(m.Row.VoucherAt)
		})
	}
	return false, nil // no row to look for: running the batch again repeats no write
}

func (b *batch) matches(tx *db.Tx, row Payment, same func(Payment) bool) (there bool, err error) {
	err = tx.Query(paymentsLocked, []any{[]string{row.ID}}, b.scan(func(is *Payment) { there = same(*is) }))
	return there, err
}
