package books

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/treasury"
)

// Report is the result of a recent check.
type Report struct {
	Found            // problems of this check, and of the last full check
	FullAt time.Time // end of the last full check; zero: there was none
}

// Recent makes the recent check. Before the first full check has ended there is no proof to continue from, so the sums of accounts
// are left to the full check. The same holds after the clock was set back, because new transfers may have times before the end of
// the proof. The proof is then dropped and a full check is requested.
func (b *Books) Recent(ctx context.Context) (Report, error) {
	ctx = db.Bulk(ctx, "")
	var c, full *check
	err := b.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		if c, err = load(tx, recentCheck, true); err == nil {
			full, err = load(tx, fullCheck, false)
		}
		return err
	})
	if err != nil {
		return Report{}, err
	}
	now := b.clock.Now()
	void := c.proven() && c.setBack(now)
	if void {
		c.proof, c.stored, c.forget = ledger.NewProof(), map[ledger.Key]int64{}, true
	}
	r := &recent{Books: b, proof: c.proof, proven: c.proven(), found: newFound(), last: db.Micros(b.clock.Ago(proofEnds))}
	if !r.proven {
		r.proof = ledger.NewProof()
		r.proof.Next = db.Micros(now.Add(-2 * ledger.Overlap))
	}
	kept := ledger.Proof{Next: c.proof.Next, Transfers: c.proof.Transfers, Sums: c.stored}
	r.since = min(r.proof.Next, db.Micros(now.Add(-ledger.Overlap)))
	if err := r.run(ctx); err != nil {
		return Report{}, err
	}
	c.result, c.begunAt, c.endedAt = r.found, now, b.clock.Now()
	if !r.proven || r.found.Count() > 0 {
		c.proof = &kept // nothing is proven past a fault
	}
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		if void {
			tx.Defer(requestInsert, 1, now)
		}
		return c.save(tx)
	})
	if errors.Is(err, db.ErrGuard) || errors.Is(err, db.ErrUnique) {
		err = nil // another node, or the end of a full check, stored a newer one
	}
	all := newFound()
	all.join(r.found)
	all.join(full.result)
	return Report{Found: all, FullAt: full.endedAt}, err
}

// recent is one recent check.
type recent struct {
	*Books
	proof  *ledger.Proof
	proven bool
	since  int64 // microseconds; payments and batches since then are checked
	last   int64 // new end of the proof; zero: the proof is not extended, because the clock was set recently
	found  Found
}

func (r *recent) run(ctx context.Context) error {
	for whole := false; !whole; {
		err := r.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			whole, err = r.proof.Extend(tx, r.last, r.found[Ledger], r.subjects(tx))
			return err
		})
		if err != nil {
			return err
		}
	}
	var differ []ledger.Key
	err := r.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		if differ, err = r.proof.Close(tx, r.found[Ledger], r.subjects(tx)); err != nil {
			return err
		}
		return accounts(tx, r.found, r.since)
	})
	if err != nil {
		return err
	}
	if r.proven {
		if err := r.confirm(ctx, r.proof, differ, r.found); err != nil {
			return err
		}
	}
	if err := r.payments(ctx); err != nil {
		return err
	}
	return r.campaigns(ctx)
}

// subjects returns a check of the payments and campaigns that transfers name.
func (r *recent) subjects(tx *db.Tx) func([]string) error {
	return func(subjects []string) error {
		if err := book.CheckPayments(tx, subjects, r.found[Payments]); err != nil {
			return err
		}
		return delivery.CheckSubjects(tx, subjects, r.found[Messages])
	}
}

// payments checks the payments that were accepted since the last proof, and the lists that they are in.
func (r *recent) payments(ctx context.Context) error {
	first := book.FirstID(time.UnixMicro(r.since))
	for last, n := first, 0; ; {
		err := r.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			last, n, err = book.CheckAfter(tx, last, r.found[Payments])
			return err
		})
		if err != nil {
			return err
		}
		if !book.SetIsFull(n) {
			break
		}
	}
	return r.db.ReadSnapshot(ctx, func(tx *db.Tx) error { return book.CheckLists(tx, first, r.found[Payments]) })
}

// campaigns checks the campaigns that were accepted since the last proof, and those that are not sent yet.
func (r *recent) campaigns(ctx context.Context) error {
	if err := r.campaignsAfter(ctx, "", delivery.CheckWaiting); err != nil {
		return err
	}
	return r.campaignsAfter(ctx, book.FirstID(time.UnixMicro(r.since)), delivery.CheckAfter)
}

// campaignsAfter checks campaigns in sets, each in its own snapshot.
func (r *recent) campaignsAfter(ctx context.Context, last string, set func(tx *db.Tx, after string, found *ledger.Findings) (string, bool, error)) error {
	for whole := false; !whole; {
		err := r.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
			last, whole, err = set(tx, last, r.found[Messages])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// confirm decides whether an account that differs from the sums of a proof is faulty.
func (b *Books) confirm(ctx context.Context, p *ledger.Proof, differ []ledger.Key, found Found) error {
	if len(differ) == 0 {
		return nil
	}
	return b.db.ReadWhole(ctx, func(tx *db.Tx) error { return p.Confirm(tx, differ, found[Ledger]) })
}

// accounts checks the money in transit, the reserves, and the batches that run or that ended since a time. They are
// few, so they need no sets.
func accounts(tx *db.Tx, found Found, since int64) error {
	transit, err := treasury.CheckIn(tx)
	if err != nil {
		return err
	}
	found[Ledger].Join(transit)
	if err := batch.CheckReserves(tx, found[Batches]); err != nil {
		return err
	}
	return batch.CheckSince(tx, since, found[Batches])
}
