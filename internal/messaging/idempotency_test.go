package messaging

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
)

func keyed(key, body string) idempotency.Caller {
	return idempotency.Caller{Tenant: "shop", IdempotencyKey: key, BodyHash: body}
}

// asked is the answer to one request.
type asked struct {
	made     any
	replayed bool
	err      error
}

func told[T any](made T, replayed bool, err error) asked { return asked{made, replayed, err} }

// requests are all requests but campaigns that take an Idempotency-Key.
func requests(h *fixture) map[string]func(idempotency.Caller) asked {
	ctx := h.t.Context()
	group := h.group("shop")
	sent, code := h.mustOTP(OTP{})
	return map[string]func(idempotency.Caller) asked{
		"group": func(c idempotency.Caller) asked { return told(h.AddGroup(ctx, c, "Customers", "")) },
		"contact": func(c idempotency.Caller) asked {
			return told(h.AddContact(ctx, c, group.ID, NewContact{Phone: "0241000001", FirstName: "Ama"}))
		},
		"contacts": func(c idempotency.Caller) asked {
			added, replayed, err := h.AddContacts(ctx, c, group.ID, []NewContact{{Phone: "0241000002"}, {Phone: "0241000002"}, {Phone: "nobody"}})
			added.contacts = nil // those are not told
			return told(added, replayed, err)
		},
		"code": func(c idempotency.Caller) asked {
			replayed, err := h.VerifyOTP(ctx, c, sent.RequestID, ama, code)
			return told("", replayed, err)
		},
	}
}

func TestAKeyIsAnsweredOnce(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		for name, ask := range requests(h) {
			first := ask(keyed("key of "+name, "body"))
			again := ask(keyed("key of "+name, "body"))
			if first.err != nil || first.replayed || again.err != nil || !again.replayed || !reflect.DeepEqual(again.made, first.made) {
				t.Errorf("%s: first %+v, then %+v", name, first, again)
			}
			if other := ask(keyed("key of "+name, "another body")); !problem.Is(other.err, problem.Invalid) || other.replayed {
				t.Errorf("%s, another body: %+v", name, other)
			}
		}
		if n := h.count(`SELECT count(*) FROM contact_groups`); n != 2 { // and the one of the contacts
			t.Errorf("%d groups", n)
		}
	})
}

// Concurrent requests under one key are done once, and all get the same answer.
func TestConcurrentRequestsUnderOneKeyHaveOneAnswer(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		for name, ask := range requests(h) {
			answers := make([]asked, 4) // a code has five tries
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = ask(keyed("key of "+name, "body")) })
			}
			all.Wait()
			firsts := 0
			for _, a := range answers {
				if !a.replayed {
					firsts++
				}
				if a.err != nil || !reflect.DeepEqual(a.made, answers[0].made) {
					t.Errorf("%s: %+v, another has %+v", name, a, answers[0])
				}
			}
			if firsts != 1 {
				t.Errorf("%s was done %d times", name, firsts)
			}
		}
		if n := h.count(`SELECT count(*) FROM contact_groups`); n != 2 {
			t.Errorf("%d groups", n)
		}
	})
}

// A refused request may be repeated, and a key is free after a day, also for another request.
func TestAKeyIsFreeAfterARefusalAndAfterADay(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		refused := errors.Join(
			told(h.AddGroup(t.Context(), keyed("first", "too long"), string(make([]byte, 200)), "")).err,
			told(h.AddContact(t.Context(), keyed("first", "nowhere"), "no group", NewContact{Phone: "0241000001"})).err)
		_, _, bad := h.AddContacts(t.Context(), keyed("first", "nobody"), h.group("shop").ID, []NewContact{{Phone: "nobody"}})
		wantKind(t, bad, problem.Invalid)
		made, replayed, err := h.AddGroup(t.Context(), keyed("first", "body"), "Customers", "")
		if refused == nil || err != nil || replayed {
			t.Fatalf("refused %v, then %v", refused, err)
		}
		if err := h.DeleteGroup(t.Context(), "shop", made.ID); err != nil {
			t.Fatal(err)
		}
		if again, replayed, err := h.AddGroup(t.Context(), keyed("first", "body"), "Customers", ""); err != nil || !replayed || again.ID != made.ID {
			t.Errorf("of a group that is gone: %+v %v", again, err)
		}
		h.pass(idempotency.Window + time.Minute)
		if err := h.answers.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if other, replayed, err := h.AddGroup(t.Context(), keyed("first", "another body"), "Others", ""); err != nil || replayed || other.Name != "Others" {
			t.Errorf("a day later: %+v, replayed %v, %v", other, replayed, err)
		}
	})
}
