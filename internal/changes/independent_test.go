package changes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/identitytest"
)

// alone is a production installation whose only owner is called boss.
type alone struct {
	*fixture
	boss By
}

func eachLone(t *testing.T, fn func(f *alone)) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		f := &alone{fixture: install(t, d, faults, true)}
		for _, email := range []string{"ama@example.com", "kofi@example.com", "efua@example.com"} {
			f.tx(func(tx *db.Tx) error { _, err := f.people.Disable(tx, email); return err })
		}
		f.boss = f.join("boss@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		fn(f)
	})
}

// comes lets an invited or reset person use the link and the code, and enrol a factor a second later.
func (f *fixture) comes(link, code string) By {
	f.t.Helper()
	f.clock.Advance(time.Second)
	by := f.again(link, code)
	f.clock.Advance(time.Second)
	return by
}

// brings lets a person invite another one. approver approves the invitation if necessary, and the invited person sets up the
// account.
func (f *fixture) brings(by By, approver *By, email string, role roles.Role) By {
	f.t.Helper()
	request, err := f.invite(by, email, identity.Membership{Role: role})
	if approver == nil {
		f.asked(request, err, KindInvite, 0)
		return f.comes(request.Secret, request.Code)
	}
	f.asked(request, err, KindInvite, 1)
	f.approved(*approver, request)
	link, err := f.Reveal(f.t.Context(), by, Secret, request.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.comes(link, f.code(*approver, request))
}

// pays lets a person request a deposit to a wallet.
func (f *fixture) pays(by By) Request {
	f.t.Helper()
	request, err := f.Fund(f.t.Context(), by, newID(), f.tenant.ID, 50_000_000, "paid by bank")
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

// outlook returns the notes that the page of a request shows a person before an approval.
func (f *fixture) outlook(by By, request Request) Outlook {
	f.t.Helper()
	rule, _ := f.Rule(request.Kind)
	o, err := f.Store.Outlook(f.t.Context(), by, rule, request)
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

// The requester of an invitation or a reset gets the link and never the code, and the approver gets the code and never the link. So
// neither can become the person.
func TestRequester_isNotTheSecondPerson(t *testing.T) {
	each(t, func(f *fixture) {
		boss, other := f.join("boss@example.com", roles.Owner), f.join("other@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		invited, err := f.invite(boss, "puppet@example.com", identity.Membership{Role: roles.Approver})
		f.asked(invited, err, KindInvite, 1)
		reset, err := f.Reset(t.Context(), boss, newID(), "kofi@example.com", "lost the phone")
		f.asked(reset, err, KindReset, 1)
		for _, request := range []Request{invited, reset} {
			f.approved(other, request)
			link, err := f.Reveal(t.Context(), boss, Secret, request.ID)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Reveal(t.Context(), boss, Code, request.ID)
			f.refused(err, problem.Forbidden, "not_your_act")
			_, err = f.Reveal(t.Context(), other, Secret, request.ID)
			f.refused(err, problem.Forbidden, "not_your_act")
			if _, err := f.people.Accept(t.Context(), link, "00000000", identitytest.Password, "a test", netip.Addr{}); err == nil {
				t.Error("the link works without the code")
			}
			f.comes(link, f.code(other, request))
			f.clock.Advance(time.Minute)
			_, err = f.Reveal(t.Context(), other, Code, request.ID)
			f.refused(err, problem.Gone, "secret_shown")
		}
	})
}

// A person whom another person invited without an approval may not approve requests of the inviter, and does not count as an
// approver. With only these two people the first one's requests are applied at once. A third person, whom the second invites
// and the first approves, ends this.
func TestInvitedAlone_isNoSecondPerson(t *testing.T) {
	eachLone(t, func(f *alone) {
		boss := f.boss
		second := f.brings(boss, nil, "second@example.com", roles.Owner)
		if request := f.pays(boss); request.State != Done || request.Needs != 0 {
			t.Fatalf("of the first of two people: %+v", request)
		}
		request := f.pays(second)
		if request.State != Waiting || request.Needs != 1 {
			t.Fatalf("of the second of two people: %+v", request)
		}
		f.approved(boss, request)

		third := f.brings(second, &boss, "third@example.com", roles.Owner)
		request = f.pays(boss)
		if request.Needs != 1 {
			t.Fatalf("with a third person: %+v", request)
		}
		if o := f.outlook(second, request); problem.From(o.Refused).Code != "not_independent" || o.Note != "" {
			t.Errorf("the page of who is barred shows %+v", o)
		}
		if o := f.outlook(third, request); o.Refused != nil {
			t.Errorf("the page of who may approve shows %+v", o)
		}
		_, err := f.Approve(t.Context(), second, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_independent")
		f.approved(third, request)
		request = f.pays(second) // the first person may control this account
		_, err = f.Approve(t.Context(), boss, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_independent")
		f.approved(third, request)

		// If two approvals are needed, the first and the second person count as one.
		f.tx(func(tx *db.Tx) error {
			_, err := tx.Exec("INSERT INTO act_policy (kind, tenant, pesewas, checkers) VALUES ($1, '', 0, 2)", KindFund)
			return err
		})
		_, err = f.Fund(t.Context(), third, newID(), f.tenant.ID, 50_000_000, "paid by bank")
		f.refused(err, problem.Forbidden, "too_few_people")
		fourth := f.brings(boss, &third, "fourth@example.com", roles.Owner)
		request = f.pays(third)
		f.approved(boss, request)
		_, err = f.Approve(t.Context(), second, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_independent")
		f.approved(fourth, request)
		f.is(request.ID, Done)
		f.tx(func(tx *db.Tx) error { _, err := tx.Exec("DELETE FROM act_policy"); return err })

		// After a reset that a third person approves, the second person is independent.
		reset, err := f.Reset(t.Context(), boss, newID(), "second@example.com", "to be independent")
		f.asked(reset, err, KindReset, 1)
		f.approved(third, reset)
		link, err := f.Reveal(t.Context(), boss, Secret, reset.ID)
		if err != nil {
			t.Fatal(err)
		}
		second = f.comes(link, f.code(third, reset))
		f.approved(second, f.pays(boss))
	})
}

// A person whom a command without a person invited or reset cannot approve any request.
func TestBreakGlass_makesNoSecondPerson(t *testing.T) {
	eachLone(t, func(f *alone) {
		by := identity.NewInvitation()
		by.Sponsor = identity.Machine
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.Invite(tx, by, "shell@example.com", "Shell", identity.Membership{Role: roles.Owner})
			return err
		})
		shell := f.comes(by.Token, by.Code)
		if request := f.pays(f.boss); request.State != Done || request.Needs != 0 {
			t.Fatalf("%+v", request)
		}
		f.approved(f.boss, f.pays(shell))
		third := f.brings(shell, &f.boss, "third@example.com", roles.Owner)
		request := f.pays(f.boss)
		_, err := f.Approve(t.Context(), shell, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_independent")
		f.approved(third, request)
	})
}

// A person who was invited without an approval, and again with an approval, is independent. The first link stops working.
func TestReinvitation_isJudgedAnew(t *testing.T) {
	each(t, func(f *fixture) {
		boss, other := f.join("boss@example.com", roles.Owner), f.join("other@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		by := identity.NewInvitation()
		by.Sponsor = boss.Visitor.Person.ID
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.Invite(tx, by, "new@example.com", "New", identity.Membership{Role: roles.Approver})
			return err
		})
		request, err := f.Reset(t.Context(), boss, newID(), "new@example.com", "the link was lost")
		f.asked(request, err, KindReset, 1)
		f.approved(other, request)
		if _, err := f.people.Accept(t.Context(), by.Token, by.Code, identitytest.Password, "a test", netip.Addr{}); err == nil {
			t.Error("the first link works")
		}
		link, err := f.Reveal(t.Context(), boss, Secret, request.ID)
		if err != nil {
			t.Fatal(err)
		}
		f.approved(f.comes(link, f.code(other, request)), f.pays(boss))
	})
}

// The first approvals of a person note who invited them, and whether their network and browser are the requester's.
func TestFirstApprovals_nameTheInviter(t *testing.T) {
	each(t, func(f *fixture) {
		boss, other := f.join("boss@example.com", roles.Owner), f.join("other@example.com", roles.Owner)
		f.clock.Advance(time.Second)
		third := f.brings(boss, &other, "third@example.com", roles.Owner)
		var notes []string
		for range 4 {
			request := f.pays(boss)
			before := f.outlook(third, request)
			request = f.approved(third, request)
			notes = append(notes, request.Checks[0].Note)
			if before.Note != request.Checks[0].Note || before.Refused != nil {
				t.Errorf("before the approval the page says %+v", before)
			}
		}
		want := "approval 1 of this person, invited or reset by boss@example.com, from a network of the requester, in the same kind of browser as the requester"
		if notes[0] != want || !strings.HasPrefix(notes[2], "approval 3") || notes[3] != "" {
			t.Errorf("%q", notes)
		}
		f.tx(func(tx *db.Tx) error {
			_, err := tx.Exec("UPDATE sessions SET source = '192.0.2.0/24', agent = 'another' WHERE person = $1", boss.Visitor.Person.ID)
			return err
		})
		fourth := f.brings(boss, &other, "fourth@example.com", roles.Owner)
		if request := f.approved(fourth, f.pays(boss)); request.Checks[0].Note != "approval 1 of this person, invited or reset by boss@example.com" {
			t.Errorf("of another network and browser: %q", request.Checks[0].Note)
		}
		if !slices.ContainsFunc(f.entries(), func(e audit.Entry) bool { return strings.Contains(fmt.Sprintf("%s", e.Details), want) }) {
			t.Error("the audit log does not say so")
		}
	})
}
