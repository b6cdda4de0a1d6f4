package changes

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/treasury"
)

// bearing returns a person with a personal token instead of a browser.
func (f *fixture) bearing(by By) By {
	f.t.Helper()
	text, _, err := f.people.NewPersonalToken(f.t.Context(), by.Visitor, "a test", netip.MustParseAddr("192.0.2.7"))
	if err != nil {
		f.t.Fatal(err)
	}
	if by.Visitor, err = f.people.Bearer(f.t.Context(), text); err != nil {
		f.t.Fatal(err)
	}
	return by
}

func TestToken_requestsOnly(t *testing.T) {
	each(t, func(f *fixture) {
		requester, approver := f.bearing(f.requester), f.bearing(f.first)
		f.clock.Advance(identity.StepUpLasts * 2) // the second factor was given when the token was created
		request, err := f.Fund(t.Context(), requester, newID(), f.tenant.ID, 50_000_000, "paid by bank")
		if err != nil || request.State != Waiting || request.Requester != f.requester.Visitor.Person.ID {
			f.t.Fatalf("%+v, %v", request, err)
		}
		_, err = f.Approve(t.Context(), approver, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "console_only")
		_, err = f.Reject(t.Context(), approver, request.ID, request.Digest, "no")
		f.refused(err, problem.Forbidden, "console_only")
		_, err = f.Fund(t.Context(), approver, newID(), f.tenant.ID, 1, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		f.has(0)
	})
}

// twoApproved lets the necessary number of approvers approve a request.
func (f *fixture) twoApproved(request Request, err error) Request {
	f.t.Helper()
	for _, by := range []By{f.first, f.second} {
		if err == nil && request.State == Waiting {
			request, err = f.Approve(f.t.Context(), by, request.ID, request.Digest)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

// A deposit above the limit of a wallet is refused when it is requested. If the limit is reached later, the approval fails and
// names the limit.
func TestOrder_aboveTheLimitIsRefused(t *testing.T) {
	each(t, func(f *fixture) {
		first, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, money.Most, "paid by bank")
		second, again := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 1, "paid by bank")
		if again != nil {
			t.Fatal(again)
		}
		if done := f.twoApproved(first, err); done.State != Done {
			t.Fatalf("%s: %s", done.State, done.Note)
		}
		if done := f.twoApproved(second, nil); done.State != Failed || !strings.Contains(done.Note, "because an account holds at most") {
			t.Errorf("%s: %s", done.State, done.Note)
		}
		hubtel := treasury.Float{Provider: "hubtel", Mode: f.tenant.Mode}
		if err := f.Treasury.AddFloat(t.Context(), hubtel, 1, "before the test", "ama"); err != nil {
			t.Fatal(err)
		}
		for what, ask := range map[string]func() (Request, error){
			"fund":   func() (Request, error) { return f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 1, "x") },
			"adjust": func() (Request, error) { return f.Adjust(t.Context(), f.requester, newID(), f.tenant.ID, 1, "x") },
			"float": func() (Request, error) {
				return f.AddFloat(t.Context(), f.requester, newID(), "", hubtel, money.Most, "x")
			},
		} {
			_, err := ask()
			if p := problem.From(err); p.Kind != problem.Invalid || len(p.Fields["amount"]) != 1 || !strings.Contains(p.Fields["amount"][0], "because an account holds at most") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Two requests with one reference can wait if they were made at the same time. Only one of them is applied.
func TestReference_twoRequestsApplyOnce(t *testing.T) {
	each(t, func(f *fixture) {
		var made []Request
		for _, reason := range []string{"paid by bank", "paid by bank, as the slip says"} {
			request, err := f.FundFrom(t.Context(), f.requester, newID(), Deposit{Tenant: f.tenant.ID, Amount: 50_000_000, Reference: "slip 17/3"}, reason)
			if err != nil {
				f.t.Fatal(err)
			}
			made = append(made, request)
		}
		if found, ok, err := f.WaitingUnder(t.Context(), KindFund, f.tenant.ID, "slip 17/3"); err != nil || !ok || found.ID != made[1].ID {
			f.t.Fatalf("%+v, %v, %v", found, ok, err)
		}
		for _, c := range []struct{ kind, reference string }{{KindFund, "slip 17"}, {KindAdjust, "slip 17/3"}} {
			if _, ok, err := f.WaitingUnder(t.Context(), c.kind, f.tenant.ID, c.reference); err != nil || ok {
				f.t.Fatalf("%v: %v, %v", c, ok, err)
			}
		}
		if _, err := f.Approve(t.Context(), f.first, made[0].ID, made[0].Digest); err != nil {
			f.t.Fatal(err)
		}
		late, err := f.Approve(t.Context(), f.first, made[1].ID, made[1].Digest)
		if err != nil || late.State != Failed || late.Refused == nil || late.Refused.Code != "reference_taken" {
			f.t.Fatalf("%+v, %v", late, err)
		}
		f.is(made[1].ID, Failed)
		f.has(1)
		if _, found, err := f.ledger.Booked(t.Context(), KindFund, "slip 17/3"); err != nil || !found {
			f.t.Fatal("not booked under the reference", err)
		}
	})
}

// A correction takes no more than the wallet has when it is approved.
func TestCorrection_upToTheBalance(t *testing.T) {
	each(t, func(f *fixture) {
		adjust := func(amount money.Pesewas, reason string) Request {
			f.t.Helper()
			request, err := f.Adjust(f.t.Context(), f.requester, newID(), f.tenant.ID, amount, reason)
			if err != nil {
				f.t.Fatal(err)
			}
			return request
		}
		in, out, again := adjust(50_000_000, "booked twice"), adjust(-50_000_000, "booked twice"), adjust(-50_000_000, "and a third time")
		if in.Sentence != "Correct the wallet of Adom Stores (live): put GHS 500,000.00 into it" ||
			out.Sentence != "Correct the wallet of Adom Stores (live): take GHS 500,000.00 out of it" || out.Amount != 50_000_000 {
			f.t.Fatalf("%+v\n%+v", in, out)
		}
		approve := func(request Request, want State, times int64) {
			f.t.Helper()
			after, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
			if err != nil || after.State != want {
				f.t.Fatalf("%+v, %v", after, err)
			}
			f.has(times)
		}
		approve(in, Done, 1)
		approve(out, Done, 0)
		if e := f.entries()[0]; e.Action != KindAdjust || e.Changes()[0].Before != "GHS 500,000.00" || e.Changes()[0].After != "GHS 0.00" {
			f.t.Fatalf("%+v", e)
		}
		_, err := f.Approve(f.t.Context(), f.first, again.ID, again.Digest)
		f.refused(err, problem.InsufficientFunds, problem.From(err).Code)
		f.is(again.ID, Waiting) // until the money is there
		if _, err := f.Adjust(f.t.Context(), f.requester, newID(), f.tenant.ID, 0, "x"); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
	})
}
