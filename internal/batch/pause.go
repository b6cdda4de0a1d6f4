package batch

import (
	"context"

	"github.com/makola/makola/internal/db"
)

// Pause pauses a running batch. No row is accepted after Pause returns, and accepted payouts continue. also runs in
// the same transaction, for example to write the entry of the audit log. It may be nil.
func (s *Batches) Pause(ctx context.Context, tenant, id string, also func(*db.Tx) error) error {
	return s.pause(ctx, tenant, id, CausePerson, also)
}

// pause pauses a batch for a cause.
func (s *Batches) pause(ctx context.Context, tenant, id string, cause Cause, also func(*db.Tx) error) error {
	return s.move(ctx, tenant, id, eventPause, func(b *Batch) error {
		b.Cause, b.PausedAt = cause, s.clock.Now()
		return nil
	}, also)
}

// Resume resumes a paused batch. A batch paused by a recovery may resume while the recovery is open. Each of its rows is searched
// at every provider before it is sent.
func (s *Batches) Resume(ctx context.Context, tenant, id string, also func(*db.Tx) error) error {
	return s.resume(ctx, tenant, id, func(Batch) error { return nil }, also)
}

// resume resumes a batch. refuse may return a refusal that depends on the cause of the pause.
func (s *Batches) resume(ctx context.Context, tenant, id string, refuse func(Batch) error, also func(*db.Tx) error) error {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	if _, err := s.sender(ctx, b); err != nil {
		return err
	}
	if err := s.notClosed(ctx); err != nil {
		return err
	}
	return s.move(ctx, tenant, id, eventResume, func(b *Batch) error {
		err := refuse(*b)
		b.Cause, b.PausedAt = "", noTime
		return err
	}, func(tx *db.Tx) error {
		s.addJob(tx, b)
		if also == nil {
			return nil
		}
		return also(tx)
	})
}

// Cancel ends a batch and returns the money of unaccepted rows to the wallet. Accepted payouts continue.
func (s *Batches) Cancel(ctx context.Context, tenant, id, reason, actor string, also func(*db.Tx) error) error {
	return s.end(ctx, tenant, id, eventCancel, reason, actor, also)
}

// move applies a transition that moves no money.
func (s *Batches) move(ctx context.Context, tenant, id string, e event, change func(*Batch) error, also func(*db.Tx) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		b, err := lock(tx, tenant, id)
		if err != nil {
			return err
		}
		if b.Status, err = b.Status.after(e); err != nil {
			return err
		}
		if err := change(&b); err != nil {
			return err
		}
		if err := s.store(tx, b); err != nil || also == nil {
			return err
		}
		return also(tx)
	})
}
