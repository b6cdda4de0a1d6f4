package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

func TestQueue_newerEventSupersedes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.status(http.StatusInternalServerError)
		first := r.event(1, func(e *Event) { e.Status = "failed" })
		r.send(first, r.event(2, nil))
		r.quiet()
		r.inbox.status(http.StatusOK)
		second := first
		second.ID, second.Status, second.First = "event-newer", "success", false
		r.send(second)
		r.quiet()
		r.c.Advance(100 * time.Hour)
		r.quiet()
		sent := map[string]int{}
		for _, m := range r.inbox.all() {
			sent[m.header.Get("webhook-id")]++
		}
		if sent["event-0001"] != 1 || sent["event-newer"] != 1 || sent["event-0002"] != 2 {
			t.Errorf("sent %v", sent)
		}
		list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: "subject-0001"})
		if err != nil || len(list) != 2 || list[0].ID != "event-newer" || list[0].State != Delivered || list[1].State != Superseded {
			t.Errorf("%+v, %v", list, err)
		}
		if r.jobsLeft() != 0 {
			t.Error("the old event's job is left")
		}
	})
}

func TestQueue_supersededStays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{Timeout: patience})
		arrived, let := make(chan string, 100), make(chan struct{})
		r.inbox.answers(func(_ int, w http.ResponseWriter, q *http.Request) {
			id := q.Header.Get("webhook-id")
			arrived <- id
			if id != "newer" && id != "newest" {
				<-let
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		// An unknown receiver gets this many concurrent requests. A further one waits.
		var events []Event
		for i := range leastAtOnce {
			events = append(events, r.event(i, nil))
		}
		r.send(events...)
		for range leastAtOnce {
			<-arrived
		}
		r.send(r.event(8, nil))
		newer := func(n int, id string) Event {
			return r.event(n, func(e *Event) { e.ID, e.First = id, false })
		}
		r.send(newer(0, "newer"), newer(8, "newest"))
		close(let)
		r.quiet()
		for len(arrived) > 0 {
			if id := <-arrived; id == "event-0008" {
				t.Error("an event was sent although a newer one had taken its place")
			}
		}
		for n, id := range map[int]string{0: "newer", 8: "newest"} {
			list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: fmt.Sprintf("subject-%04d", n)})
			if err != nil || len(list) != 2 || list[0].ID != id || list[0].State != Delivered || list[1].State != Superseded {
				t.Errorf("%+v, %v", list, err)
			}
		}
		// The event's job still waits for the second attempt. A replay is possible anyway.
		r.inbox.status(http.StatusOK)
		if id, err := r.Replay(t.Context(), "tenant", "subject-0000", "event-0000"); err != nil || id != "event-0000" {
			t.Fatal(id, err)
		}
		r.quiet()
		list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: "subject-0000"})
		if err != nil || len(list) != 2 || list[1].State != Delivered {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestQueue_deliveredIsNotSuperseded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.send(r.event(1, nil))
		r.quiet()
		r.send(r.event(1, func(e *Event) { e.ID, e.First, e.Status = "event-0001b", false, "failed" }))
		r.quiet()
		list, err := r.List(t.Context(), Filter{Tenant: "tenant", State: Delivered})
		if err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestSecret_twoSignForADay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		var old, fresh string
		err := d.Write(t.Context(), func(tx *db.Tx) (err error) {
			old, err = r.EnsureSecret(tx, "tenant")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		r.send(r.event(1, nil))
		r.quiet()
		if fresh, err = r.Rotate(t.Context(), "tenant"); err != nil || fresh == old {
			t.Fatal(fresh, err)
		}
		s, err := r.Secret(t.Context(), "tenant")
		if err != nil || s.Current != fresh || s.Former != old || !s.FormerUntil.Equal(begin.Add(Overlap)) {
			t.Fatalf("%+v, %v", s, err)
		}
		r.send(r.event(2, nil))
		r.quiet()
		r.c.Advance(Overlap)
		r.send(r.event(3, nil))
		r.quiet()
		got := r.inbox.all()
		for i, want := range []struct{ old, fresh bool }{{true, false}, {true, true}, {false, true}} {
			if (verify(old, got[i]) == nil) != want.old || (verify(fresh, got[i]) == nil) != want.fresh {
				t.Errorf("message %d: old %v, fresh %v; %s", i+1, verify(old, got[i]), verify(fresh, got[i]), got[i].header.Get("webhook-signature"))
			}
		}
		if s, err := r.Secret(t.Context(), "tenant"); err != nil || s.Former != "" || s.Current != fresh {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestSecret_sealed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		s, err := r.Secret(t.Context(), "tenant")
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Secret(t.Context(), "tenant")
		if err != nil || again != s {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
		other, err := r.Secret(t.Context(), "other")
		if err != nil || other.Current == s.Current {
			t.Fatalf("two tenants share a secret: %v", err)
		}
		var stored []byte
		_, err = d.ReadOne(t.Context(), "SELECT secret FROM webhook_secrets WHERE tenant = $1", []any{"tenant"}, &stored)
		if err != nil {
			t.Fatal(err)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Current, secretPrefix))
		if err != nil || len(key) != secretBytes || strings.Contains(string(stored), string(key)) || strings.Contains(string(stored), s.Current) {
			t.Error("the secret is in the table as it is")
		}
		stranger := newRig(t, d, "b", Options{Secret: master(t, 'x')})
		if _, err := stranger.Secret(t.Context(), "tenant"); !errors.Is(err, errSealed) {
			t.Errorf("another master key opens it: %v", err)
		}
		if _, err := r.open("other", stored); !errors.Is(err, errSealed) {
			t.Errorf("it opens for another tenant: %v", err)
		}
	})
}

func TestReplay_endedEvents(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.status(http.StatusGone)
		r.send(r.event(1, nil), r.event(2, nil), r.event(3, func(e *Event) { e.Tenant = "other" }))
		r.quiet()
		r.inbox.status(http.StatusInternalServerError)
		if id, err := r.Replay(t.Context(), "tenant", "subject-0001", ""); err != nil || id != "event-0001" {
			t.Fatal(id, err)
		}
		r.quiet()
		// If an event waits for its next attempt, a replay sends it now. It is not sent again at the planned time.
		if id, err := r.Replay(t.Context(), "tenant", "subject-0001", ""); err != nil || id != "event-0001" {
			t.Errorf("replay of what waits: %s, %v", id, err)
		}
		r.quiet()
		if list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: "subject-0001"}); err != nil || list[0].State != Pending || list[0].Attempts != 3 {
			t.Errorf("after the replay of what waits: %+v, %v", list, err)
		}
		r.inbox.status(http.StatusOK)
		r.c.Advance(10 * time.Minute)
		r.quiet()
		if id, err := r.Replay(t.Context(), "tenant", "subject-0001", "event-0001"); err != nil || id != "event-0001" { // the event was delivered
			t.Errorf("%s, %v", id, err)
		}
		r.quiet()
		var first []message
		for _, m := range r.inbox.all() {
			if m.header.Get("webhook-id") == "event-0001" {
				first = append(first, m)
			}
		}
		if len(first) != 5 {
			t.Fatalf("sent %d times", len(first))
		}
		for _, m := range first {
			if m.body != first[0].body {
				t.Error("a replay has another body")
			}
		}
		list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: "subject-0001"})
		if err != nil || list[0].State != Delivered || list[0].Attempts != 5 {
			t.Errorf("%+v, %v", list, err)
		}
		attempts, err := r.Attempts(t.Context(), "tenant", "event-0001")
		if err != nil || len(attempts) != 3 || attempts[0].Number != 1 || attempts[2].Number != 3 {
			t.Errorf("%+v, %v", attempts, err)
		}
		for _, ids := range [][]string{{"nothing"}, {"event-0003"}, {"event-0002", "event-0003"}} {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := r.ReplayIn(tx, "tenant", ids...)
				return err
			})
			if !problem.Is(err, problem.NotFound) {
				t.Errorf("replay of %v: %v", ids, err)
			}
		}
		for _, of := range [][2]string{{"subject-0003", "event-0003"}, {"subject-0001", "event-0002"}, {"subject-0003", ""}, {"", "event-0001"}} {
			if id, err := r.Replay(t.Context(), "tenant", of[0], of[1]); !problem.Is(err, problem.NotFound) {
				t.Errorf("replay of %v: %s, %v", of, id, err)
			}
		}
		if own, err := r.List(t.Context(), Filter{Tenant: "tenant", State: Failed}); err != nil || len(own) != 1 || own[0].ID != "event-0002" {
			t.Errorf("the tenant's own: %+v, %v", own, err)
		}
		many, err := r.ReplayFailed(t.Context(), "tenant", begin.Add(-time.Hour), 10)
		r.quiet()
		if err != nil || many != (Replayed{Events: 1}) {
			t.Errorf("%+v failed ones were replayed, %v", many, err)
		}
		if failed, err := r.List(t.Context(), Filter{State: Failed}); err != nil || len(failed) != 1 || failed[0].Tenant != "other" {
			t.Errorf("%+v, %v", failed, err)
		}
	})
}

func TestDeliver_databaseDown(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		r := newRig(t, d, "a", Options{})
		r.warm()
		r.inbox.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
			f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
			w.WriteHeader(http.StatusOK)
		})
		r.send(r.event(1, nil))
		r.quiet()
		r.c.Advance(troubleTime)
		r.quiet()
		f.Decide(nil)
		if r.one().State != Pending {
			t.Fatal("it was recorded although the database was away")
		}
		r.c.Advance(troubleTime)
		r.quiet()
		if e := r.one(); e.State != Delivered || e.Attempts != 1 || len(r.inbox.all()) != 1 || r.jobsLeft() != 0 {
			t.Errorf("%+v, sent %d times, %d jobs left", e, len(r.inbox.all()), r.jobsLeft())
		}
	})
}

func TestDeliver_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		r := newRig(t, d, "a", Options{})
		r.warm()
		r.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			f.At(db.BoundaryCommit, 1, db.FaultAfter)
			if n == 1 {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		r.send(r.event(1, nil))
		r.quiet()
		if e := r.one(); e.State != Pending || e.Attempts != 1 {
			t.Fatalf("%+v", e)
		}
		r.c.Advance(6 * time.Second)
		r.quiet()
		attempts, err := r.Attempts(t.Context(), "tenant", "event-0001")
		if e := r.one(); e.State != Delivered || e.Attempts != 2 || len(attempts) != 1 || err != nil || len(r.inbox.all()) != 2 {
			t.Errorf("%+v, %+v, sent %d times", e, attempts, len(r.inbox.all()))
		}
	})
}

// TestDeliver_lostCommitThenDatabaseDown: the answer to a COMMIT is lost, and then the database is unreachable for a
// while.
func TestDeliver_lostCommitThenDatabaseDown(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		r := newRig(t, d, "a", Options{})
		r.warm()
		r.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			f.At(db.BoundaryCommit, 1, db.FaultAfter)
			f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
			if n == 1 {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		r.send(r.event(1, nil))
		for attempt, want := range []State{Pending, Delivered} {
			r.quiet()
			f.Decide(nil)
			if e := r.one(); e.State != want || e.Attempts != attempt+1 {
				t.Fatalf("%+v", e)
			}
			r.c.Advance(troubleTime)
			r.quiet()
			if e := r.one(); e.Attempts != attempt+1 || len(r.inbox.all()) != attempt+1 {
				t.Fatalf("%+v, sent %d times", e, len(r.inbox.all()))
			}
			r.c.Advance(4 * time.Second) // the pause starts at the attempt
		}
		attempts, err := r.Attempts(t.Context(), "tenant", "event-0001")
		if len(attempts) != 1 || err != nil || len(r.inbox.all()) != 2 || r.jobsLeft() != 0 {
			t.Errorf("%+v, %v, sent %d times, %d jobs left", attempts, err, len(r.inbox.all()), r.jobsLeft())
		}
	})
}

func TestDeliver_takenOverByOtherNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newRig(t, d, "a", Options{})
		a.inbox.status(http.StatusInternalServerError)
		a.send(a.event(1, nil))
		a.quiet()
		if err := a.q.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.send(a.event(2, nil)) // the last request of the test
		a.inbox.status(http.StatusOK)
		b := newRig(t, d, "b", Options{})
		b.quiet()
		b.c.Advance(6 * time.Second)
		b.quiet()
		list, err := b.List(t.Context(), Filter{Tenant: "tenant", State: Delivered})
		if err != nil || len(list) != 2 || len(a.inbox.all()) != 3 {
			t.Fatalf("%+v, %v; sent %d times", list, err, len(a.inbox.all()))
		}
		if list[1].Attempts != 2 {
			t.Errorf("%+v", list[1])
		}
	})
}

// TestDeliver_attemptCutByShutdown: an attempt that a shutdown interrupts does not count as a failure of the
// receiver. Another node sends the event at once, with all attempts left.
func TestDeliver_attemptCutByShutdown(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newRig(t, d, "a", Options{})
		arrived := make(chan struct{})
		a.inbox.answers(func(n int, w http.ResponseWriter, q *http.Request) {
			if n == 1 {
				close(arrived)
				<-q.Context().Done() // returns when the attempt is cancelled
			}
		})
		a.send(a.event(1, nil))
		<-arrived
		over, end := context.WithCancel(t.Context())
		end()
		if err := a.q.Stop(over); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		attempts, err := a.Attempts(t.Context(), "tenant", "event-0001")
		if e := a.one(); e.State != Pending || e.Attempts != 0 || e.Error != "" || len(attempts) != 0 || err != nil {
			t.Errorf("%+v after the attempts %+v, %v", e, attempts, err)
		}
		b := newRig(t, d, "b", Options{})
		b.quiet()
		if e := b.one(); e.State != Delivered || e.Attempts != 1 || len(a.inbox.all()) != 2 {
			t.Errorf("%+v, sent %d times", e, len(a.inbox.all()))
		}
	})
}

// TestReplay_afterUnwrittenDelivery: a node delivers an event, cannot store that, and loses its lease. Another node
// delivers and stores it. Then the event is replayed.
func TestReplay_afterUnwrittenDelivery(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		a := newRigOn(t, d, jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: 20 * time.Millisecond}, Options{})
		a.warm()
		a.inbox.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				f.Decide(func(db.Boundary) db.Fault { return db.FaultBefore })
			}
			w.WriteHeader(http.StatusOK)
		})
		a.send(a.event(1, nil))
		clocktest.Await(t, "the result to wait", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.unrecorded) == 1
		})
		f.Decide(nil)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			for _, sql := range []string{
				`UPDATE job_leases SET expires_at = 0 WHERE node = 'a' AND expires_at > 0`,
				`UPDATE webhook_events SET state = 'delivered', ended_at = created_at WHERE id = 'event-0001'`,
				`DELETE FROM jobs WHERE id = 'event-0001'`,
			} {
				if n, err := tx.Exec(sql); n != 1 || err != nil {
					return fmt.Errorf("%s: %d rows, %w", sql, n, err)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		clocktest.Await(t, "the loss", func() bool { return a.q.Counts().LeasesLost == 1 && a.q.Counts().LeaseHolds })
		a.c.Advance(time.Second)
		if _, err := a.Replay(t.Context(), "tenant", "subject-0001", "event-0001"); err != nil {
			t.Fatal(err)
		}
		a.quiet()
		if e := a.one(); e.State != Delivered || len(a.inbox.all()) != 2 {
			t.Errorf("%+v, sent %d times", e, len(a.inbox.all()))
		}
	})
}

func TestList_pagesAndFilters(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.answers(func(_ int, w http.ResponseWriter, q *http.Request) {
			if id := q.Header.Get("webhook-id"); id[len(id)-1]%2 == 0 {
				w.WriteHeader(http.StatusGone)
			}
		})
		var events []Event
		for i := range 10 {
			events = append(events, r.event(i, nil))
		}
		r.send(append(events, r.event(20, func(e *Event) { e.Tenant = "other" }))...)
		r.quiet()
		var ids []string
		f := Filter{Tenant: "tenant", Limit: 3}
		for {
			page, err := r.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				ids = append(ids, e.ID[6:])
			}
			f.Before = &page[len(page)-1]
		}
		if want := "[0009 0008 0007 0006 0005 0004 0003 0002 0001 0000]"; fmt.Sprint(ids) != want {
			t.Errorf("%v", ids)
		}
		if list, err := r.List(t.Context(), Filter{Tenant: "tenant", State: Failed}); err != nil || len(list) != 5 {
			t.Errorf("%d failed, %v", len(list), err)
		}
		if list, err := r.List(t.Context(), Filter{State: Failed}); err != nil || len(list) != 6 {
			t.Errorf("%d failed of all tenants, %v", len(list), err)
		}
		if _, err := r.List(t.Context(), Filter{State: Pending}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a list of everything: %v", err)
		}
	})
}

func TestPrune_endedEventsOnly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.answers(func(_ int, w http.ResponseWriter, q *http.Request) {
			switch q.Header.Get("webhook-id") {
			case "event-0001":
				w.WriteHeader(http.StatusGone)
			case "event-0002":
				w.WriteHeader(http.StatusInternalServerError) // the event stays open
			}
		})
		r.send(r.event(1, nil), r.event(2, nil), r.event(3, nil), r.event(4, func(e *Event) { e.Tenant = "other" }))
		r.quiet()
		r.c.Advance(time.Hour)
		r.send(r.event(5, nil))
		r.quiet()
		n, err := r.Prune(t.Context(), begin.Add(time.Minute))
		if err != nil || n != 3 {
			t.Errorf("%d pruned, %v", n, err)
		}
		list, err := r.List(t.Context(), Filter{Tenant: "tenant"})
		if err != nil || len(list) != 2 || list[0].ID != "event-0005" || list[1].ID != "event-0002" {
			t.Errorf("%+v, %v", list, err)
		}
		if attempts, err := r.Attempts(t.Context(), "tenant", "event-0001"); err != nil || len(attempts) != 0 {
			t.Errorf("%+v, %v", attempts, err)
		}
		if attempts, err := r.Attempts(t.Context(), "tenant", "event-0002"); err != nil || len(attempts) == 0 {
			t.Errorf("%+v, %v", attempts, err)
		}
	})
}

func TestSend_untrustedCertificate(t *testing.T) {
	receiver := &inbox{}
	receiver.server = httptest.NewTLSServer(receiver)
	defer receiver.server.Close()
	for _, trusted := range []bool{true, false} {
		o := Options{}
		if trusted {
			o.RootCAs = receiver.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
		r := newRig(t, dbtest.Open(t, db.SQLite), "a", o)
		r.send(r.event(1, func(e *Event) { e.URL = receiver.server.URL }))
		r.quiet()
		if e := r.one(); trusted != (e.State == Delivered) || trusted == strings.Contains(e.Error, "certificate") {
			t.Errorf("trusted %v: %+v", trusted, e)
		}
	}
}

func TestSend_privateAddressInProduction(t *testing.T) {
	in := newInbox(t)
	c := newClient(Options{Timeout: patience})
	for _, out := range []*outbound.Client{c.secure, c.plain} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := out.Do(r, patience); a.Written || a.Err == nil {
			t.Errorf("loopback was dialled: %+v", a)
		}
	}
	a := c.send(t.Context(), &event{url: in.server.URL}, nil, false, time.Now())
	if a.ok() || a.err == nil || len(in.all()) != 0 {
		t.Errorf("%+v", a)
	}
}

// The pages of a tenant's failed events omit none and show none twice, although many events failed at the same
// moment.
func TestFailed_pages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.inbox.status(http.StatusGone)
		const all = 7
		for n := range all {
			r.send(r.event(n, nil), r.event(100+n, func(e *Event) { e.Tenant = "other" }))
		}
		r.quiet()
		seen := map[string]bool{}
		var last *Delivery
		for {
			page, err := r.List(t.Context(), Filter{Tenant: "tenant", State: Failed, Before: last, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				if seen[e.ID] || e.Tenant != "tenant" || e.State != Failed {
					t.Errorf("%+v", e)
				}
				seen[e.ID] = true
			}
			if len(page) < 3 {
				break
			}
			last = &page[2]
		}
		if len(seen) != all {
			t.Errorf("%d of %d were listed", len(seen), all)
		}
	})
}
