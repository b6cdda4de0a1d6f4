package payments

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A client disconnects during the commit of its purchase, which runs again. The second run writes the requested
// top-up.
func TestAirtimeBuy_clientGone(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		h.second.script(always(pending), always(success))
		request := n.airtime()
		request.Reference = h.reference()
		reached, left := make(chan struct{}), make(chan struct{})
		var once sync.Once
		f.Decide(func(b db.Boundary) (fault db.Fault) {
			if b == db.BoundaryCommit {
				once.Do(func() {
					close(reached)
					<-left
					fault = db.FaultConflict
				})
			}
			return fault
		})
		ctx, leave := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, _, _, err := n.AirtimeBuy(ctx, h.caller(), request)
			answer <- err
		}()
		<-reached
		leave()
		err := <-answer
		close(left)
		if !errors.Is(err, db.ErrAmbiguous) {
			t.Fatalf("the client that left was answered %v", err)
		}
		var pay book.Payment
		clocktest.Await(t, "the payment of the second run", func() bool {
			pay, err = n.Status(t.Context(), h.tenant.ID, request.Reference)
			return err == nil
		})
		n.quiet()
		topUp, err := n.StatusTopUp(t.Context(), h.tenant.ID, request.Reference)
		if err != nil || topUp.ID != pay.Child || topUp.Parent != pay.ID || topUp.Tenant != h.tenant.ID || topUp.Account != string(request.Destination) || topUp.Amount != request.Amount {
			t.Errorf("the top-up is %+v, %v", topUp, err)
		}
		n.books()
	})
}
