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

// Request freezes the rows of a draft, with what each of them costs now. again says why rows are paid that an earlier batch
// paid; without it such a batch is refused.
func (s *Batches) Request(ctx context.Context, tenantID, id, again string) (Batch, error) {
	b, err := s.Get(ctx, tenantID, id)
	if err != nil {
		return Batch{}, err
	}
	if again = usertext.Cut(again, maxReason); again != "" {
		b.Again = again
	}
	if !usertext.Storable(b.Again) {
		return Batch{}, problem.Field("again", "must be plain text")
	}
	if _, err := b.Status.after(eventRequest); err != nil {
		return Batch{}, err
	}
	sum, err := s.freeze(ctx, &b)
	if err != nil {
		return Batch{}, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := s.tenants.Locked(tx, tenantID); err != nil {
			return err
		}
		is, err := lock(tx, tenantID, id)
		if err != nil {
			return err
		}
		if is.version != b.version || is.Status != b.Status {
			return problem.New(problem.InProgress, "batch_moved", "The draft was changed at the same time: look at it again")
		}
		done := b
		if done.Overlap, err = s.mayRepeat(tx, done); err != nil {
			return err
		}
		if done, err = s.coded(tx, done, sum); err != nil {
			return err
		}
		done.Status, done.RequestedAt = Requested, s.clock.Now()
		return s.store(tx, done)
	})
	if err != nil {
		return Batch{}, err
	}
	return s.Get(ctx, tenantID, id)
}

// freeze prices and sums the rows of a draft. It returns the sum of their canonical texts.
func (s *Batches) freeze(ctx context.Context, b *Batch) ([]byte, error) {
	_, plan, err := s.tenants.FeePlan(ctx, b.Tenant, s.clock.Now())
	if err != nil {
		return nil, err
	}
	b.Plan, b.Ready, b.Amount, b.Charges = plan, 0, 0, 0
	sum, digest, bad := sha256.New(), digester{}, 0
	err = s.eachSet(ctx, *b, func(rows []Row) error {
		for _, r := range rows {
			if r.State == RowBad {
				bad++
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
			writeCanonical(sum, *r)
			digest.add(*r)
			if r.Charges != was {
				changed = append(changed, storedRow{batch: b.ID, Row: *r})
			}
		}
		if len(changed) == 0 {
			return nil
		}
		return s.db.Write(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
			_, err := tx.Exec(updateCharges, db.RowsOf(chargeColumns, changed))
			return err
		})
	})
	switch {
	case err != nil:
		return nil, err
	case bad > 0:
		return nil, problem.New(problem.Invalid, "bad_rows", fmt.Sprintf("%d rows cannot be paid: mend or drop them", bad))
	case b.Ready == 0:
		return nil, problem.New(problem.Invalid, "no_rows", "The batch has no rows to pay")
	}
	b.blocks, b.Digest = digest.sums()
	return sum.Sum(nil), nil
}

// errPlan is returned where the fees are not those that the rows were priced by.
var errPlan = problem.New(problem.Invalid, "changed_since", "The fees changed since the batch was requested: withdraw it and request it again")

// mayRepeat counts the rows that earlier batches paid, and refuses them without a reason to pay them again.
func (s *Batches) mayRepeat(tx *db.Tx, b Batch) (rows int, err error) {
	rows, amount, err := s.overlap(tx, b.ID)
	if err == nil && rows > 0 && b.Again == "" {
		err = problem.New(problem.Invalid, "rows_paid_before", fmt.Sprintf("%d of %d rows (GHS %s) were paid by an earlier batch: keep the new rows alone, or say why they are paid again",
			rows, b.Ready, money.Grouped(amount.String())))
	}
	return rows, err
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
	return s.store(tx, b)
}

// Order is the word by which a requested batch begins.
type Order struct {
	Tenant, ID string
	Digest     string // of the rows as the approver saw them
	Reason     string
	Actor      string
}

// Start reserves the money of a requested batch and lets it run. It refuses a batch that is not what the order names, whose fees
// changed, or of which an earlier batch has paid more rows since the request. also runs in the transaction.
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
	return s.reserve(ctx, b, o.Reason, o.Actor, func(tx *db.Tx) error {
		is, err := lock(tx, o.Tenant, o.ID)
		if err != nil {
			return err
		}
		if is.Digest != o.Digest || is.version != b.version {
			return problem.New(problem.Invalid, "changed_since", "The batch was changed since this was made")
		}
		rows, _, err := s.overlap(tx, is.ID)
		switch {
		case err != nil:
			return err
		case rows > is.Overlap:
			return problem.New(problem.Invalid, "changed_since", fmt.Sprintf("Earlier batches paid %d rows of it since this was made", rows-is.Overlap))
		}
		if err := s.payments.SpendToday(tx, caller, is.Total()); err != nil {
			return err
		}
		if is.Status, err = is.Status.after(eventStart); err != nil {
			return err
		}
		is.Rest, is.StartedAt = is.Total(), s.clock.Now()
		if err := s.store(tx, is); err != nil {
			return err
		}
		s.addJob(tx, is)
		if also == nil {
			return nil
		}
		return also(tx, is)
	})
}

// mayStart refuses a batch that cannot begin now.
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
		if err == nil && older { // its check of the books knows no reserve
			err = problem.New(problem.Unavailable, "older_node", "A node of the release before is still running: try again when all nodes are of this one")
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
		return c, problem.New(problem.Forbidden, "key_revoked", "The API key of the batch does not work any more")
	}
	c.Daily = key.Daily
	return c, nil
}
