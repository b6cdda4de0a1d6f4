package identity

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// A password is the same text from every keyboard, with composed or decomposed characters and any kind of space.
func TestPassword_isOneTextInEveryForm(t *testing.T) {
	h := newHasher(64)
	stored, err := h.seal(t.Context(), "caf\u00e9 of red mangoes")
	if err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{"caf\u00e9 of red mangoes", "cafe\u0301 of red mangoes", "cafe\u0301\u00a0of red\u3000mangoes"} {
		if same, stale, err := h.matches(t.Context(), stored, typed); err != nil || !same || stale {
			t.Errorf("%q: %v %v %v", typed, same, stale, err)
		}
	}
}

// A stored hash may have older parameters, or be of the password before its normalisation. The sign-in still works,
// and stores a newer hash.
func TestSignIn_renewsTheStoredHash(t *testing.T) {
	each(t, []Membership{{roles.Installation, roles.Owner}}, func(f *fixture) {
		t := f.t
		const typed = "cafe\u0301 of red mangoes"
		before := newHasher(128)
		salt := make([]byte, saltBytes)
		sum, err := before.hash(t.Context(), typed, salt)
		if err != nil {
			t.Fatal(err)
		}
		old := before.form() + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(sum)
		put := func(hash string) {
			if _, err := f.db.Exec(t.Context(), `UPDATE people SET password = $2 WHERE id = $1`, f.person.ID, hash); err != nil {
				t.Fatal(err)
			}
		}
		put(old)
		for range 2 {
			if _, err := f.SignInWithPassword(t.Context(), Attempt{Email: f.person.Email, Password: typed, From: home}); err != nil {
				t.Fatal(err)
			}
			var now string
			if _, err := f.db.ReadOne(t.Context(), `SELECT password FROM people WHERE id = $1`, []any{f.person.ID}, &now); err != nil {
				t.Fatal(err)
			}
			same, stale, err := f.hasher.matches(t.Context(), now, "caf\u00e9 of red mangoes")
			if err != nil || !same || stale {
				t.Errorf("stored %q: %v %v %v", now, same, stale, err)
			}
		}
	})
}

// A password made of common words, or of the names of the person or the company, is refused. The error advises
// another.
func TestPassword_guessableIsRefused(t *testing.T) {
	each(t, []Membership{{"shop", roles.Owner}}, func(f *fixture) {
		t := f.t
		if err := f.db.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO tenants (id, name, mode, collections_enabled, blocked, payouts_stopped, wallet_limit, bank_limit, fee_bearer, created_at, updated_at)
				VALUES ('shop', 'Kente Kings Ltd', 'test', 1, 0, 0, 1, 1, 'merchant', 1, 1)`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		f.person.Email, f.person.Name = "ama.mensah@adomventures.com", "Ama Serwaa Mensah"
		words, err := f.wordsAround(t.Context(), f.person)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"changeme12345", "Changeme12345!", "AmaMensah2026", "adomventures2026", "ama.mensah@adomventures.com", "SerwaaMensah#1", "KenteKings2026", "P@ssw0rd1234!"} {
			err := checkPassword(bad, words)
			if !problem.Is(err, problem.Invalid) || !strings.Contains(strings.Join(problem.From(err).Fields["password"], " "), "four or more words") {
				t.Errorf("%q: %v", bad, err)
			}
		}
		if err := checkPassword("three green mangoes walk", words); err != nil {
			t.Error(err)
		}
	})
}

// A person at an open browser cannot enrol a first factor without the password, except shortly after the sign-in.
func TestFactor_firstNeedsThePassword(t *testing.T) {
	each(t, []Membership{{roles.Installation, roles.Owner}}, func(f *fixture) {
		t := f.t
		by, _ := f.invited("kofi@example.com", Membership{roles.Installation, roles.Operations})
		token, err := f.Accept(t.Context(), by.Token, by.Code, password, "", home)
		if err != nil {
			t.Fatal(err)
		}
		visit := func() Visitor {
			v, err := f.Visit(t.Context(), token, true)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if err := f.BeginFactor(t.Context(), visit(), "", home); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(StepUpLasts)
		for _, current := range []string{"", "x", strings.Repeat("x", 1000)} {
			if err := f.BeginFactor(t.Context(), visit(), current, home); !problem.Is(err, problem.Invalid) || problem.From(err).Fields["current"] == nil {
				t.Errorf("password %.10q: %v", current, err)
			}
		}
		if err := f.BeginFactor(t.Context(), visit(), password, home); err != nil {
			t.Fatal(err)
		}
	})
}

// Even the longest password, and the one that is most expensive to estimate, is judged quickly. A longer password takes about as long
// as its first characters, which alone are estimated. The fastest of five tries counts, because other programs may slow one down.
func TestPassword_isJudgedInBoundedTime(t *testing.T) {
	judged := func(password string) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			_ = checkPassword(password, []string{"ama", "mensah"})
			least = min(least, time.Since(began))
		}
		return least
	}
	expensive := strings.Repeat("4@8({[<3691!", 10)
	for _, long := range []string{strings.Repeat("4@8({[<3691!", 84)[:1000], expensive, strings.Repeat("a1B!", 32)} {
		if took := judged(long); took > 500*time.Millisecond {
			t.Errorf("%d characters took %v", len(long), took)
		}
	}
	if start, whole := judged(expensive[:estimated]), judged(expensive); whole > 5*start {
		t.Errorf("%d characters took %v, and the first %d of them %v", len(expensive), whole, estimated, start)
	}
}
