package identity

import (
	"encoding/base32"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
)

// begun returns a visitor in production who has begun to enrol a first factor, and the key that the page shows.
func (f *fixture) begun() (v Visitor, key []byte) {
	f.t.Helper()
	f.development = false
	f.known()
	v, err := f.attempt(password, "", home)
	if err != nil {
		f.t.Fatal(err)
	}
	return v, f.begin(v)
}

func (f *fixture) begin(v Visitor) []byte {
	f.t.Helper()
	if err := f.BeginFactor(f.t.Context(), v, password, home); err != nil {
		f.t.Fatal(err)
	}
	return f.shown(v)
}

// shown returns the key that the page of an enrolment shows.
func (f *fixture) shown(v Visitor) []byte {
	f.t.Helper()
	e, found, err := f.PendingFactor(f.t.Context(), v)
	if err != nil || !found {
		f.t.Fatal(found, err)
	}
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(e.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

// Only the session that began an enrolment sees its key and can confirm it. Another open browser of the person
// cannot.
func TestEnrolment_isOfItsSession(t *testing.T) {
	each(t, operator, func(f *fixture) {
		owner, key := f.begun()
		other, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		if e, found, err := f.PendingFactor(f.t.Context(), other); found || err != nil {
			f.t.Errorf("another session sees %+v, %v", e, err)
		}
		if _, err := f.ConfirmFactor(f.t.Context(), other, f.code(key), password, home); !problem.Is(err, problem.Gone) {
			f.t.Errorf("another session confirms: %v", err)
		}
		if _, err := f.ConfirmFactor(f.t.Context(), owner, f.code(key), "", home); err != nil {
			f.t.Error(err)
		}
	})
}

// If another session begins an enrolment, it replaces the first one completely.
func TestEnrolment_lastSessionCounts(t *testing.T) {
	each(t, operator, func(f *fixture) {
		first, key := f.begun()
		second, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		later := f.begin(second)
		for _, k := range [][]byte{key, later} {
			if _, err := f.ConfirmFactor(f.t.Context(), first, f.code(k), "", home); !problem.Is(err, problem.Gone) {
				f.t.Error(err)
			}
		}
		if _, err := f.ConfirmFactor(f.t.Context(), second, f.code(later), "", home); err != nil {
			f.t.Error(err)
		}
	})
}

// Five minutes after the password was entered, an open browser does not show the key. It does not confirm a first
// factor without the password.
func TestEnrolment_needsThePasswordLater(t *testing.T) {
	each(t, operator, func(f *fixture) {
		v, key := f.begun()
		f.clock.Advance(StepUpLasts)
		if e, found, err := f.PendingFactor(f.t.Context(), v); err != nil || !found || e != (Enrolment{NeedsPassword: true}) {
			f.t.Fatalf("%+v, %v, %v", e, found, err)
		}
		for _, current := range []string{"", "x"} {
			if _, err := f.ConfirmFactor(f.t.Context(), v, f.code(key), current, home); problem.From(err).Fields["current"] == nil {
				f.t.Errorf("password %q: %v", current, err)
			}
		}
		if _, err := f.ConfirmFactor(f.t.Context(), v, f.code(key), password, home); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(Freshness)
		if v = f.again(v); !v.HasFactor {
			f.t.Fatal("no factor")
		}
		another := f.begin(v) // replaces the first factor
		f.clock.Advance(StepUpLasts - Freshness)
		if e, found, err := f.PendingFactor(f.t.Context(), v); err != nil || !found || e.Key == "" {
			f.t.Fatalf("%+v, %v, %v", e, found, err)
		}
		f.clock.Advance(Freshness)
		if e, found, err := f.PendingFactor(f.t.Context(), v); err != nil || !found || e != (Enrolment{}) {
			f.t.Fatalf("%+v, %v, %v", e, found, err)
		}
		if _, err := f.ConfirmFactor(f.t.Context(), v, f.code(another), "", home); problem.From(err).Code != "step_up_needed" {
			f.t.Fatal(err)
		}
	})
}

// again returns the current state of a visitor.
func (f *fixture) again(v Visitor) Visitor {
	f.t.Helper()
	row, err := f.loadSession(f.t.Context(), v.hash)
	if err != nil {
		f.t.Fatal(err)
	}
	return row.visitor
}

// confirmed returns the visitor after the first code.
func (f *fixture) confirmed(v Visitor, key []byte) Visitor {
	f.t.Helper()
	if _, err := f.ConfirmFactor(f.t.Context(), v, f.code(key), "", home); err != nil {
		f.t.Fatal(err)
	}
	return f.again(v)
}

// Somebody who enrols a first factor in another person's open browser gets no token for an hour. In this hour the
// person is signed out elsewhere and can notice it. Replacing the app neither shortens nor extends the hour.
func TestTokens_waitAfterAFirstFactor(t *testing.T) {
	each(t, operator, func(f *fixture) {
		v, key := f.begun()
		v = f.confirmed(v, key)
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); problem.From(err).Code != "factor_new" {
			f.t.Fatalf("a token at once: %v", err)
		}
		if want := start.Add(TokensWait); !v.TokensFrom.Equal(want) {
			f.t.Errorf("tokens from %v, want %v", v.TokensFrom, want)
		}
		// A node of the previous release may create a token anyway. The token is refused.
		text := tokenPrefix + newToken()
		f.exec(insertToken, hashToken(text), "t", v.Person.ID, "x", start, start.Add(TokenLasts))
		if _, err := f.Bearer(f.t.Context(), text); problem.From(err).Code != "factor_new" {
			f.t.Errorf("a token that was made is used: %v", err)
		}

		f.clock.Advance(StepUpLasts / 2)
		v = f.confirmed(v, f.begin(v)) // a replacement of the first app
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); problem.From(err).Code != "factor_new" {
			f.t.Fatalf("a token after another app: %v", err)
		}
		f.clock.Advance(TokensWait - StepUpLasts/2 - 1)
		v = f.steppedUp(v)
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); problem.From(err).Code != "factor_new" {
			f.t.Fatalf("a token within the hour: %v", err)
		}
		f.clock.Advance(1)
		token, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home)
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.Bearer(f.t.Context(), token); err != nil {
			f.t.Fatal(err)
		}
	})
}

// steppedUp returns a session a code that was entered now and a request that was made now.
func (f *fixture) steppedUp(v Visitor) Visitor {
	f.t.Helper()
	f.exec(`UPDATE sessions SET factor_at = $2, used_at = $2 WHERE hash = $1`, v.hash, f.clock.Now())
	return f.again(v)
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err })
}

// Tokens need no wait in the first session after an invitation, a reset or the bootstrap, because a new person sets
// up both at once. In a later session they wait.
func TestTokens_firstSessionDoesNotWait(t *testing.T) {
	each(t, nil, func(f *fixture) {
		f.development = false
		by, _ := f.invited("kofi@example.com", Membership{roles.Installation, roles.Owner})
		token, err := f.Accept(f.t.Context(), by.Token, by.Code, password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		invited := f.visit(token)
		invited = f.confirmed(invited, f.begin(invited))
		f.tokenOf(invited)

		// If the first session enrolled no factor, the next session waits. A session also waits if the first factor
		// was enrolled in another session.
		f.exec(dropFactor, invited.Person.ID)
		if token, err = f.SignInWithPassword(f.t.Context(), Attempt{Email: invited.Person.Email, Password: password, From: home}); err != nil {
			f.t.Fatal(err)
		}
		later := f.visit(token)
		later = f.confirmed(later, f.begin(later))
		if _, _, err := f.NewPersonalToken(f.t.Context(), later, "x", home); problem.From(err).Code != "factor_new" {
			f.t.Fatal(err)
		}
	})
}

// The first sign-in of the first owner is a first session. The second is not.
func TestTokens_bootstrapDoesNotWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := &fixture{Identity: newIdentity(t, d, clock.NewManual(start)), t: t, db: d}
		f.clock, f.development = f.Identity.clock, false
		if made, err := f.Bootstrap(t.Context(), "ama@example.com", "Ama", password); err != nil || !made {
			t.Fatal(made, err)
		}
		first, err := f.attempt(password, "", home)
		if err != nil {
			t.Fatal(err)
		}
		second, err := f.attempt(password, "", home)
		if err != nil || second.Session.First || !first.Session.First {
			t.Fatalf("%+v, %+v, %v", first.Session, second.Session, err)
		}
		f.tokenOf(f.confirmed(first, f.begin(first)))
	})
}
