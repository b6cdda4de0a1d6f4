package payments

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

const (
	recheckEvery  = 10 * time.Minute
	recheckPause  = 2 * time.Hour         // until a question that was not answered is asked again
	recheckGiven  = 2 * book.RecheckAfter // after which a payment that cannot be asked about is passed over
	recheckBatch  = 100
	recheckSilent = 100 // questions without an answer, after which the provider is not asked again in this sweep
)

// A round is one run of the sweep. A payment without an answer comes again later
// and holds up nothing behind it, and a provider that is silent is left alone
// until the next round.
type round struct {
	c          *rechecker
	began      time.Time
	unanswered map[railKind]int // questions since the last answer
}

// sweep rechecks all that is due. It runs every ten minutes on
// one node.
func (c *rechecker) sweep(ctx context.Context) error {
	r := &round{c: c, began: c.clock.Now(), unanswered: map[railKind]int{}}
	lists, err := c.book.Unswept(ctx)
	for i := 0; err == nil && i < len(lists); i++ {
		err = r.list(ctx, lists[i])
	}
	if err == nil {
		err = r.planned(ctx)
	}
	return err
}

// list rechecks the next payments of a list that are old enough.
func (r *round) list(ctx context.Context, l book.SweptList) error {
	for {
		now := r.c.clock.Now()
		rows, err := r.c.book.After(ctx, l, recheckBatch)
		if err != nil {
			return err
		}
		var ripe []book.Payment
		for _, pay := range rows {
			ahead := pay.CreatedAt.Sub(now) > clock.Skew
			if !ahead && r.c.clock.Passed(pay.CreatedAt) < book.RecheckAfter+book.RecheckSlack {
				break
			}
			ripe = append(ripe, pay)
		}
		if len(ripe) == 0 {
			return ctx.Err()
		}
		// One that is open is followed by its job, and will be late.
		again := r.ask(ctx, ripe, func(pay book.Payment) bool { return pay.Status.Open() || pay.SettledLate() || pay.CreatedAt.After(now) })
		for _, pay := range ripe {
			if pay.CreatedAt.After(now) { // by a clock that ran ahead, at an unknown time
				again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(book.RecheckAfter + book.RecheckSlack)})
			}
		}
		l.Done = ripe[len(ripe)-1].Seq
		err = r.c.book.Swept(ctx, l, again)
		if err != nil || len(ripe) < recheckBatch {
			return err
		}
	}
}

// planned asks again about the payments that have a time of their own for it, as far as that had come when
// the round began.
func (r *round) planned(ctx context.Context) error {
	for {
		due, rows, err := r.c.book.Due(ctx, r.began, recheckBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		early := r.early(due, rows)
		again := r.ask(ctx, rows, func(pay book.Payment) bool {
			return slices.ContainsFunc(early, func(l book.Recheck) bool { return l.ID == pay.ID })
		})
		err = r.c.book.Rechecked(ctx, due, append(again, early...))
		if err != nil || len(due) < recheckBatch {
			return err
		}
	}
}

// early plans anew the rechecks a day after a settlement that are due because the clock was set forward.
func (r *round) early(due []book.Recheck, rows []book.Payment) (again []book.Recheck) {
	now := r.c.clock.Now()
	for _, pay := range rows {
		left := book.RecheckAfter - r.c.clock.Passed(pay.SettledAt)
		planned := func(l book.Recheck) bool {
			return l.ID == pay.ID && !l.Due.Before(pay.SettledAt.Add(book.RecheckAfter))
		}
		if pay.SettledLate() && left > 0 && slices.ContainsFunc(due, planned) {
			again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(left)})
		}
	}
	return again
}

// ask rechecks payments, a few at once, and plans another recheck of what could not
// be asked about, but not for ever. Payments that were not asked about now come before those that
// were.
func (r *round) ask(ctx context.Context, rows []book.Payment, skip func(book.Payment) bool) (again []book.Recheck) {
	answered := make([]bool, len(rows))
	asked := make([]bool, len(rows))
	slots := make(chan struct{}, recheckers)
	var group sync.WaitGroup
	for i, pay := range rows {
		answered[i] = skip(pay)
		if answered[i] || r.unanswered[railKindOf(pay)] >= recheckSilent {
			continue
		}
		asked[i] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var err error
			answered[i], err = r.c.recheck(ctx, pay)
			if err != nil {
				answered[i] = false
				r.c.log.Error("a final payment could not be rechecked", "payment", pay.ID, "error", err)
			}
		})
	}
	group.Wait()
	now := r.c.clock.Now()
	for i, pay := range rows {
		given := r.c.clock.Passed(pay.CreatedAt) > recheckGiven && r.c.clock.Passed(pay.SettledAt) > recheckGiven
		switch {
		case asked[i] && answered[i]:
			r.unanswered[railKindOf(pay)] = 0
		case answered[i]:
		case asked[i]:
			r.unanswered[railKindOf(pay)]++
			if !given {
				again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(recheckPause)})
			}
		default:
			again = append(again, book.Recheck{ID: pay.ID, Due: now.Add(recheckEvery)})
		}
	}
	return again
}
