package book

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Draw accepts the payments of a drawing in the group commit of the tenant's wallet. A payment whose Reference exists
// already gets a Duplicate as its result. Draw returns a refusal of Lock, or InProgress.
func (bk *Book) Draw(ctx context.Context, tenant string, d *Drawing) error {
	_, err := bk.committers.wallet(tenant).DoBulk(ctx, tenant, rowsOf*len(d.Payments)+1, &Op{Draw: d})
	return err
}

// lockReserves locks the rows of the batches whose reserves pay, in the order of their ids. It runs after the locks
// of wallets and lists.
func (b *batch) lockReserves(tx *db.Tx) error {
	var drawings []*Drawing
	for _, o := range b.ops {
		if o.Draw != nil {
			drawings = append(drawings, o.Draw)
		}
	}
	slices.SortStableFunc(drawings, func(x, y *Drawing) int { return cmp.Compare(x.Batch, y.Batch) })
	for _, d := range drawings {
		if b.reserves[d.Batch] != nil {
			continue
		}
		r := &reserve{by: d}
		var refusal *problem.Error
		rest, err := d.Lock(tx)
		if errors.As(err, &refusal) {
			r.refusal, err = refusal, nil
		}
		if err != nil {
			return err
		}
		r.rest = rest
		b.reserves[d.Batch] = r
	}
	return nil
}

// drawOne decides a drawing. The transaction has taken all locks. drawOne adds all writes, or returns a refusal and
// adds none.
func (b *batch) drawOne(d *Drawing) error {
	r := b.reserves[d.Batch]
	switch {
	case r.by != d:
		return problem.New(problem.InProgress, "batch_in_progress", "Another request is accepting rows of this batch. Try again shortly")
	case r.refusal != nil:
		return r.refusal
	}
	rest := r.rest
	for _, pay := range d.Payments {
		if b.byReference[referenceOf(pay)] == nil {
			rest -= pay.Held()
		}
	}
	if rest < 0 {
		return problem.New(problem.Internal, "reserve_short", "The reserve of the batch does not cover its rows")
	}
	drawn := make([]Drawn, len(d.Payments))
	for i, pay := range d.Payments {
		if old := b.byReference[referenceOf(pay)]; old != nil {
			drawn[i] = Drawn{Refused: duplicate(*old)}
			continue
		}
		if err := b.open(&pay, EventDrawn); err != nil {
			return err
		}
		b.job(pay)
		drawn[i] = Drawn{Payment: pay}
	}
	b.inTx = append(b.inTx, func(tx *db.Tx) error { return d.Write(tx, drawn) })
	return nil
}

// SpendToday adds amount to a key's spending of today, or refuses if the sum would exceed daily. The caller must have
// locked the wallet.
func (bk *Book) SpendToday(tx *db.Tx, tenant, key string, daily, amount money.Pesewas) error {
	a := &Acceptance{Payment: Payment{Tenant: tenant, Key: key}, Daily: daily}
	all, today := spending{spenderOf(a.Payment): &spent{}}, clock.Day(bk.clock.Now())
	if err := tx.Gather(all.query(today)); err != nil {
		return err
	}
	if err := all.take(a, amount); err != nil {
		return err
	}
	all.deferWrites(tx, today)
	return nil
}
