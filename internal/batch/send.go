package batch

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// Frozen is a draft whose rows were priced and compared with earlier batches, before its request is stored.
type Frozen struct {
	Batch
	Largest money.Pesewas // amount of a row
	sum     []byte        // hash of the canonical rows
	paid    overlap
}

// Freeze prices the rows of a draft and compares them with earlier batches. again is the reason for paying rows of an
// earlier batch again; without it such a batch is refused. RequestIn stores the request.
func (s *Batches) Freeze(ctx context.Context, tenantID, id, again string) (f Frozen, err error) {
	if f.Batch, err = s.Get(ctx, tenantID, id); err != nil {
		return f, err
	}
	if again = usertext.Cut(again, maxReason); again != "" {
		f.Again = again
	}
	if !usertext.Storable(f.Again) {
		return f, problem.Field("again", "must be plain text")
	}
	if _, err := f.Status.after(eventRequest); err != nil {
		return f, err
	}
	if f.LooksUp() {
		return f, errNamesPending
	}
	if err := s.freeze(ctx, &f); err != nil {
		return f, err
	}
	if err := s.banksNamed(ctx, f.Batch); err != nil {
		return f, err
	}
	if f.paid, err = s.overlapOf(ctx, f.Batch); err != nil {
		return f, err
	}
	f.Overlap = f.paid.rows
	return f, f.mayRepeat(f.paid)
}

// RequestIn stores the request of a frozen draft in tx. It refuses a draft that has changed since, with InProgress.
// The lock of the account's row serializes requests.
func (s *Batches) RequestIn(tx *db.Tx, f Frozen) error {
	if _, err := s.tenants.Locked(tx, f.Tenant); err != nil {
		return err
	}
	is, err := lock(tx, f.Tenant, f.ID)
	if err != nil {
		return err
	}
	if is.version != f.version || is.Status != f.Status {
		return problem.New(problem.InProgress, "batch_moved", "The draft was changed at the same time: reload it")
	}
	if err := f.paid.unmoved(tx, is); err != nil {
		return err
	}
	done, err := s.coded(tx, f.Batch, f.sum)
	if err != nil {
		return err
	}
	done.Status, done.RequestedAt = Requested, s.clock.Now()
	if done.tally.named() > 0 && s.namesAge(done) > nameFresh/2 { // an approver should not wait for the lookup of names
		return s.startNames(tx, done)
	}
	return s.store(tx, done)
}

// freeze computes the fees and sums of the rows of a draft.
func (s *Batches) freeze(ctx context.Context, f *Frozen) error {
	b := &f.Batch
	_, plan, err := s.tenants.FeePlan(ctx, b.Tenant, s.clock.Now())
	if err != nil {
		return err
	}
	b.Plan, b.Ready, b.Amount, b.Charges = plan, 0, 0, 0
	sum, digest, counts := sha256.New(), digester{}, newCounts()
	err = s.eachSet(ctx, *b, func(rows []Row) error {
		for _, r := range rows {
			if r.State != RowReady {
				counts.add(r, 1)
			}
		}
		rows = ready(rows)
		var changed []storedRow
		for i := range rows {
			r := &rows[i]
			was := r.Charges
			var version int64
			var err error
			if r.Charges, version, err = s.tenants.Fee(ctx, b.Tenant, tenant.Payout, r.Channel, r.Amount, s.clock.Now()); err != nil {
				return err
			}
			if version != plan {
				return errPlan
			}
			b.Ready, b.Amount, b.Charges = b.Ready+1, b.Amount+r.Amount, b.Charges+r.Charges
			f.Largest = max(f.Largest, r.Amount)
			writeCanonical(sum, *r)
			digest.add(*r)
			counts.add(*r, 1)
			if r.Charges != was {
				changed = append(changed, storedRow{batch: b.ID, Row: *r})
			}
		}
		if len(changed) == 0 {
			return nil
		}
		_, err := s.db.Exec(db.Bulk(ctx, b.Tenant), updateCharges, db.RowsOf(chargeColumns, changed))
		return err
	})
	switch {
	case err != nil:
		return err
	case counts.Rows[RowBad] > 0:
		return problem.New(problem.Invalid, "bad_rows", fmt.Sprintf("%d rows cannot be paid: correct or drop them", counts.Rows[RowBad]))
	case b.Ready == 0:
		return problem.New(problem.Invalid, "no_rows", "The batch has no rows to pay")
	}
	b.blocks, b.Digest = digest.sums()
	f.sum, b.tally = sum.Sum(nil), &counts
	return nil
}

// errPlan is returned if the fees differ from those with which the rows were priced.
var errPlan = problem.New(problem.Invalid, "changed_since", "The fees changed since the batch was requested: withdraw it and request it again")

// mayRepeat refuses rows that earlier batches paid, unless there is a reason to pay them again.
func (b Batch) mayRepeat(o overlap) error {
	if o.rows == 0 || b.Again != "" {
		return nil
	}
	return problem.New(problem.Invalid, "rows_paid_before", fmt.Sprintf("%d of %d rows (GHS %s) were paid by an earlier batch: keep only the new rows, or give the reason for paying them again",
		o.rows, b.Ready, money.Grouped(o.amount.String())))
}

// Withdraw makes a request a draft again, in the transaction that ends the request.
func (s *Batches) Withdraw(tx *db.Tx, tenantID, id string) error {
	b, err := lock(tx, tenantID, id)
	if err != nil {
		return err
	}
	if b.Status, err = b.Status.after(eventWithdraw); err != nil {
		return err
	}
	b.Digest, b.blocks, b.RequestedAt, b.Plan, b.Overlap = "", nil, noTime, 0, 0
	b.Ready, b.Amount, b.Charges = 0, 0, 0
	b.namesNext, b.Request = 0, ""
	if _, err := tx.Exec(forgetChanged, b.ID); err != nil {
		return err
	}
	b.tally = nil
	if err := b.counted(tx); err != nil {
		return err
	}
	return s.store(tx, b)
}

// Order is the content of a change request that starts a batch.
type Order struct {
	Tenant, ID string
	Digest     string // digest of the rows as the approver saw them
	Reason     string
	Actor      string
}

// Start reserves the money of a requested batch and starts it. It refuses a batch that differs from the order, whose
// fees changed, or of which an earlier batch has paid more rows since the request. also runs in the transaction.
func (s *Batches) Start(ctx context.Context, o Order, also func(*db.Tx, Batch) error) error {
	b, err := s.Get(ctx, o.Tenant, o.ID)
	if err != nil {
		return err
	}
	if _, err := b.Status.after(eventStart); err != nil {
		return err
	}
	caller, err := s.sender(ctx, b)
	if err != nil {
		return err
	}
	if err := s.mayStart(ctx, b); err != nil {
		return err
	}
	if err := s.namesStand(ctx, b); err != nil {
		return err
	}
	return s.withOverlap(ctx, b, func(paid overlap) error {
		if paid.rows > b.Overlap {
			return problem.New(problem.Invalid, "changed_since", fmt.Sprintf("Earlier batches paid %d of its rows since this request", paid.rows-b.Overlap))
		}
		return s.begin(ctx, b, caller, o, paid, also)
	})
}

// begin reserves the money of a batch whose overlap with other batches was read.
func (s *Batches) begin(ctx context.Context, b Batch, caller idempotency.Caller, o Order, paid overlap, also func(*db.Tx, Batch) error) error {
	return s.reserve(ctx, b, o.Reason, o.Actor, func(tx *db.Tx) error {
		is, err := lock(tx, o.Tenant, o.ID)
		if err != nil {
			return err
		}
		if is.Digest != o.Digest || is.version != b.version {
			return problem.New(problem.Invalid, "changed_since", "The batch changed since this request")
		}
		if err := paid.unmoved(tx, is); err != nil {
			return err
		}
		return s.beginIn(tx, is, caller, also)
	})
}

// beginIn starts a batch that was read under its lock, in the transaction that reserves its money.
func (s *Batches) beginIn(tx *db.Tx, b Batch, caller idempotency.Caller, also func(*db.Tx, Batch) error) error {
	if err := s.payments.SpendToday(tx, caller, b.Total()); err != nil {
		return err
	}
	var err error
	if b.Status, err = b.Status.after(eventStart); err != nil {
		return err
	}
	b.Rest, b.StartedAt = b.Total(), s.clock.Now()
	if err := s.store(tx, b); err != nil {
		return err
	}
	s.addJob(tx, b)
	if also == nil {
		return nil
	}
	return also(tx, b)
}

// Submit requests a frozen draft and starts it in one transaction, for a caller whose batches need no approval. also runs in the
// transaction.
func (s *Batches) Submit(ctx context.Context, f Frozen, o Order, also func(*db.Tx, Batch) error) error {
	caller, err := s.sender(ctx, f.Batch)
	if err != nil {
		return err
	}
	if err := s.mayStart(ctx, f.Batch); err != nil {
		return err
	}
	return s.reserve(ctx, f.Batch, o.Reason, o.Actor, func(tx *db.Tx) error {
		if err := s.RequestIn(tx, f); err != nil {
			return err
		}
		b, err := lock(tx, f.Tenant, f.ID)
		if err != nil {
			return err
		}
		return s.beginIn(tx, b, caller, also)
	})
}

// mayStart refuses a batch that cannot start now.
func (s *Batches) mayStart(ctx context.Context, b Batch) error {
	t, err := s.tenants.Get(ctx, b.Tenant)
	switch {
	case err != nil:
		return err
	case t.Blocked:
		return tenant.Blocked()
	case t.PayoutsStopped:
		return tenant.NoPayouts()
	}
	if err := s.notClosed(ctx); err != nil {
		return err
	}
	_, plan, err := s.tenants.FeePlan(ctx, b.Tenant, s.clock.Now())
	if err != nil {
		return err
	}
	if plan != b.Plan {
		return errPlan
	}
	return s.db.Read(ctx, func(tx *db.Tx) error {
		older, err := lease.OlderLives(tx)
		if err == nil && older { // an older node's check of the books does not know the reserve
			err = problem.New(problem.Unavailable, "older_node", "A node of the previous release is still running: try again after all nodes are upgraded")
		}
		return err
	})
}

// sender is the caller on whose behalf a batch is sent. A key that does not work is refused.
func (s *Batches) sender(ctx context.Context, b Batch) (idempotency.Caller, error) {
	c := idempotency.Caller{Tenant: b.Tenant, Key: b.Key}
	if b.Key == "" || s.access == nil {
		return c, nil
	}
	key, err := s.access.Key(ctx, b.Tenant, b.Key)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return c, err
	}
	if err != nil || key.State(s.clock.Now()) != "active" {
		return c, problem.New(problem.Forbidden, "key_revoked", "The API key of the batch was revoked or has expired")
	}
	c.Daily = key.Daily
	return c, nil
}
