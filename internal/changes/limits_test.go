package changes

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// A person may make 30 requests an hour that wait for approval, and 50 in total, also if the requests arrive at once. Other
// people are not limited by these, and requests without an approval do not count.
func TestRequests_areLimitedForEachPerson(t *testing.T) {
	each(t, func(f *fixture) {
		flood := func(n int) (made int64) {
			var all sync.WaitGroup
			var count atomic.Int64
			for range 4 {
				all.Go(func() {
					for i := range n / 4 {
						_, err := f.Fund(context.WithoutCancel(t.Context()), f.requester, newID(), f.tenant.ID, 1_00, newID()+strconv.Itoa(i))
						if err == nil {
							count.Add(1)
						} else if !problem.Is(err, problem.RateLimited) {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			return count.Load()
		}
		if n := flood(40); n != 30 {
			t.Errorf("%d requests in the first hour", n)
		}
		_, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 1_00, "one more")
		f.refused(err, problem.RateLimited, "too_many_of_a_person")
		other := f.join("yaw@example.com", roles.Operations)
		if _, err := f.Fund(t.Context(), other, newID(), f.tenant.ID, 1_00, "of another"); err != nil {
			t.Error(err)
		}
		f.clock.Advance(time.Hour)
		f.requester = f.join("kwame@example.com", roles.Operations) // the session of the first person has ended
		f.tx(func(tx *db.Tx) error {
			_, err := tx.Exec("UPDATE acts SET maker = $1 WHERE maker_name = 'ama@example.com'", f.requester.Visitor.Person.ID)
			return err
		})
		if n := flood(40); n != 20 {
			t.Errorf("%d more requests while 30 wait", n)
		}
		_, err = f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 1_00, "one more")
		f.refused(err, problem.RateLimited, "too_many_open")
	})
}

// While a request waits, the same person, payload and reason return that request. So a form that is sent twice makes one
// request.
func TestRequests_theSameAgain(t *testing.T) {
	each(t, func(f *fixture) {
		ask := func(by By, reason string) Request {
			t.Helper()
			request, err := f.Fund(t.Context(), by, newID(), f.tenant.ID, 50_000_000, reason)
			if err != nil {
				t.Fatal(err)
			}
			return request
		}
		first := ask(f.requester, "slip 17")
		if again := ask(f.requester, "slip 17"); again.ID != first.ID || again.Digest != first.Digest {
			t.Errorf("the same again is another request: %+v", again)
		}
		if slip := ask(f.requester, "slip 18"); slip.ID == first.ID {
			t.Error("another slip is the same request")
		}
		other := f.join("yaw@example.com", roles.Operations)
		if of := ask(other, "slip 17"); of.ID == first.ID {
			t.Error("another person's is the same request")
		}
		f.approved(f.first, first)
		if next := ask(f.requester, "slip 17"); next.ID == first.ID {
			t.Error("what was done is the same request")
		}
		f.has(1)
	})
}

// Payouts from a page that await approval count as requests of their person. Payouts by a key have the limits of the key.
func TestHeldPayouts_areRequestsOfAPerson(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		plan := func(n int, key string) error {
			_, err := f.Store.Planned(t.Context(), sendRule, Request{ID: newID(), Kind: KindSendPayout, Tenant: f.tenant.ID, Place: f.tenant.ID, Amount: 10 * money.Cedi,
				Requester: f.owner.Visitor.Person.ID, Key: key, Payload: []byte(`{"reference":"` + strconv.Itoa(n) + `"}`)})
			return err
		}
		for n := range 30 {
			for range 2 { // a page that is loaded again requests the same payout
				if err := plan(n, ""); err != nil {
					t.Fatal(n, err)
				}
			}
		}
		f.refused(plan(30, ""), problem.RateLimited, "too_many_of_a_person")
		if err := plan(31, "a key"); err != nil {
			t.Error(err)
		}
	})
}
