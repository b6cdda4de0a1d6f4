package payments

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// A key spends exactly its daily limit, over all nodes and batches. Repeated requests are answered, other keys are
// independent, and the limit starts anew each day.
func TestDailyLimit_toThePesewa(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		nodes := []*node{h.node("a"), h.node("b")}
		const (
			each  = money.Cedi + 10 // amount of one payout with its charges
			daily = 10*each + each/2
		)
		spend := func(n *node, key, reference string, amount, daily money.Pesewas) error {
			a := n.draft(t, h.tenant, reference, amount)
			a.Payment.Key, a.Daily = key, daily
			_, err := n.accept(t.Context(), a)
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, 24)
		for i := range errs {
			wg.Go(func() { errs[i] = spend(nodes[i%2], "limited", fmt.Sprintf("spending-%06d", i), money.Cedi, daily) })
		}
		wg.Wait()
		n, taken, first := nodes[0], 0, ""
		for i, err := range errs {
			if err == nil {
				taken, first = taken+1, fmt.Sprintf("spending-%06d", i)
			} else if e := wantKind(t, err, problem.Forbidden); e.Code != "daily_limit_reached" {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if taken != 10 {
			t.Errorf("%d were taken of 10 that the limit covers", taken)
		}
		wantKind(t, spend(n, "limited", "rest-too-much-1", each/2-10+1, daily), problem.Forbidden)
		if err := spend(n, "limited", "rest-exactly-1", each/2-10, daily); err != nil {
			t.Errorf("the rest to the pesewa: %v", err)
		}
		wantKind(t, spend(n, "limited", first, money.Cedi, daily), problem.Duplicate)
		for key, limit := range map[string]money.Pesewas{"other": daily, "free": 0} {
			if err := spend(n, key, "key-"+key+"-00001", money.Cedi, limit); err != nil {
				t.Errorf("the key %s: %v", key, err)
			}
		}
		h.clock.Advance(24 * time.Hour)
		if err := spend(nodes[1], "limited", "next-day-0001", daily-10, daily); err != nil {
			t.Errorf("the next day: %v", err)
		}
		wantKind(t, spend(n, "limited", "next-day-0002", money.Cedi, daily), problem.Forbidden)
	})
}
