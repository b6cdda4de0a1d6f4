package book

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lane"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/webhook"
)

// A batch is one transaction of a lane. It reads everything that its verdicts
// need in one exchange, judges each request in Go, in order, and defers every
// write to the exchange of the COMMIT.
type batch struct {
	book  *Book
	shard int
	ops   []*Op
	// blind: the settlements are judged by what memory says of their rows, and
	// the guards of the writes hold it to the truth.
	blind bool

	verdicts []lane.Verdict[Result]
	page     *ledger.Page
	ends     history.Ends
	today    int64
	spending spending
	// What was read, or is about to be written.
	rows        map[string]*Payment
	touched     map[string]bool
	byReference map[referenceKey]*Payment
	byKey       map[idempotencyKey]*Payment
	// What is to be written.
	inserts []*Payment
	moves   []move
	marks   []Mark
	turns   []contradiction
	left    []abandonedAttempt
	// contradictions are words against a payment's last one.
	contradictions []contradicted
	released       []*Payment // that let go of their Idempotency-Keys
	jobs           []jobs.Job
	opened         []openPayment
	finished       []string
	closed         []string
	events         []webhook.Event
	stopped        []string
	looks          []Recheck
	tally          history.Tally
	also           []func(*db.Tx) error
}

// The locks are taken in the order of the key.
const paymentsLocked = `SELECT ` + paymentColumns + ` FROM payments WHERE id IN (SELECT value FROM texts($1)) ORDER BY id FOR UPDATE`

// runBatch commits a batch. Settlements that touch no wallet are first tried
// without reading: a lone owner knows its rows, and where it does not, a guard
// refuses and the batch is judged by what is read.
func (bk *Book) Commit(ctx context.Context, shard int, ops []*Op) ([]lane.Verdict[Result], error) {
	b := &batch{book: bk, shard: shard, ops: ops, blind: blind(ops)}
	err := bk.db.WriteRecognising(ctx, b.landed, b.run)
	if b.blind && errors.Is(err, db.ErrGuard) {
		b.blind = false
		err = bk.db.WriteRecognising(ctx, b.landed, b.run)
	}
	return b.verdicts, err
}

// blind says whether a batch is of settlements alone whose writes say by their
// guards whether memory was right.
func blind(ops []*Op) bool {
	for _, o := range ops {
		if o.Settle == nil || !o.Settle.Known || o.Settle.byWallet() || o.Settle.Payment.Child != "" || o.Settle.Also != nil {
			return false
		}
	}
	return true
}

func (b *batch) reset() {
	n := len(b.ops)
	*b = batch{book: b.book, shard: b.shard, ops: b.ops, blind: b.blind,
		verdicts:    make([]lane.Verdict[Result], n),
		ends:        history.Ends{},
		today:       clock.Day(b.book.clock.Now()),
		spending:    spending{},
		rows:        make(map[string]*Payment, n),
		touched:     make(map[string]bool, n),
		byReference: make(map[referenceKey]*Payment, n),
		byKey:       map[idempotencyKey]*Payment{},
		tally:       history.Tally{},
	}
}

// run is the transaction. It may run more than once.
func (b *batch) run(tx *db.Tx) error {
	b.reset()
	if err := b.gather(tx); err != nil {
		return err
	}
	for i, o := range b.ops {
		var r Result
		var err error
		if o.Accept != nil {
			r, err = b.acceptOne(o.Accept)
		} else {
			r, err = b.settleOne(o.Settle)
		}
		var refusal *problem.Error
		if err != nil && !errors.As(err, &refusal) {
			return err // a fault of the program: the lane finds out whose
		}
		b.verdicts[i] = lane.Verdict[Result]{Value: r, Err: err}
	}
	return b.write(tx)
}

// gather reads, in one exchange: the wallets' locks first, then the ends of the
// lists, then the rows.
func (b *batch) gather(tx *db.Tx) error {
	wallets := map[ledger.Key]bool{}
	references := map[string]bool{}
	keys := map[idempotencyKey]bool{}
	rows := map[string]bool{}
	for _, o := range b.ops {
		if a := o.Accept; a != nil {
			b.note(a.Payment, wallets, references, keys)
			if a.Child != nil {
				b.note(*a.Child, wallets, references, keys)
			}
			if a.limited() {
				b.spending[spenderOf(a.Payment)] = &spent{}
			}
			continue
		}
		pay := o.Settle.Payment
		if b.blind {
			if b.rows[pay.ID] == nil {
				b.rows[pay.ID] = &pay
			}
			continue
		}
		rows[pay.ID] = true
		if pay.Child != "" {
			rows[pay.Child] = true
		}
		if o.Settle.byWallet() {
			wallets[walletOf(pay)] = true
		}
	}
	var queries []db.Query
	b.page = &ledger.Page{}
	if lock := b.book.ledger.OpenQuery(tx, keysOf(wallets), b.page); lock.SQL != "" {
		queries = append(queries, lock)
	}
	if len(b.ends) > 0 {
		queries = append(queries, b.ends.LockQuery())
	}
	if len(b.spending) > 0 {
		queries = append(queries, b.spending.query(b.today))
	}
	if len(references) > 0 {
		queries = append(queries, db.Query{SQL: byOwnReference, Args: []any{keysOf(references)}, Each: b.scan(func(p *Payment) {
			b.byReference[referenceOf(*p)] = p
		})})
	}
	if len(keys) > 0 {
		queries = append(queries, db.Query{SQL: paymentsByKey, Args: []any{db.RowsOf(idempotencyColumns, keysOf(keys))}, Each: b.scan(func(p *Payment) {
			b.byKey[idempotencyOf(*p)] = p
		})})
	}
	if len(rows) > 0 {
		queries = append(queries, db.Query{SQL: paymentsLocked, Args: []any{keysOf(rows)}, Each: b.scan(func(p *Payment) {
			b.rows[p.ID] = p
		})})
	}
	return tx.Gather(queries...)
}

// note says what must be read before a payment can be accepted.
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

func keysOf[K comparable](set map[K]bool) []K {
	keys := make([]K, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	return keys
}

func (b *batch) scan(keep func(*Payment)) func(*db.Row) error {
	return func(r *db.Row) error {
		p, err := scanPayment(r)
		if err != nil {
			return err
		}
		keep(&p)
		return nil
	}
}

// write defers everything, in the order in which it may lock: the wallets (the
// ledger's page), the ends and the rows of payments, then the jobs.
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
	db.Insert(tx, "payment_looks", recheckColumns, b.looks)
	inserts, moves := b.inserts, b.moves
	tx.AfterCommit(func() { b.book.counts.committed(inserts, moves) })
	if n := len(inserts); n > 0 {
		b.book.watch.Commits(tx, b.shard, recovery.Payment, inserts[n-1].Tenant, inserts[n-1].ID)
	}
	if err := b.book.webhooks.Queue(tx, b.events...); err != nil {
		return err
	}
	// Before the jobs become visible to their handlers.
	if len(b.opened) > 0 || len(b.closed) > 0 {
		opened, closed := b.opened, b.closed
		tx.AfterCommit(func() {
			for _, o := range opened {
				b.book.hooks.Opened(o.memo, o.row)
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
	for _, also := range b.also {
		if err := also(tx); err != nil {
			return err
		}
	}
	return nil
}

// landed says, after an answer to COMMIT was lost, whether the batch is in the
// database: all of it is or nothing, so that one row of it is proof. The rows
// are locked first, which waits for the transaction in doubt.
func (b *batch) landed(tx *db.Tx) (bool, error) {
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
		return b.stands(tx, m.row, func(is Payment) bool { return is.Status == m.row.Status && is.SettledAt.Equal(m.row.SettledAt) })
	case len(b.turns) > 0:
		m := b.turns[0]
		return b.stands(tx, m.row, func(is Payment) bool {
			return is.ContradictedAt.Equal(m.row.ContradictedAt) && is.LastWord == m.row.LastWord
		})
	case len(b.marks) > 0:
		m := b.marks[0]
		return b.stands(tx, m.Row, func(is Payment) bool {
			return is.Attempt == m.Row.Attempt && is.Posts == m.Row.Posts && is.SendingAt.Equal(m.Row.SendingAt) && is.EscalatedAt.Equal(m.Row.EscalatedAt) && is.HeldUntil.Equal(m.Row.HeldUntil) &&
				is.Refusal == m.Row.Refusal && is.RefusedAt.Equal(m.Row.RefusedAt)
		})
	}
	return false, nil // nothing was written
}

func (b *batch) stands(tx *db.Tx, row Payment, same func(Payment) bool) (there bool, err error) {
	err = tx.Query(paymentsLocked, []any{[]string{row.ID}}, b.scan(func(is *Payment) { there = same(*is) }))
	return there, err
}

// postings adds the transfers of an arrow to the page: all or none.
func (b *batch) postings(way Arrow, p Payment, at time.Time) error {
	transfers := make([]ledger.Transfer, 0, len(way.Postings))
	for _, posting := range way.Postings {
		if amount := b.sum(posting.Sum, p); amount > 0 {
			transfers = append(transfers, transfer(p, way.Event, posting.Leg, account(posting.From, p), account(posting.To, p), amount, at))
		}
	}
	return b.add(p, transfers...)
}

func (b *batch) add(p Payment, transfers ...ledger.Transfer) error {
	if err := b.page.Add(transfers...); err != nil {
		return fmt.Errorf("book: post %s %s: %w", p.Kind, p.ID, err)
	}
	return nil
}

func transfer(p Payment, e Event, leg string, from, to ledger.AccountID, amount int64, at time.Time) ledger.Transfer {
	return ledger.Transfer{
		Asset: asset(p.Mode), From: from, To: to, Amount: amount,
		Subject: p.ID, Leg: leg, Kind: string(p.Kind) + " " + string(e), At: at,
	}
}

// sum is what a posting moves.
func (b *batch) sum(s Sum, p Payment) int64 {
	switch s {
	case SumAmount:
		return int64(p.Amount)
	case SumCharges:
		return int64(p.Charges)
	case SumHeld:
		return int64(p.Held())
	case SumNet:
		return int64(p.Net())
	case SumCovered:
		return b.covered(p)
	case SumRest:
		return int64(p.Net()) - b.covered(p)
	}
	panic("book: a posting of " + string(s))
}

// account is the ledger account behind a place.
func account(at Place, p Payment) ledger.AccountID {
	switch at {
	case PlaceWallet:
		return ledger.Wallet(p.Tenant)
	case PlaceOther:
		return ledger.Wallet(p.Details.To)
	case PlaceClearing:
		return ledger.Clearing
	case PlaceFloat:
		return ledger.Float(p.Rail)
	case PlaceFees:
		return ledger.Fees
	case PlaceSuspense:
		return ledger.Suspense
	case PlaceReceivable:
		return ledger.Receivable(p.Tenant)
	}
	panic("book: no account is called " + string(at))
}

func errNoArrow(p Payment, e Event) error {
	return fmt.Errorf("book: %s %s cannot be %s", p.Status, p.Kind, e)
}
