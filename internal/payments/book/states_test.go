package book

import (
	"slices"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// The table of transitions is unambiguous and has every transition that the code needs.
func TestTransitions_complete(t *testing.T) {
	type start struct {
		kind  Kind
		from  Status
		event Event
	}
	seen := map[start]bool{}
	b := &batch{book: &Book{}}
	for _, a := range Transitions {
		for _, k := range a.Kinds {
			s := start{k, a.From, a.Event}
			if seen[s] {
				t.Errorf("two transitions for %v", s)
			}
			seen[s] = true
			got, ok := transitionFor(k, a.From, a.Event)
			if !ok || got.Event != a.Event {
				t.Errorf("transition %v not found", s)
			}
			for _, p := range a.Postings {
				b.account(p.From, Payment{Tenant: "t", Rail: "r"})
				b.account(p.To, Payment{Tenant: "t", Rail: "r"})
			}
			// All transitions that settle an open payment post the same leg. The ledger then accepts only one of
			// them.
			if a.From == StatusPending && !a.To[0].Open() && len(a.Postings) > 0 &&
				!slices.ContainsFunc(a.Postings, func(p Posting) bool { return p.Leg == LegFinal }) {
				t.Errorf("%v settles without the leg %s", s, LegFinal)
			}
			// No final payment becomes open again.
			if !a.From.Open() && a.From != "" {
				for _, to := range a.To {
					if to.Open() {
						t.Errorf("%v ends %s", s, to)
					}
				}
			}
		}
	}
	for _, k := range []Kind{KindCollection, KindPayout, KindTopUp, KindBundle} {
		for _, e := range []Event{EventAccepted, EventSucceeded, EventFailed} {
			from := StatusPending
			if e == EventAccepted {
				from = ""
			}
			if !seen[start{k, from, e}] {
				t.Errorf("a %s cannot be %s", k, e)
			}
		}
	}
	if problem.From(duplicate(Payment{Kind: KindPayout})).Message == problem.From(duplicate(Payment{Kind: KindTopUp})).Message {
		t.Error("payouts and top-ups call their references by different names")
	}
}
