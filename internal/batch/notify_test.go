package batch

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// receiver receives the events of finished batches of an account.
type receiver struct {
	mu     sync.Mutex
	events map[string][]endEvent // events by the id of the batch
	ids    []string
}

// receives sets the webhook URL of the account, and returns its receiver.
func (n *node) receives() *receiver {
	t := n.f.t
	t.Helper()
	r := &receiver{events: map[string][]endEvent{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var e endEvent
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			t.Errorf("%q: %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[e.ID], r.ids = append(r.events[e.ID], e), append(r.ids, q.Header.Get("webhook-id"))
	}))
	t.Cleanup(server.Close)
	url := server.URL + "/ends"
	n.set(tenant.Change{BatchURL: &url})
	return r
}

// wantOne returns the event of a batch. It fails the test unless the event arrived exactly once.
func (r *receiver) wantOne(t testing.TB, id string) (e endEvent) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.events[id]; len(list) == 1 {
		return list[0]
	}
	t.Errorf("batch %s has the events %+v, of %d ids", id, r.events[id], len(slices.Compact(slices.Sorted(slices.Values(r.ids)))))
	return e
}

// An account with a webhook URL gets one event for each finished batch, with the number of rows by outcome.
func TestEnd_notifiesAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		silent := n.requested("Silent", fileFrom(1, 10))
		if err := n.start(silent); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		r := n.receives()
		paid := n.requested("Salaries", fileFrom(2, 20))
		if err := n.start(paid); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		e := r.wantOne(t, paid.ID)
		ended := n.is(paid.ID).EndedAt.UTC()
		if want := (endEvent{"batch.finished", paid.ID, "Salaries", Finished, 20, paid.Amount.String(), paid.Charges.String(), 20, 0, 0, "0.00", ended}); e != want {
			t.Errorf("got  %+v\nwant %+v", e, want)
		}

		n.pace.most = 5
		n.pauseRail(true)
		stopped := n.requested("Bonuses", fileFrom(3, 20))
		if err := n.start(stopped); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		before := n.is(stopped.ID)
		if err := n.Cancel(t.Context(), stopped.Tenant, stopped.ID, "a mistake", "ama", nil); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		e = r.wantOne(t, stopped.ID)
		if e.Status != Cancelled || e.Accepted != before.Accepted || e.Returned != 20-before.Accepted || e.ReturnedAmount != before.Rest.String() {
			t.Errorf("%+v of %+v", e, before)
		}
		if len(r.events) != 2 {
			t.Errorf("events came of %d batches", len(r.events))
		}
		n.sound()
	})
}

// The event of a batch has its counts, even if an earlier release did not store them.
func TestEnd_countsRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).node("a")
		r := n.receives()
		b := n.requested("Salaries", file(10))
		n.pauseRail(true)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		_, err := n.db.Exec(t.Context(), `UPDATE batches SET tally = '' WHERE id = $1`, b.ID)
		if err == nil {
			err = n.Cancel(t.Context(), b.Tenant, b.ID, "a mistake", "ama", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if e := r.wantOne(t, b.ID); e.Accepted+e.Returned != 10 {
			t.Errorf("%+v", e)
		}
	})
}
