package changes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Approve approves a request with the facts that a page would show now.
func (f *fixture) Approve(ctx context.Context, by By, id, digest string) (Request, error) {
	if seen, err := f.Review(ctx, by.Place, id); err == nil && seen.Digest == digest {
		digest = seen.Shown
	}
	return f.Changes.Approve(ctx, by, id, digest)
}

// warned reports whether facts have a warning with a text.
func warned(f Facts, text string) bool {
	for _, w := range f.Warnings() {
		if strings.Contains(w.Value, text) {
			return true
		}
	}
	return false
}

// The approver of a deposit sees the same warnings as its requester, such as of a slip that was used before.
func TestFacts_warnTheApproverToo(t *testing.T) {
	each(t, func(f *fixture) {
		fund := func(slip, reason string) (Request, error) {
			return f.FundFrom(t.Context(), f.requester, newID(), Deposit{Tenant: f.tenant.ID, Amount: 700 * money.Cedi, Reference: slip}, reason)
		}
		if _, err := f.FundFrom(t.Context(), machine, newID(), Deposit{Tenant: f.tenant.ID, Amount: 700 * money.Cedi, Reference: "slip 9"}, "by hand"); err != nil {
			t.Fatal(err)
		}
		request, err := fund("slip 9", "paid by bank")
		if err != nil || !warned(request.Facts, `reference "slip 9" was used before`) || !warned(request.Facts, "The same amount was booked at 6 Mar 2026") {
			t.Fatalf("%+v, %v", request.Facts, err)
		}
		seen, err := f.Review(t.Context(), roles.Installation, request.ID)
		if err != nil || !warned(seen.Now, `reference "slip 9" was used before`) || len(seen.Facts.List) != len(request.Facts.List) {
			t.Fatalf("%+v, %v", seen.Now, err)
		}
		if now := seen.Now.List[0]; now.Name != "In the wallet of Adom Stores now" || now.Value != "GHS 700.00" {
			t.Errorf("%+v", now)
		}
	})
}

// If a warning appears after the page was loaded, the approval shows the page again. The approval is stored with the facts of its
// page.
func TestFacts_newWarningShowsThePageAgain(t *testing.T) {
	each(t, func(f *fixture) {
		request, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 700*money.Cedi, "paid by bank")
		if err != nil {
			t.Fatal(err)
		}
		seen, err := f.Review(t.Context(), roles.Installation, request.ID)
		if err != nil || len(seen.Now.Warnings()) != 0 {
			t.Fatalf("%+v, %v", seen, err)
		}
		if _, err := f.Fund(t.Context(), machine, newID(), f.tenant.ID, 700*money.Cedi, "by hand"); err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{seen.Shown, request.Digest} {
			_, err := f.Changes.Approve(t.Context(), f.first, request.ID, shown)
			f.refused(err, problem.InProgress, "facts_changed")
		}
		f.is(request.ID, Waiting)
		if seen, err = f.Review(t.Context(), roles.Installation, request.ID); err != nil || !warned(seen.Now, "The same amount was booked at") {
			t.Fatalf("%+v, %v", seen, err)
		}
		if done, err := f.Changes.Approve(t.Context(), f.first, request.ID, seen.Shown); err != nil || done.State != Done {
			t.Fatalf("%+v, %v", done, err)
		}
		log, err := f.log.List(t.Context(), audit.Filter{Action: KindFund, Subject: request.ID})
		if err != nil || len(log) != 1 || !strings.Contains(fmt.Sprintf("%s", log[0].Details), seen.Shown) {
			t.Errorf("%+v, %v", log, err)
		}
	})
}

// A preview has the sentence and the facts of the request, and stores nothing.
func TestPreview_storesNoRow(t *testing.T) {
	each(t, func(f *fixture) {
		r, err := f.Preview(t.Context(), f.requester, KindAdjust, Values{FieldTenant: f.tenant.ID, "way": "out", "amount": "5"})
		if err != nil || !strings.HasPrefix(r.Sentence, "Correct the wallet of Adom Stores") || !warned(r.Facts, "has only GHS 0.00") {
			t.Fatalf("%+v, %v", r, err)
		}
		if list, err := f.Store.List(t.Context(), Filter{Limit: 10}); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// The digest covers the facts: a request whose facts were changed in the database cannot be approved.
func TestFacts_areDigested(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		changed := request
		changed.Facts.List = changed.Facts.List[:1]
		if request.Digest != request.digest() || changed.digest() == request.Digest {
			t.Error("the digest does not cover the facts")
		}
		stored, err := f.Store.Get(t.Context(), request.ID)
		if err != nil || stored.digest() != request.Digest {
			t.Errorf("%+v, %v", stored, err)
		}
	})
}

// The approver of a payout sees the names that its requester saw. An erasure removes them after the payout is final.
func TestPayoutFacts_nameThePayee(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		pay, err := f.onPage(f.finance, newID(), Values{"name": "Ama Boateng", "registered": "KWAME KPODO"})
		if err != nil || pay.State != Waiting {
			t.Fatalf("%+v, %v", pay, err)
		}
		seen, err := f.Review(t.Context(), f.tenant.ID, pay.ID)
		if err != nil || !warned(seen.Facts, "registered is KWAME KPODO") || !warned(seen.Now, "expected is Ama Boateng, registered is KWAME KPODO") || !warned(seen.Now, "A new payee") {
			t.Fatalf("%+v, %v", seen, err)
		}
		f.tx(func(tx *db.Tx) error { EraseFacts(tx, pay.ID); return nil })
		f.is(pay.ID, Waiting)
		if _, err := f.Withdraw(t.Context(), f.finance, pay.ID, seen.Digest); err != nil {
			t.Fatal(err)
		}
		f.tx(func(tx *db.Tx) error { EraseFacts(tx, pay.ID); return nil })
		if request := f.is(pay.ID, Withdrawn); len(request.Facts.List) != 0 {
			t.Errorf("%+v", request.Facts)
		}
	})
}
