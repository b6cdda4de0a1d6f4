package changes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
)

// needs returns how many approvers a request for an amount needs.
func (f *fixture) needs(amount money.Pesewas) int {
	f.t.Helper()
	request, err := f.Fund(f.t.Context(), f.requester, newID(), f.tenant.ID, amount, "x")
	if err != nil {
		f.t.Fatal(err)
	}
	return request.Needs
}

func TestPolicy_approversByAmount(t *testing.T) {
	each(t, func(f *fixture) {
		if n := f.needs(1); n != 1 {
			f.t.Fatalf("without a line: %d", n)
		}
		f.line(Line{Kind: KindFund, Approvers: 0})
		f.line(Line{Kind: KindFund, From: 100_00, Approvers: 1})
		f.line(Line{Kind: KindFund, From: 1000_00, Approvers: 2})
		f.line(Line{Kind: KindFund, Tenant: "another", Approvers: 2})
		for amount, want := range map[money.Pesewas]int{1: 0, 99_99: 0, 100_00: 1, 999_99: 1, 1000_00: 2, 50_000_00: 2} {
			if n := f.needs(amount); n != want {
				f.t.Errorf("%s needs %d, want %d", amount, n, want)
			}
		}
		f.line(Line{Kind: KindFund, Tenant: f.tenant.ID, Approvers: 1}) // precedes the lines of the installation
		for _, amount := range []money.Pesewas{1, 1000_00} {
			if n := f.needs(amount); n != 1 {
				f.t.Errorf("with a line of its own %s needs %d", amount, n)
			}
		}
		f.line(Line{Kind: KindFund, Tenant: f.tenant.ID, Approvers: Default})
		if n := f.needs(1000_00); n != 2 {
			f.t.Errorf("after the line was taken away: %d", n)
		}
	})
}

func TestPolicy_unsatisfiableIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := install(t, d, nil, false) // one requester and no other person
		rule, _ := f.Rule(KindFund)
		set := func(approvers int) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := f.Store.SetLine(tx, rule, Line{Kind: KindFund, Approvers: approvers})
				return err
			})
		}
		f.refused(set(1), problem.Forbidden, "policy_locks_out")
		f.join("kofi@example.com", roles.Owner) // may approve, and may also make requests that the requester cannot approve
		f.refused(set(1), problem.Forbidden, "policy_locks_out")
		f.join("efua@example.com", roles.Approver)
		if err := set(1); err != nil {
			t.Fatal(err)
		}
		f.refused(set(2), problem.Forbidden, "policy_locks_out")
		f.refused(set(3), problem.Invalid, problem.CodeInvalidFields)
		f.clock.Advance(time.Second)
		for _, email := range []string{"efua@example.com", "kofi@example.com"} {
			if n := f.needs(1); n != 1 {
				t.Fatalf("%d", n)
			}
			role := identity.Membership{Role: roles.Support}
			if email == "kofi@example.com" { // the last owner keeps the role, so the test disables the person directly
				f.tx(func(tx *db.Tx) error {
					tx.Defer("UPDATE people SET disabled_at = 1 WHERE email = $1", 1, email)
					return nil
				})
				continue
			}
			f.tx(func(tx *db.Tx) error { _, _, err := f.people.SetRole(tx, email, role); return err })
		}
		_, err := f.Fund(t.Context(), f.requester, newID(), f.tenant.ID, 1, "x")
		f.refused(err, problem.Forbidden, "too_few_people")
	})
}

// A change of the policy also needs two people.
func TestPolicy_changeNeedsApproval(t *testing.T) {
	each(t, func(f *fixture) {
		owner := f.join("owner@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		line := Line{Kind: KindFund, From: 500_00, Approvers: 2}
		_, err := f.SetPolicy(f.t.Context(), f.requester, newID(), line, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
		id := newID()
		var request Request
		for range 2 {
			if request, err = f.SetPolicy(f.t.Context(), owner, id, line, "large sums"); err != nil || request.State != Waiting || request.Needs != 1 ||
				request.Sentence != "Deposit to a wallet needs 2 approvers from GHS 500.00, everywhere" {
				f.t.Fatalf("%+v, %v", request, err)
			}
		}
		stale, err := f.SetPolicy(f.t.Context(), owner, newID(), line, "the same again")
		if err != nil {
			f.t.Fatal(err)
		}
		if n := f.needs(500_00); n != 1 {
			f.t.Fatalf("in force before it was checked: %d", n)
		}
		if request, err = f.Approve(f.t.Context(), f.first, request.ID, request.Digest); err != nil || request.State != Done {
			f.t.Fatalf("%+v, %v", request, err)
		}
		if n := f.needs(500_00); n != 2 {
			f.t.Fatalf("not in force: %d", n)
		}
		if after, err := f.Approve(f.t.Context(), f.first, stale.ID, stale.Digest); err != nil || after.State != Failed {
			f.t.Fatalf("what was made of another line: %+v, %v", after, err)
		}
		if _, err := f.SetPolicy(f.t.Context(), owner, newID(), Line{Kind: "nothing"}, "x"); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
	})
}

// The policy page shows the results of the function that decides: defaults, lines by amount, light kinds, and an account with
// one person.
func TestInForce_isComputed(t *testing.T) {
	each(t, func(f *fixture) {
		owner := f.join("owner@example.com", roles.Owner)
		f.line(Line{Kind: KindFund, From: 500_00, Approvers: 2})
		f.line(Line{Kind: KindFund, Tenant: f.tenant.ID, From: 900_00, Approvers: 0})
		of := func(about, kind string) (texts []string) {
			list, err := f.InForce(t.Context(), owner, about)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range list {
				if one.Kind == kind {
					texts = append(texts, one.Text)
				}
			}
			return texts
		}
		for _, c := range []struct {
			about, kind, want string
		}{
			{"", KindFund, "1 approver; 2 approvers from GHS 500.00"},
			{f.tenant.ID, KindFund, "1 approver; 2 approvers from GHS 500.00; no approver from GHS 900.00"},
			{"", KindRevokeKey, "no approver"},
			{"", KindFees, "1 approver"},
		} {
			if got := strings.Join(of(c.about, c.kind), "; "); got != c.want {
				t.Errorf("%s of %q: %s, want %s", c.kind, c.about, got, c.want)
			}
		}
	})
}

// If an account has only one person, the page states that no approval takes place.
func TestInForce_alone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := install(t, d, nil, false)
		f.Store.production = true
		list, err := f.InForce(t.Context(), f.join("owner@example.com", roles.Owner), "")
		at := slices.IndexFunc(list, func(one InForce) bool { return one.Kind == KindFund })
		if err != nil || at < 0 || !list[at].Alone || list[at].Text != "no approver" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// Without a line of the policy, a payout by a page needs another person if there is one, and a payout by a key needs no
// approval. A line applies to both, from its amount on. The displayed policy agrees.
func TestPolicy_ofPayouts(t *testing.T) {
	eachTeam(t, Default, func(f *team) {
		f.rail.pending = true
		owner := f.owner
		owner.Place = f.tenant.ID
		key := f.keyOf("", "")
		byKey := func(amount money.Pesewas) bool {
			t.Helper()
			o := f.order()
			o.Amount = amount
			pay, _, err := f.Payments.Payout(t.Context(), f.byKey(key), o)
			if err != nil {
				t.Fatal(err)
			}
			return pay.AwaitsApproval()
		}
		byPage := func(amount string) bool {
			t.Helper()
			r, err := f.onPage(f.owner, newID(), Values{"amount": amount})
			if err != nil {
				t.Fatal(err)
			}
			return r.State == Waiting
		}
		inForce := func(key bool, kind string) string {
			t.Helper()
			list, err := f.InForce(t.Context(), owner, "")
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, one := range list {
				if one.Kind == kind && one.ByKey == key {
					texts = append(texts, one.Text)
				}
			}
			return strings.Join(texts, "; ")
		}
		line := func(from money.Pesewas, approvers int) {
			f.line(Line{Kind: KindSendPayout, Tenant: f.tenant.ID, Own: true, From: from, Approvers: approvers})
			f.clock.Advance(2 * time.Second) // a key uses lines that are at most a second old
		}
		const none, one = "no approver", "1 approver"
		if !byPage("0.50") || byKey(50) {
			t.Error("without a line")
		}
		for _, kind := range []string{KindSendPayout, KindSendBatch} {
			if inForce(false, kind) != one || inForce(true, kind) != none {
				t.Errorf("%s: %s; %s", kind, inForce(false, kind), inForce(true, kind))
			}
		}
		line(5*money.Cedi, 0)
		if !byPage("4.99") || byPage("5.00") || byKey(4_99) || byKey(5_00) {
			t.Error("from GHS 5.00 on nobody")
		}
		if text := inForce(false, KindSendPayout); text != one+"; no approver from GHS 5.00" || inForce(true, KindSendPayout) != none {
			t.Error(text)
		}
		line(5*money.Cedi, 1)
		if !byPage("4.98") || !byPage("5.01") || byKey(4_99) || !byKey(5_00) {
			t.Error("from GHS 5.00 on one")
		}
		if text := inForce(true, KindSendPayout); text != none+"; 1 approver from GHS 5.00" || inForce(false, KindSendPayout) != one {
			t.Error(text)
		}
		f.sound()
	})
}

// The payouts of an account's only person are sent at once, and the policy shows this in red. With two people each needs the
// other's approval.
func TestPolicy_ofPayoutsAlone(t *testing.T) {
	each(t, func(f *fixture) {
		f.paying(20)
		f.rail.pending = true
		owner := f.member("owner@adom.example", f.tenant.ID, roles.Owner)
		r, err := f.onPage(owner, newID(), nil)
		if err != nil || r.State != Done || r.Needs != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		rows := func() (of []InForce) {
			t.Helper()
			list, err := f.InForceAt(t.Context(), f.tenant.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range list {
				if one.Kind == KindSendPayout && !one.ByKey {
					of = append(of, one)
				}
			}
			return of
		}
		if of := rows(); len(of) != 1 || !of[0].Alone || of[0].Text != "no approver" || !slices.Equal(of[0].Requesters, []string{"owner@adom.example"}) {
			t.Errorf("%+v", of)
		}
		f.member("signatory@adom.example", f.tenant.ID, roles.Signatory)
		f.member("finance@adom.example", f.tenant.ID, roles.Finance)
		f.clock.Advance(time.Second)
		if of := rows(); len(of) != 1 || of[0].Alone || of[0].Text != "1 approver" || !slices.Equal(of[0].Requesters, []string{"finance@adom.example", "owner@adom.example"}) {
			t.Errorf("%+v", of)
		}
		if r, err = f.onPage(owner, newID(), nil); err != nil || r.State != Waiting || r.Needs != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}
