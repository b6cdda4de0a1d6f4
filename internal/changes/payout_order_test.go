package changes

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/clocktest"
)

// onPage lets a person request a payout of GHS 10.00 with the form of an id. No queue runs here, and the clock ends the wait for
// the provider.
func (f *fixture) onPage(by By, id string, more Values) (r Request, err error) {
	f.t.Helper()
	v := Values{FieldTenant: f.tenant.ID, "channel": "TELECEL", "account_number": "0201234567", "amount": "10.00"}
	maps.Copy(v, more)
	by.Place = f.tenant.ID
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = f.Do(f.t.Context(), by, KindSendPayout, id, v, "")
	}()
	clocktest.Await(f.t, "the payout", func() bool {
		select {
		case <-done:
			return true
		default:
			if f.clock.Waiting() > 0 {
				f.clock.Advance(10 * time.Second)
			}
			return false
		}
	})
	return r, err
}

// A payout from a page is a change request like any other. It waits if a line of the policy requires approval, and its form makes
// one request.
func TestPayoutOrder_waits(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		id, had := newID(), f.wallet()
		r, err := f.onPage(f.finance, id, Values{"name": "Ama Boateng"})
		if err != nil || r.State != Waiting || r.Needs != 1 || r.Place != f.tenant.ID || r.Amount != 10*money.Cedi || r.Sentence != "Send GHS 10.00 to TELECEL 233****4567, with a fee of GHS 0.10" ||
			!warned(r.Facts, "No provider returned the name") || !warned(r.Facts, "A new payee") || r.Key != "" || r.digest() != r.Digest {
			t.Fatalf("%+v, %v", r, err)
		}
		if again, err := f.onPage(f.finance, id, Values{"name": "Ama Boateng"}); err != nil || again.ID != r.ID {
			t.Errorf("the form again: %+v, %v", again, err)
		}
		if pay := f.payment(r.ID); !pay.AwaitsApproval() || f.wallet() != had-10*money.Cedi-10 {
			t.Errorf("%+v, the wallet has %s of %s", pay, f.wallet(), had)
		}
		if log := f.entries(); log[0].Action != "act.make" || log[0].Person != f.finance.Visitor.Person.ID || log[0].Origin != "192.0.2.9" {
			t.Errorf("%+v", log[0])
		}
		by := f.signatory
		by.Place = f.tenant.ID
		if done, err := f.Approve(t.Context(), by, r.ID, r.Digest); err != nil || done.State != Done {
			t.Fatal(done, err)
		}
		f.sound()
	})
}

// A payout that needs no approval is sent at once. The transaction that accepts it also stores its request as done, and the audit
// log has the request.
func TestPayoutOrder_atOnce(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		f.rail.pending = true
		f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, Approvers: 0})
		id := newID()
		r, err := f.onPage(f.finance, id, Values{"amount": "4.99"})
		if err != nil || r.State != Done || r.Needs != 0 || r.EndedAt.IsZero() {
			t.Fatalf("%+v, %v", r, err)
		}
		if pay := f.payment(r.ID); pay.AwaitsApproval() || pay.Amount != 4_99 || pay.Status != book.StatusPending {
			t.Errorf("%+v", pay)
		}
		log := f.entries()
		if log[0].Action != KindSendPayout || log[0].Subject != r.ID || log[0].Person != f.finance.Visitor.Person.ID || !slices.Contains(log[0].Changes(), audit.Change{What: "payout", After: "is sent"}) {
			t.Errorf("%+v", log[0])
		}
		if again, err := f.onPage(f.finance, id, Values{"amount": "4.99"}); err != nil || again.ID != r.ID || len(f.entries()) != len(log) {
			t.Errorf("the form again: %+v, %v", again, err)
		}
	})
}

// A recovery finds the payout of a form at the provider. The payout needs no second approval, and the audit log names the person
// who requested it.
func TestPayoutOrder_adoptedInARecovery(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		f.rail.paid = true
		if err := errors.Join(f.lost.Begin(t.Context(), "a restore", f.clock.Now().Add(-time.Hour), "", "node"), f.lost.Open(t.Context(), "redone", "ama")); err != nil {
			t.Fatal(err)
		}
		if s, err := f.lost.State(t.Context()); err != nil || !s.Lasts() {
			t.Fatal(s, err)
		}
		f.clock.Advance(10 * time.Minute)
		id := newID()
		r, err := f.onPage(f.finance, id, nil)
		if err != nil || r.State != Done {
			t.Fatalf("%+v, %v", r, err)
		}
		if pay := f.payment(r.ID); pay.AwaitsApproval() || pay.Rail != "hubtel" {
			t.Errorf("%+v", pay)
		}
		log := f.entries()
		if log[0].Action != KindSendPayout || log[0].Subject != r.ID || log[0].Tenant != f.tenant.ID || log[0].Person != f.finance.Visitor.Person.ID || log[0].Origin != "192.0.2.9" || len(log[0].Changes()) != 1 {
			t.Errorf("%+v", log[0])
		}
		if again, err := f.onPage(f.finance, id, nil); err != nil || again.ID != r.ID || len(f.entries()) != len(log) {
			t.Errorf("the form again: %+v, %v", again, err)
		}
		f.sound()
	})
}

// A payout is refused at another account, without the role, or with a fee that differs from the page.
func TestPayoutOrder_refused(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		had := f.wallet()
		_, err := f.onPage(f.finance, newID(), Values{"fee": "0.09"})
		f.refused(err, problem.Invalid, CodeChanged)
		_, err = f.onPage(f.signatory, newID(), nil)
		f.refused(err, problem.Forbidden, "not_allowed")
		_, err = f.Do(t.Context(), f.requester, KindSendPayout, newID(), Values{FieldTenant: f.tenant.ID, "channel": "TELECEL", "account_number": "0201234567", "amount": "10.00"}, "x")
		f.refused(err, problem.Forbidden, "person_needed")
		_, err = f.Do(t.Context(), By{Machine: "root", Place: roles.Installation}, KindSendPayout, newID(), Values{FieldTenant: f.tenant.ID, "channel": "TELECEL", "account_number": "0201234567", "amount": "10.00"}, "x")
		f.refused(err, problem.Forbidden, "person_needed")
		if f.wallet() != had {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
	})
}

// A payout to a bank account is not sent under another name than the one that the page showed.
func TestPayoutOrder_otherName(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		if err := f.routes.Seed(t.Context()); err != nil {
			t.Fatal(err)
		}
		banks, err := f.routes.Banks(t.Context(), f.tenant.ID, string(f.tenant.Mode))
		if err != nil || len(banks) == 0 {
			t.Fatal(banks, err)
		}
		had, bank := f.wallet(), Values{"channel": ToBank + banks[0].ID, "account_number": "0011220031"}
		shown := func(name string) Values {
			v := maps.Clone(bank)
			v["registered"] = name
			return v
		}
		_, err = f.onPage(f.finance, newID(), shown("Ama Mensah"))
		f.refused(err, problem.Invalid, CodeChanged)
		if f.wallet() != had {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
		r, err := f.onPage(f.finance, newID(), shown("Kofi Badu"))
		if err != nil {
			t.Fatal(err)
		}
		if pay := f.payment(r.ID); pay.AccountName != "BADU, KOFI" {
			t.Errorf("%+v", pay)
		}
	})
}

// Whatever breaks off at each boundary of the database, there is a payout with its request, or neither.
func TestPayoutOrder_broken(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, Approvers: 0})
		for _, amount := range []string{"4.99", "10.00"} {
			for n := range mostBoundaries {
				hit, left, id := false, n, newID()
				f.faults.Decide(func(db.Boundary) db.Fault {
					if left--; left == -1 {
						hit = true
						return []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}[n%3]
					}
					return db.FaultNone
				})
				_, err := f.onPage(f.finance, id, Values{"amount": amount})
				f.faults.Decide(nil)
				pay, found, lost := f.PayoutOf(t.Context(), f.tenant.ID, id, "")
				if lost != nil {
					t.Fatal(lost)
				}
				if !found {
					if err == nil {
						t.Fatalf("%d: nothing was made, and nothing refused", n)
					}
					continue
				}
				if r, err := f.Store.Get(t.Context(), pay.ID); err != nil || (r.State == Waiting) != pay.AwaitsApproval() {
					t.Fatalf("%d: %+v, %v: the payout %+v", n, r, err, pay)
				}
				if !hit {
					break
				}
			}
		}
	})
}

// The purpose is the reason of the request and the description of the payment. The payment has the person's own reference, which
// can be used for one payout.
func TestPayoutOrder_ownReference(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		own, id := Values{"purpose": "Rent of March", "reference": "INV-2026-00417"}, newID()
		r, err := f.onPage(f.finance, id, own)
		if err != nil || r.State != Waiting || r.Reason != "Rent of March" || r.Facts.List[0] != (Fact{Name: "Reference", Value: "INV-2026-00417"}) {
			t.Fatalf("%+v, %v", r, err)
		}
		if pay := f.payment(r.ID); pay.Reference != "INV-2026-00417" || pay.Label != "Rent of March" {
			t.Errorf("%+v", pay)
		}
		if again, err := f.onPage(f.finance, id, own); err != nil || again.ID != r.ID {
			t.Errorf("the form again: %+v, %v", again, err)
		}
		for _, bad := range []string{"INV-2026-00417", "INV 17", "short"} {
			if _, err := f.onPage(f.finance, newID(), Values{"reference": bad}); !problem.Is(err, problem.Invalid) || problem.From(err).Fields["reference"] == nil {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})
}
