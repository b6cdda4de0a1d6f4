package webhook

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

const (
	payer      = "0241234567"
	payerWhole = "233241234567"
)

// erase erases the payer from a subject's events.
func (r *rig) erase(subject string) (pending bool) {
	r.t.Helper()
	err := r.d.Write(r.t.Context(), func(tx *db.Tx) (err error) {
		pending, err = EraseTexts(tx, "tenant", subject, "erased", payerWhole, payer)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return pending
}

// kept returns everything that the log has about a subject.
func (r *rig) kept(subject string) string {
	r.t.Helper()
	list, err := r.List(r.t.Context(), Filter{Tenant: "tenant", Subject: subject})
	if err != nil || len(list) != 1 {
		r.t.Fatalf("%+v, %v", list, err)
	}
	all := list[0].URL + "\n" + list[0].Body
	tries, err := r.Attempts(r.t.Context(), "tenant", list[0].ID)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range tries {
		all += "\n" + a.Error + a.Answer
	}
	return all
}

// After an erasure the bytes of an event differ, so it is not sent again with the same webhook-id.
func TestErase_eventIsNotSentAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		answer := func(status int) {
			r.inbox.answers(func(_ int, w http.ResponseWriter, q *http.Request) { // the answer repeats the query and the number, as people write it
				w.WriteHeader(status)
				_, _ = io.WriteString(w, q.URL.RawQuery+" 024 123 4567 has no order")
			})
		}
		answer(http.StatusInternalServerError)
		collection := func(e *Event) { e.Kind, e.Phone = Collection, payer }
		inURL := func(e *Event) { e.URL = r.inbox.server.URL + "/hook?payer=%2B" + payerWhole }
		named := func(e *Event) { collection(e); inURL(e) }
		r.send(r.event(1, named), r.event(2, inURL), r.event(3, collection), r.event(4, nil), r.event(5, collection))
		r.quiet()
		for _, subject := range []string{"subject-0001", "subject-0005"} {
			before := r.kept(subject)
			if !r.erase(subject) || r.kept(subject) != before {
				t.Error("an event that is not delivered yet lost what it tells")
			}
		}
		answer(http.StatusOK)
		r.c.Advance(6 * time.Second)
		r.quiet()
		answer(http.StatusGone)
		given := func(n int) Event { return r.event(n, collection) }
		r.send(given(6), r.event(7, nil), given(8), r.event(9, inURL))
		r.quiet()
		for _, n := range []string{"1", "2", "3", "4", "6", "7", "8", "9"} {
			if r.erase("subject-000" + n) {
				t.Errorf("%s waits", n)
			}
			if said := r.kept("subject-000" + n); strings.Contains(said, payer) || strings.Contains(said, payerWhole) || strings.Contains(said, "024 123") {
				t.Errorf("after the erasure %s has %s", n, said)
			}
			r.erase("subject-000" + n) // a repeated erasure does no harm
		}
		if said := r.kept("subject-0004"); !strings.Contains(said, "order=7") || strings.Contains(said, "erased") {
			t.Errorf("an event that names nobody became %s", said)
		}
		if said := r.kept("subject-0005"); !strings.Contains(said, payer) {
			t.Errorf("an event of another payment became %s", said)
		}
		sent := len(r.inbox.all())
		answer(http.StatusOK)
		for _, n := range []string{"1", "2", "3", "6", "8", "9"} {
			if id, err := r.Replay(t.Context(), "tenant", "subject-000"+n, ""); !problem.Is(err, problem.Gone) {
				t.Errorf("a replay of %s: %s, %v", n, id, err)
			}
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := r.ReplayIn(tx, "tenant", "event-0007", "event-0006")
			return err
		})
		if !problem.Is(err, problem.Gone) || !strings.Contains(err.Error(), "event-0006") {
			t.Errorf("a replay of two, of which one is erased: %v", err)
		}
		if r.quiet(); len(r.inbox.all()) != sent {
			t.Errorf("%d requests came of replays that were refused", len(r.inbox.all())-sent)
		}
		if done, err := r.ReplayFailed(t.Context(), "tenant", begin, 2); err != nil || done != (Replayed{Events: 1, Erased: 3}) {
			t.Errorf("a replay of what was given up: %+v, %v", done, err)
		}
		if done, err := r.ReplayFailed(t.Context(), "other", begin, 2); err != nil || done != (Replayed{}) {
			t.Errorf("a replay of another customer's: %+v, %v", done, err)
		}
		if id, err := r.Replay(t.Context(), "tenant", "subject-0004", ""); err != nil || id != "event-0004" {
			t.Errorf("a replay of one that names nobody: %s, %v", id, err)
		}
		r.quiet()
		for _, m := range r.inbox.all()[sent:] {
			if id := m.header.Get("webhook-id"); id != "event-0007" && id != "event-0004" || m.uri != "/hook?order=7" {
				t.Errorf("%s came at %s: %s", id, m.uri, m.body)
			}
		}
		if n := len(r.inbox.all()) - sent; n != 2 {
			t.Errorf("%d were sent again", n)
		}
	})
}
