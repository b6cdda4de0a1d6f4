package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// signedIn returns the person with a password and a factor whose code was entered a moment ago.
func (f *fixture) signedIn() Visitor {
	f.t.Helper()
	f.known()
	v, err := f.attempt(password, "", home)
	if err != nil {
		f.t.Fatal(err)
	}
	f.enrol(v)
	return v
}

func (f *fixture) tokenOf(v Visitor) (string, PersonalToken) {
	f.t.Helper()
	text, token, err := f.NewPersonalToken(f.t.Context(), v, " the laptop ", home)
	if err != nil || token.Name != "the laptop" || !strings.HasPrefix(text, tokenPrefix) {
		f.t.Fatalf("%q, %+v, %v", text, token, err)
	}
	return text, token
}

// works reports whether a token works now, and whether a visitor that was read from it before is still valid.
func (f *fixture) works(text string, before Visitor) (now, still bool) {
	f.t.Helper()
	_, err := f.Bearer(f.t.Context(), text)
	if err != nil && !problem.Is(err, problem.Forbidden) {
		f.t.Fatal(err)
	}
	return err == nil, f.db.Write(f.t.Context(), func(tx *db.Tx) error { return f.InForce(tx, before) }) == nil
}

// A personal token ends at its time.
func TestToken_ends(t *testing.T) {
	ends := map[string]func(f *fixture, v Visitor, t PersonalToken) error{
		"after twelve hours": func(f *fixture, _ Visitor, _ PersonalToken) error { f.clock.Advance(TokenLasts); return nil },
		"by its person": func(f *fixture, v Visitor, t PersonalToken) error {
			return f.EndPersonalToken(f.t.Context(), v, t.ID, home)
		},
		"with all other sessions": func(f *fixture, v Visitor, _ PersonalToken) error { return f.EndOthers(f.t.Context(), v, home) },
		"with another password": func(f *fixture, v Visitor, _ PersonalToken) error {
			return f.SetPassword(f.t.Context(), v, password, "another green market stall", home)
		},
		"with a reset": func(f *fixture, v Visitor, _ PersonalToken) error {
			return f.db.Write(f.t.Context(), func(tx *db.Tx) error { _, err := f.Reset(tx, NewInvitation(), v.Person.Email); return err })
		},
		"with its person": func(f *fixture, v Visitor, _ PersonalToken) error {
			return f.db.Write(f.t.Context(), func(tx *db.Tx) error {
				if _, _, err := f.Invite(tx, NewInvitation(), "kofi@example.com", "Kofi", Membership{roles.Installation, roles.Owner}); err != nil {
					return err
				}
				return nil
			})
		},
	}
	each(t, operator, func(f *fixture) {
		f.known()
		for name, end := range ends {
			v := f.signedIn()
			text, token := f.tokenOf(v)
			before, err := f.Bearer(f.t.Context(), text)
			if err != nil || before.Person.ID != v.Person.ID || !before.ByToken() || before.Role(roles.Installation) != roles.Owner {
				f.t.Fatalf("%+v, %v", before, err)
			}
			if now, still := f.works(text, before); !now || !still {
				f.t.Fatalf("a new token: %v, %v", now, still)
			}
			if err := end(f, v, token); err != nil {
				f.t.Fatalf("%s: %v", name, err)
			}
			if name == "with its person" { // the person is no longer the last owner, so it can be disabled
				f.tx(func(tx *db.Tx) error { _, err := f.Disable(tx, v.Person.Email); return err })
			}
			if now, still := f.works(text, before); now || still {
				f.t.Errorf("a token that ended %s works: %v, and what was read of it: %v", name, now, still)
			}
			if name == "with its person" {
				f.tx(func(tx *db.Tx) error { _, err := f.Enable(tx, v.Person.Email); return err })
				if now, still := f.works(text, before); now || still {
					f.t.Error("a token works again when its person may sign in again")
				}
			}
		}
	})
}

// If a person signs out everywhere else, one audit entry names all personal tokens that this ends.
func TestSignOut_auditsEndedTokens(t *testing.T) {
	each(t, operator, func(f *fixture) {
		v := f.signedIn()
		ended := func(want int) {
			f.t.Helper()
			log, err := f.audit.List(f.t.Context(), audit.Filter{Action: "person.token_end"})
			if err != nil || len(log) != want || want > 0 && (log[0].Person != v.Person.ID || log[0].Actor != v.Person.Email || log[0].Origin != home.String()) {
				f.t.Fatalf("want %d entries: %+v, %v", want, log, err)
			}
		}
		end := func() {
			f.t.Helper()
			if err := f.EndOthers(f.t.Context(), v, home); err != nil {
				f.t.Fatal(err)
			}
		}
		end()
		ended(0)
		f.tokenOf(v)
		f.tokenOf(v)
		end()
		ended(1)
		end()
		ended(1)
	})
}

// A personal token is created in a browser, and only after a code.
func TestToken_needsFactorInBrowser(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		f.development = false
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); problem.From(err).Code != "no_factor" {
			f.t.Fatalf("in production without a factor: %v", err)
		}
		f.enrol(v)
		f.exec(`UPDATE factors SET first_at = 0`) // as in the first session after an invitation
		for _, name := range []string{"", "  ", "a\nb", strings.Repeat("x", maxTokenName+1)} {
			if _, _, err := f.NewPersonalToken(f.t.Context(), v, name, home); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%q: %v", name, err)
			}
		}
		text, _ := f.tokenOf(v)
		bearer, err := f.Bearer(f.t.Context(), text)
		if err != nil {
			f.t.Fatal(err)
		}
		for what, err := range map[string]error{"a token": func() error { _, _, err := f.NewPersonalToken(f.t.Context(), bearer, "x", home); return err }(),
			"recovery codes": func() error { _, err := f.RenewRecoveryCodes(f.t.Context(), bearer, home); return err }(),
			"a factor":       f.BeginFactor(f.t.Context(), bearer, "", home)} {
			if !problem.Is(err, problem.Unauthenticated) {
				f.t.Errorf("a token made %s: %v", what, err)
			}
		}
		if f.in(text, true) || f.in(strings.TrimPrefix(text, tokenPrefix), true) {
			f.t.Error("a token signs in")
		}
		f.development = true
		session := f.signIn()
		for _, bad := range []string{"", "x", tokenPrefix, tokenPrefix + strings.Repeat("A", tokenLength), strings.TrimPrefix(text, tokenPrefix), text + "A", session, tokenPrefix + session} {
			if _, err := f.Bearer(f.t.Context(), bad); !problem.Is(err, problem.Forbidden) {
				f.t.Errorf("%q: %v", bad, err)
			}
		}
		f.clock.Advance(StepUpLasts)
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); problem.From(err).Code != "step_up_needed" {
			f.t.Fatalf("without a code of five minutes: %v", err)
		}
		stored := 0
		f.tx(func(tx *db.Tx) error {
			_, err := tx.One(`SELECT count(*) FROM personal_tokens WHERE hash = $1 OR hash LIKE '%' || $2 || '%'`, []any{text, text[len(text)-10:]}, &stored)
			return err
		})
		if stored != 0 {
			f.t.Error("the text of a token is stored")
		}
	})
}

// A person has at most ten tokens, and ends only their own.
func TestToken_atMostTenEach(t *testing.T) {
	each(t, operator, func(f *fixture) {
		v := f.signedIn()
		for range MostTokens {
			f.tokenOf(v)
		}
		if _, _, err := f.NewPersonalToken(f.t.Context(), v, "x", home); !problem.Is(err, problem.Invalid) {
			f.t.Fatalf("one too many: %v", err)
		}
		list, err := f.PersonalTokens(f.t.Context(), v)
		if err != nil || len(list) != MostTokens || !list[0].ExpiresAt.Equal(start.Add(TokenLasts)) {
			f.t.Fatalf("%+v, %v", list, err)
		}
		other, err := f.Ensure(f.t.Context(), "kofi@example.com", "Kofi", []Membership{{roles.Installation, roles.Owner}})
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.EndPersonalToken(f.t.Context(), Visitor{Person: other}, list[0].ID, home); err != nil {
			f.t.Fatal(err)
		}
		if again, err := f.PersonalTokens(f.t.Context(), v); err != nil || len(again) != MostTokens {
			f.t.Fatalf("somebody else ended a token: %v", err)
		}
		for range 2 { // the second time changes nothing
			if err := f.EndPersonalToken(f.t.Context(), v, list[0].ID, home); err != nil {
				f.t.Fatal(err)
			}
		}
		made, ended := 0, 0
		for _, action := range f.actions() {
			switch action {
			case "person.token":
				made++
			case "person.token_end":
				ended++
			}
		}
		if made != MostTokens || ended != 1 {
			f.t.Fatal(fmt.Sprint(made, " made and ", ended, " ended in the audit log"))
		}
		f.clock.Advance(TokenLasts + keepEnded + time.Second)
		if err := f.Prune(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		left := 0
		f.tx(func(tx *db.Tx) error {
			_, err := tx.One(`SELECT count(*) FROM personal_tokens`, nil, &left)
			return err
		})
		if left != 0 {
			f.t.Errorf("%d tokens are kept", left)
		}
	})
}
