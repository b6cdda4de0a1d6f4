package batch

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/treasury"
)

// The legs of a batch in the ledger: its money into the reserve, and the rest of it back. Stored; never renamed.
const (
	legReserve = "reserve"
	legRest    = "rest"
)

// reserve moves the money of a batch into its reserve. also runs in the transaction, under the lock of the wallet.
func (s *Batches) reserve(ctx context.Context, b Batch, reason, actor string, also func(*db.Tx) error) error {
	return s.treasury.Move(ctx, treasury.Movement{Asset: b.asset(), From: ledger.Wallet(b.Tenant), To: ledger.Reserve(b.Tenant), Amount: b.Total(),
		Kind: "batch reserve", Subject: b.ID, Leg: legReserve}, reason, actor, also)
}

// noTime is the zero time.
var noTime time.Time

// endTries is the number of tries to end a batch while rows are being accepted.
const endTries = 10

// errRestMoved is returned if rows were accepted after the rest was read.
var errRestMoved = problem.New(problem.InProgress, "batch_moved", "Rows of the batch are being accepted: try again")

// end ends a batch and moves the rest of its reserve back into the wallet. also runs in the same transaction.
func (s *Batches) end(ctx context.Context, tenant, id string, e event, reason, actor string, also func(*db.Tx) error) error {
	for try := 1; ; try++ {
		b, err := s.Get(ctx, tenant, id)
		if err != nil {
			return err
		}
		if _, err := b.Status.after(e); err != nil {
			return err
		}
		ending := func(tx *db.Tx) error { return s.ended(tx, b, e, also) }
		if b.Rest == 0 {
			err = s.db.Write(ctx, ending)
		} else {
			err = s.treasury.Move(ctx, treasury.Movement{Asset: b.asset(), From: ledger.Reserve(b.Tenant), To: ledger.Wallet(b.Tenant), Amount: b.Rest,
				Kind: "batch rest", Subject: b.ID, Leg: legRest}, reason, actor, ending)
		}
		if !problem.Is(err, problem.InProgress) || try == endTries {
			return err
		}
	}
}

// ended stores the end of a batch.
func (s *Batches) ended(tx *db.Tx, read Batch, e event, also func(*db.Tx) error) error {
	b, err := lock(tx, read.Tenant, read.ID)
	if err != nil {
		return err
	}
	if b.Rest != read.Rest || e == eventFinish && b.Next <= b.Lines {
		return errRestMoved
	}
	if b.Status, err = b.Status.after(e); err != nil {
		return err
	}
	b.Rest, b.EndedAt, b.Cause, b.PausedAt = money.Pesewas(0), s.clock.Now(), "", noTime
	if err := s.store(tx, b); err != nil {
		return err
	}
	if err := s.notify(tx, b, read.Rest); err != nil || also == nil {
		return err
	}
	return also(tx)
}
