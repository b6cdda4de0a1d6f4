package identity

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

func (f *fixture) invited(email string, m Membership) (Invitation, bool) {
	f.t.Helper()
	by, invited := NewInvitation(), false
	f.tx(func(tx *db.Tx) (err error) {
		_, invited, err = f.Invite(tx, by, email, "Kofi Mensah", m)
		return err
	})
	return by, invited
}

// refused runs a change and requires that it is refused.
func (f *fixture) refused(kind problem.Kind, fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); !problem.Is(err, kind) {
		f.t.Fatalf("%v, want %s", err, kind)
	}
}

// An invitation lets a person choose a password once.
func TestInvitation_setsPasswordOnce(t *testing.T) {
	each(t, operator, func(f *fixture) {
		by, invited := f.invited("Kofi@Example.com", Membership{"t1", roles.Finance})
		l, err := f.Link(f.t.Context(), by.Token)
		if err != nil || !invited || !l.Invitation || l.Person.Email != "kofi@example.com" {
			f.t.Fatalf("%+v, %v", l, err)
		}
		if _, err := f.SignIn(f.t.Context(), by.Token, ""); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("an invitation signed in without a password: %v", err)
		}
		if _, err := f.Accept(f.t.Context(), by.Token, by.Code, "short", "", home); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		var won atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if token, err := f.Accept(context.WithoutCancel(f.t.Context()), by.Token, by.Code, password, "", home); err == nil && f.visit(token).Role("t1") == roles.Finance {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			f.t.Fatalf("%d browsers used one invitation", won.Load())
		}
		f.refused(problem.Duplicate, func(tx *db.Tx) error {
			_, _, err := f.Invite(tx, NewInvitation(), "kofi@example.com", "", Membership{"t1", roles.Owner})
			return err
		})
		f.refused(problem.Invalid, func(tx *db.Tx) error {
			_, _, err := f.Invite(tx, NewInvitation(), "kofi@example.com", "", Membership{"t3", roles.SRE})
			return err
		})
	})
}

// Anybody who may invite could have created an account with another person's address and chosen its password. An
// account therefore keeps its password only if the installation invited it.
func TestInvite_distrustsUnprovenAccounts(t *testing.T) {
	each(t, operator, func(f *fixture) {
		accept := func(by Invitation) string {
			f.t.Helper()
			token, err := f.Accept(f.t.Context(), by.Token, by.Code, password, "", home)
			if err != nil {
				f.t.Fatal(err)
			}
			return token
		}
		const email = "kofi@example.com"
		first, _ := f.invited(email, Membership{"t1", roles.Finance})
		session := accept(first)
		for _, m := range []Membership{{"t2", roles.Admin}, {roles.Installation, roles.Owner}} {
			f.refused(problem.InProgress, func(tx *db.Tx) error {
				_, _, err := f.Invite(tx, NewInvitation(), email, "Kofi", m)
				return err
			})
		}
		again := NewInvitation()
		f.tx(func(tx *db.Tx) error { _, err := f.Reset(tx, again, email); return err })
		operators, invited := f.invited(email, Membership{roles.Installation, roles.Owner}) // only the link of this invitation is valid then
		if !invited {
			f.t.Fatal("there is no link for an account without a password")
		}
		for _, old := range []Invitation{first, again} {
			if _, err := f.Link(f.t.Context(), old.Token); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatalf("an older link: %v", err)
			}
		}
		if _, err := f.Visit(f.t.Context(), session, true); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("the session of who made the account: %v", err)
		}
		session = accept(operators)
		if _, invited := f.invited(email, Membership{"t2", roles.Admin}); invited {
			f.t.Fatal("an operator who has a password was given a link")
		}
		f.clock.Advance(Freshness)
		if v := f.visit(session); v.Role("t2") != roles.Admin || v.Role(roles.Installation) != roles.Owner {
			f.t.Fatalf("%+v", v.Memberships)
		}
	})
}

// If an account without any role is invited, it begins anew.
func TestInvite_accountWithoutRoleBeginsAnew(t *testing.T) {
	each(t, operator, func(f *fixture) {
		by, _ := f.invited("kofi@example.com", Membership{"t1", roles.Finance})
		session, err := f.Accept(f.t.Context(), by.Token, by.Code, password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.SetRole(tx, "kofi@example.com", Membership{Tenant: "t1"})
			return err
		})
		next, invited := f.invited("kofi@example.com", Membership{"t2", roles.Owner})
		if !invited {
			f.t.Fatal("there is no link")
		}
		f.clock.Advance(Freshness)
		if _, err := f.Visit(f.t.Context(), session, true); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("the session of before: %v", err)
		}
		if _, err := f.Accept(f.t.Context(), next.Token, next.Code, password, "", home); err != nil {
			f.t.Fatal(err)
		}
	})
}

// An invitation works for a day.
func TestInvitation_lastsADay(t *testing.T) {
	each(t, operator, func(f *fixture) {
		by, _ := f.invited("kofi@example.com", Membership{"t1", roles.Finance})
		f.clock.Advance(InvitationLasts)
		if _, err := f.Accept(f.t.Context(), by.Token, by.Code, password, "", home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatal(err)
		}
	})
}

// A link that a development server made does not work in production.
func TestLink_ofDevelopmentNotInProduction(t *testing.T) {
	each(t, operator, func(f *fixture) {
		link := f.link()
		f.development = false
		if _, err := f.SignIn(f.t.Context(), link, ""); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatal(err)
		}
	})
}

// A reset removes the password, the second factor and the recovery codes.
func TestReset_removesAllProofs(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, recovery := f.enrol(v)
		if err := f.BeginFactor(f.t.Context(), v, "", home); err != nil {
			f.t.Fatal(err)
		}
		old, by := NewInvitation(), NewInvitation()
		f.tx(func(tx *db.Tx) error { _, err := f.Reset(tx, old, f.person.Email); return err })
		f.tx(func(tx *db.Tx) error { _, err := f.Reset(tx, by, f.person.Email); return err })
		f.clock.Advance(codePeriod)
		for _, code := range []string{"", f.code(key), recovery[1]} {
			if _, err := f.attempt(password, code, home); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatal(err)
			}
		}
		if err := f.NeedFactor(f.t.Context(), v); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("a session outlived the reset: %v", err)
		}
		if err := f.SetPassword(f.t.Context(), v, "", "another green market stall", home); err == nil {
			f.t.Fatal("an ended session chose the password")
		}
		if _, err := f.ConfirmFactor(f.t.Context(), v, f.code(key), "", home); err == nil {
			f.t.Fatal("an ended session confirmed a factor")
		}
		if _, err := f.Accept(f.t.Context(), old.Token, old.Code, password, "", home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("an older invitation works: %v", err)
		}
		token, err := f.Accept(f.t.Context(), by.Token, by.Code, "another green market stall", "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		if v := f.visit(token); v.HasFactor || !v.HasPassword {
			f.t.Fatalf("%+v", v)
		}
	})
}

// A disabled person cannot sign in until enabled again.
func TestDisable_untilEnabled(t *testing.T) {
	each(t, operator, func(f *fixture) {
		by, _ := f.invited("kofi@example.com", Membership{roles.Installation, roles.Owner})
		f.known()
		token := f.signIn()
		f.tx(func(tx *db.Tx) error { _, err := f.Disable(tx, f.person.Email); return err })
		f.clock.Advance(Freshness)
		if f.in(token, false) {
			f.t.Fatal("a disabled person is in")
		}
		if _, err := f.attempt(password, "", home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatal(err)
		}
		f.refused(problem.InProgress, func(tx *db.Tx) error { _, err := f.Reset(tx, by, f.person.Email); return err })
		f.refused(problem.Duplicate, func(tx *db.Tx) error { _, err := f.Disable(tx, f.person.Email); return err })
		f.refused(problem.Forbidden, func(tx *db.Tx) error { _, err := f.Disable(tx, "kofi@example.com"); return err })
		f.tx(func(tx *db.Tx) error { _, err := f.Enable(tx, f.person.Email); return err })
		f.refused(problem.Duplicate, func(tx *db.Tx) error { _, err := f.Enable(tx, f.person.Email); return err })
		if f.in(token, false) {
			f.t.Fatal("an ended session came back")
		}
		if _, err := f.attempt(password, "", home); err != nil {
			f.t.Fatal(err)
		}
	})
}

// The last owner of the installation cannot lose the role.
func TestSetRole_keepsAnOwner(t *testing.T) {
	each(t, operator, func(f *fixture) {
		demote := func(email string) func(tx *db.Tx) error {
			return func(tx *db.Tx) error {
				_, _, err := f.SetRole(tx, email, Membership{roles.Installation, roles.Support})
				return err
			}
		}
		f.refused(problem.Forbidden, demote(f.person.Email))
		f.refused(problem.Forbidden, func(tx *db.Tx) error { _, err := f.Disable(tx, f.person.Email); return err })
		f.refused(problem.NotFound, demote("nobody@example.com"))
		f.invited("kofi@example.com", Membership{roles.Installation, roles.Owner})
		var won atomic.Int64
		var all sync.WaitGroup
		for _, email := range []string{f.person.Email, "kofi@example.com"} {
			all.Go(func() {
				err := f.db.Write(context.WithoutCancel(f.t.Context()), demote(email))
				if err == nil {
					won.Add(1)
				} else if !problem.Is(err, problem.Forbidden) {
					f.t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			f.t.Fatalf("%d of two last owners were taken away at once", won.Load())
		}
		f.tx(func(tx *db.Tx) error { // the owner of a tenant may lose the role
			_, before, err := f.SetRole(tx, f.person.Email, Membership{"t1", ""})
			if before != roles.Owner {
				f.t.Errorf("was %s", before)
			}
			return err
		})
		list, err := f.People(f.t.Context(), 10)
		if err != nil || len(list) != 2 || list[0].Email != f.person.Email || len(list[0].Memberships) != 1 || list[1].HasPassword {
			f.t.Fatalf("%+v, %v", list, err)
		}
	})
}

// Bootstrap creates the first owner. If there is a person, it does nothing.
func TestBootstrap_createsFirstOwnerOnly(t *testing.T) {
	each(t, nil, func(f *fixture) {
		if made, err := f.Bootstrap(f.t.Context(), "kofi@example.com", "Kofi", password); made || err != nil {
			f.t.Fatal(made, err) // the person of the fixture exists
		}
		f.tx(func(tx *db.Tx) error { tx.Defer("DELETE FROM people", -1); return nil })
		if _, err := f.Bootstrap(f.t.Context(), "kofi@example.com", "Kofi", "short"); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		made, err := f.Bootstrap(f.t.Context(), "ama@example.com", "Ama", password)
		if !made || err != nil {
			f.t.Fatal(made, err)
		}
		if v, err := f.attempt(password, "", home); err != nil || v.Role(roles.Installation) != roles.Owner {
			f.t.Fatalf("%+v, %v", v, err)
		}
	})
}
