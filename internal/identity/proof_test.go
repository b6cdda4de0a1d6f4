package identity

import (
	"context"
	"encoding/base32"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const password = "correct horse battery"

var home = netip.MustParseAddr("192.0.2.7")

// The codes equal the test vectors for SHA-1 in RFC 6238, appendix B. They are the last six of the eight digits
// there.
func TestTOTP_matchesRFC(t *testing.T) {
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := codeAt([]byte("12345678901234567890"), stepAt(time.Unix(at, 0))); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

// A code is accepted during its own time step, the one before and the one after.
func TestTOTP_acceptsOneStepEitherSide(t *testing.T) {
	key, at := newFactorKey(), time.Unix(1_000_000_000, 0)
	for drift := int64(-3); drift <= 3; drift++ {
		code := codeAt(key, stepAt(at)+drift)
		if got := stepOf(key, code, at) == stepAt(at)+drift; got != (drift >= -1 && drift <= 1) {
			t.Errorf("a code of %d steps away: %v", drift, got)
		}
	}
}

// A stored hash matches only its own password.
func TestHasher_matchesOnlyTheSamePassword(t *testing.T) {
	h := newHasher(0)
	one, err := h.seal(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	two, err := h.seal(t.Context(), password)
	if err != nil || one == two || strings.Contains(one, "horse") {
		t.Fatal(one, two, err)
	}
	for _, c := range []struct {
		stored, password string
		want             bool
	}{{one, password, true}, {two, password, true}, {one, password + " ", false}, {one, "", false}, {"", "", false}, {"", password, false}} {
		if got, _, err := h.matches(t.Context(), c.stored, c.password); err != nil || got != c.want {
			t.Errorf("%q against %q: %v, %v", c.password, c.stored, got, err)
		}
	}
	for _, stored := range []string{"x", "$argon2id$v=19$m=4294967295,t=3,p=1$AAAA$AAAA", one[:len(one)-5]} {
		if _, _, err := h.matches(t.Context(), stored, password); err == nil {
			t.Errorf("%q was taken", stored)
		}
	}
}

// Two hashes run at once, and few callers wait.
func TestHasher_twoAtOnceAndShortLine(t *testing.T) {
	h := newHasher(0)
	for range hashesAtOnce {
		h.turn <- struct{}{} // the place of one running hash is taken
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var busy, over atomic.Int64
	for range cap(h.line) + 5 {
		all.Go(func() {
			in, leave, err := h.enter(false)
			if err != nil {
				if !problem.Is(err, problem.Unavailable) {
					t.Error(err)
				}
				if busy.Add(1) == 5 {
					cancel() // the other sign-ins wait for their turn
				}
				return
			}
			defer leave()
			if _, err := in.hash(ctx, password, make([]byte, saltBytes)); err != nil {
				over.Add(1)
			}
		})
	}
	all.Wait()
	if busy.Load() != 5 || over.Load() != int64(cap(h.line)) {
		t.Fatalf("%d were refused, %d waited", busy.Load(), over.Load())
	}
}

// Passwords that are easy to guess are refused.
func TestPassword_easyIsRefused(t *testing.T) {
	p := []string{"kwame", "example"}
	for _, bad := range []string{"", "short", "elevenchars", strings.Repeat("ab", 60), "kwame is my", "makolaMakola", "Password1234", "123456123456", "qwertyuiop12", "kwamekwame1234", "aaaaaaaaaaaabbb", strings.Repeat("abcdefgh", 20), "abcdefgh\xff ijkl"} {
		if err := checkPassword(bad, p); !problem.Is(err, problem.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{password, "my makola market stall", "kwame likes red kenkey"} {
		if err := checkPassword(good, p); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// If too many callers wait, a sign-in is refused before its try is counted.
func TestTries_fullLineRefusesFirst(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		var leave []func()
		for range cap(f.hasher.line) {
			_, free, err := f.hasher.enter(false)
			if err != nil {
				f.t.Fatal(err)
			}
			leave = append(leave, free)
		}
		for range 2 * accountTries {
			if _, err := f.attempt(password, "", netip.MustParseAddr("203.0.113.1")); !problem.Is(err, problem.Unavailable) {
				f.t.Fatal(err)
			}
		}
		for _, free := range leave {
			free()
		}
		if _, err := f.attempt(password, "", netip.MustParseAddr("203.0.113.1")); err != nil {
			f.t.Fatalf("a try that was turned away counted: %v", err)
		}
	})
}

// Many clients from unknown networks may wait for a hash. They lock out neither a person on a known network nor a
// person with a known browser.
func TestSignIn_ofKnownPeopleGoesOn(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		abroad := netip.MustParseAddr("198.51.100.7")
		session, err := f.SignInWithPassword(f.t.Context(), Attempt{Email: "ama@example.com", Password: password, From: home})
		if err != nil {
			f.t.Fatal(err)
		}
		device, err := f.NewDevice(f.t.Context(), session)
		if err != nil || device == "" {
			f.t.Fatal(device, err)
		}
		try := func(device, pass string, from netip.Addr) error {
			_, err := f.SignInWithPassword(f.t.Context(), Attempt{Email: "ama@example.com", Password: pass, From: from, Device: device})
			return err
		}
		for n := range accountTries {
			if err := try("", "guess", netip.AddrFrom4([4]byte{203, 0, 113, byte(n)})); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatal(err)
			}
		}
		for range cap(f.hasher.line) { // the waiting strangers, one of whom hashes
			if _, _, err := f.hasher.enter(false); err != nil {
				f.t.Fatal(err)
			}
		}
		f.hasher.share <- struct{}{}
		f.hasher.turn <- struct{}{}
		if err := try("", password, abroad); !problem.Is(err, problem.RateLimited) {
			f.t.Errorf("a stranger without tries is refused by the line and not by the limit: %v", err)
		}
		if err := try("", password, home); err != nil {
			f.t.Errorf("from a known network: %v", err)
		}
		if err := try(device, password, abroad); err != nil {
			f.t.Errorf("with a known browser: %v", err)
		}
		for name, forged := range map[string]string{"another person's": "x" + device, "changed": device[:len(device)-2] + "AA", "short": "a.b", "empty parts": "...", "long": strings.Repeat(device, 9)} {
			if err := try(forged, password, netip.MustParseAddr("198.51.100.99")); !problem.Is(err, problem.RateLimited) {
				f.t.Errorf("a browser's text that is %s: %v", name, err)
			}
		}
		for range accountTries {
			if err := try(device, "guess", abroad); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatal(err)
			}
		}
		if err := try(device, password, abroad); !problem.Is(err, problem.RateLimited) {
			f.t.Errorf("a known browser guesses without end: %v", err)
		}
		f.clock.Advance(DeviceLasts)
		if got := f.device(device); got.person != "" {
			f.t.Errorf("a browser is known for ever: %+v", got)
		}
	})
}

// A browser is known for one person. For another person it is unknown.
func TestDevice_isOfOnePerson(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		session, err := f.SignInWithPassword(f.t.Context(), Attempt{Email: "ama@example.com", Password: password, From: home})
		if err != nil {
			f.t.Fatal(err)
		}
		device, err := f.NewDevice(f.t.Context(), session)
		if err != nil {
			f.t.Fatal(err)
		}
		for email, want := range map[string]bool{"ama@example.com": true, "kofi@example.com": false} {
			got, err := f.look(f.t.Context(), email, netip.MustParseAddr("198.51.100.7"), device)
			if err != nil || got.known != want {
				f.t.Errorf("%s: %+v, %v", email, got, err)
			}
		}
	})
}

// known returns the person of the fixture a password.
func (f *fixture) known() {
	f.t.Helper()
	by := NewInvitation()
	f.tx(func(tx *db.Tx) error { _, err := f.Reset(tx, by, f.person.Email); return err })
	if _, err := f.Accept(f.t.Context(), by.Token, by.Code, password, "A browser", home); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tx(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) attempt(pass, code string, from netip.Addr) (Visitor, error) {
	f.t.Helper()
	token, err := f.SignInWithPassword(f.t.Context(), Attempt{Email: " AMA@example.com", Password: pass, Code: code, Agent: "A browser", From: from})
	if err != nil {
		return Visitor{}, err
	}
	return f.visit(token), nil
}

func (f *fixture) visit(token string) Visitor {
	f.t.Helper()
	v, err := f.Visit(f.t.Context(), token, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// spaced returns a code as an app shows it and a person copies it, with a no-break space and white space around it.
func spaced(code string) string { return "\u00a0" + code[:3] + "\u00a0" + code[3:] + " \t" }

// enrol returns the visitor a factor and returns its key.
func (f *fixture) enrol(v Visitor) (key []byte, recovery []string) {
	f.t.Helper()
	if err := f.BeginFactor(f.t.Context(), v, "", home); err != nil {
		f.t.Fatal(err)
	}
	e, found, err := f.PendingFactor(f.t.Context(), v)
	if err != nil || !found || !strings.Contains(e.URI, "otpauth://totp/Makola:ama@example.com?issuer=Makola&secret="+e.Key) {
		f.t.Fatalf("%+v, %v, %v", e, found, err)
	}
	if key, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(e.Key); err != nil {
		f.t.Fatal(err)
	}
	if recovery, err = f.ConfirmFactor(f.t.Context(), v, spaced(f.code(key)), "", home); err != nil || len(recovery) != RecoveryCodes {
		f.t.Fatal(recovery, err)
	}
	return key, recovery
}

func (f *fixture) code(key []byte) string { return codeAt(key, stepAt(f.clock.Now())) }

func (f *fixture) actions() (list []string) {
	f.t.Helper()
	entries, err := audit.New(f.db, f.clock).List(f.t.Context(), audit.Filter{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Person != f.person.ID || e.Actor != f.person.Email {
			f.t.Errorf("%+v names another person", e)
		}
		list = append(list, e.Action)
	}
	return list
}

// A person signs in with the password and a code.
func TestSignIn_withPasswordAndCode(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil || !v.HasPassword || v.HasFactor || f.SteppedUp(v) || v.Session.Source != "192.0.2.7" {
			f.t.Fatalf("%+v, %v", v, err)
		}
		if lacksPassword, lacksFactor := v.Lacks(); lacksPassword || !lacksFactor {
			f.t.Fatal("an operator needs a factor, and has a password")
		}
		other, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, recovery := f.enrol(v)
		f.clock.Advance(Freshness)
		if err := f.NeedFactor(f.t.Context(), other); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("another session outlived the new factor: %v", err)
		}
		if err := f.NeedFactor(f.t.Context(), v); err != nil {
			f.t.Fatal(err)
		}
		for _, c := range []string{"", "000000", f.code(key) /* used when it was confirmed */, "aaaa-bbbb-cccc-dddd"} {
			if _, err := f.attempt(password, c, home); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatalf("code %q: %v", c, err)
			}
		}
		f.clock.Advance(codePeriod)
		code := f.code(key)
		if _, err := f.attempt("another password", code, home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatal(err)
		}
		v, err = f.attempt(password, spaced(code), home)
		if _, lacks := v.Lacks(); err != nil || !f.SteppedUp(v) || lacks {
			f.t.Fatalf("%+v, %v", v, err)
		}
		if _, err := f.attempt(password, code, home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("a code counted twice: %v", err)
		}
		if _, err := f.attempt(password, strings.ToUpper(strings.ReplaceAll(recovery[3], "-", " \u2013 ")), home); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.attempt(password, recovery[3], home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("a recovery code counted twice: %v", err)
		}
		if got := strings.Join(f.actions(), " "); got != "person.recovery_code person.factor person.invitation" {
			f.t.Fatal(got)
		}
	})
}

// If many sign-ins use one code at once, one of them succeeds.
func TestSignIn_usesACodeOnce(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, recovery := f.enrol(v)
		f.clock.Advance(codePeriod)
		for _, code := range []string{f.code(key), recovery[0]} {
			var won atomic.Int64
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if _, err := f.SignInWithPassword(context.WithoutCancel(f.t.Context()), Attempt{Email: f.person.Email, Password: password, Code: code, From: home}); err == nil {
						won.Add(1)
					}
				})
			}
			all.Wait()
			if won.Load() != 1 {
				f.t.Errorf("%d browsers signed in with one code", won.Load())
			}
		}
	})
}

// Every refusal has the same text, whether the person exists or not.
func TestSignIn_refusalsAreOneText(t *testing.T) {
	each(t, operator, func(f *fixture) {
		texts := map[string]bool{}
		note := func(email, pass string) {
			_, err := f.SignInWithPassword(f.t.Context(), Attempt{Email: email, Password: pass, From: home})
			if !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatal(err)
			}
			texts[err.Error()] = true
		}
		note(f.person.Email, "") // the person has no password
		f.known()
		note(f.person.Email, password+"x")
		note("nobody@example.com", password)
		note("", "")
		note(strings.Repeat("a", 300)+"@example.com", password)
		note(f.person.Email, strings.Repeat("a", 4*MaxPassword+1))
		f.tx(func(tx *db.Tx) error { tx.Defer(disable, 1, f.person.ID, f.clock.Now()); return nil })
		note(f.person.Email, password)
		if len(texts) != 1 {
			f.t.Errorf("%v", texts)
		}
	})
}

// Guesses of one account's password are limited in number.
func TestTries_limitedPerAccount(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known() // this makes home a known source
		stranger := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}) }
		for n := range accountTries {
			if _, err := f.attempt("guess", "", stranger(n)); !problem.Is(err, problem.Unauthenticated) {
				f.t.Fatalf("try %d: %v", n, err)
			}
		}
		_, err := f.attempt(password, "", stranger(99))
		if !problem.Is(err, problem.RateLimited) || problem.From(err).RetryAfter != accountPause {
			f.t.Fatalf("a right password after too many tries: %v", err)
		}
		if _, err := f.attempt(password, "", home); err != nil {
			f.t.Fatalf("the owner is kept out by strangers: %v", err)
		}
		f.clock.Advance(accountPause)
		if _, err := f.attempt(password, "", stranger(99)); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.attempt("guess", "", stranger(98)); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("what was right is given back: %v", err)
		}
	})
}

// Guesses from one address are limited in number.
func TestTries_limitedPerAddress(t *testing.T) {
	each(t, nil, func(f *fixture) {
		try := func(from string) error {
			_, err := f.take(f.t.Context(), from+"@example.com", netip.MustParseAddr(from))
			return err
		}
		at := func(n int) string { return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(n)}).String() }
		for n := range addressTries {
			if err := try(at(n)); err != nil {
				f.t.Fatalf("try %d: %v", n, err)
			}
		}
		if err := try(at(200)); !problem.Is(err, problem.RateLimited) {
			f.t.Fatalf("one network has as many tries as it has addresses: %v", err)
		}
		if err := try("2001:db9::1"); err != nil {
			f.t.Fatalf("another network: %v", err)
		}
		f.clock.Advance(addressPause)
		if err := try(at(200)); err != nil {
			f.t.Fatal(err)
		}
		if err := try(at(200)); !problem.Is(err, problem.RateLimited) {
			f.t.Fatal(err)
		}
	})
}

// Concurrent tries have the same limit as tries one after another.
func TestTries_sameLimitAtOnce(t *testing.T) {
	each(t, nil, func(f *fixture) {
		var free atomic.Int64
		var all sync.WaitGroup
		for range 2 * accountTries {
			all.Go(func() {
				switch _, err := f.take(context.WithoutCancel(f.t.Context()), "ama@example.com", home); {
				case err == nil:
					free.Add(1)
				case !problem.Is(err, problem.RateLimited):
					f.t.Error(err)
				}
			})
		}
		all.Wait()
		if free.Load() != accountTries {
			f.t.Fatalf("%d tries", free.Load())
		}
		f.clock.Advance(time.Hour)
		if err := f.Prune(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.take(f.t.Context(), "ama@example.com", home); err != nil {
			f.t.Fatal(err)
		}
	})
}

// A second factor is valid for five minutes.
func TestStepUp_lastsFiveMinutes(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.StepUp(f.t.Context(), v, "123456", home); !problem.Is(err, problem.InProgress) {
			f.t.Fatalf("without a factor: %v", err)
		}
		key, _ := f.enrol(v)
		f.clock.Advance(StepUpLasts)
		if err := f.NeedFactor(f.t.Context(), v); !problem.Is(err, problem.Forbidden) {
			f.t.Fatal(err)
		}
		for what, do := range map[string]func() error{
			"another factor":     func() error { return f.BeginFactor(f.t.Context(), v, "", home) },
			"new recovery codes": func() error { _, err := f.RenewRecoveryCodes(f.t.Context(), v, home); return err },
			"another password":   func() error { return f.SetPassword(f.t.Context(), v, password, "another green market stall", home) },
		} {
			if err := do(); !problem.Is(err, problem.Forbidden) {
				f.t.Errorf("%s without the factor: %v", what, err)
			}
		}
		if err := f.StepUp(f.t.Context(), v, "123456", home); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		code := f.code(key)
		if err := f.StepUp(f.t.Context(), v, spaced(code), home); err != nil {
			f.t.Fatal(err)
		}
		if err := f.StepUp(f.t.Context(), v, code, home); !problem.Is(err, problem.Invalid) {
			f.t.Fatalf("a code counted twice: %v", err)
		}
		if err := f.SetPassword(f.t.Context(), v, password+"x", "another green market stall", home); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		if err := f.SetPassword(f.t.Context(), v, password, "another green market stall", home); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(codePeriod)
		if _, err := f.attempt(password, f.code(key), home); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatal(err)
		}
		if _, err := f.attempt("another green market stall", f.code(key), home); err != nil {
			f.t.Fatal(err)
		}
	})
}

// A factor that was shown but not confirmed has no effect, and expires.
func TestFactor_pendingHasNoEffect(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		if err := f.BeginFactor(f.t.Context(), v, "", home); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.ConfirmFactor(f.t.Context(), v, "000000", "", home); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		if _, err := f.attempt(password, "", home); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(pendingLasts - IdleOperator/2)
		if _, err := f.Visit(f.t.Context(), f.signIn(), true); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(IdleOperator / 2)
		if v, err = f.attempt(password, "", home); err != nil {
			f.t.Fatal(err)
		}
		if _, found, err := f.PendingFactor(f.t.Context(), v); found || err != nil {
			f.t.Fatal(found, err)
		}
		if _, err := f.ConfirmFactor(f.t.Context(), v, "000000", "", home); !problem.Is(err, problem.Gone) {
			f.t.Fatal(err)
		}
	})
}

// The key of a factor is sealed for its person. It cannot be used for another.
func TestFactor_keyIsSealedForItsPerson(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, recovery := f.enrol(v)
		p, err := f.proof(f.t.Context(), f.person.Email, recovery[0])
		if err != nil || !p.recovery || strings.Contains(p.sealed, base32Text.EncodeToString(key)) {
			f.t.Fatalf("%+v, %v", p, err)
		}
		if _, err := f.unseal("another person", p.sealed); err == nil {
			f.t.Fatal("the key opens for another person")
		}
		if _, err := New(f.db, f.clock, f.audit, Options{}).unseal(f.person.ID, p.sealed); err == nil {
			f.t.Fatal("the key opens without the master key")
		}
	})
}

// Two browsers have read that a code is unused. Only one of them can use it.
func TestCode_readByTwoIsUsedOnce(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, recovery := f.enrol(v)
		f.clock.Advance(codePeriod)
		for _, code := range []string{f.code(key), recovery[0]} {
			p, err := f.proof(f.t.Context(), f.person.Email, code)
			if err != nil {
				f.t.Fatal(err)
			}
			step, fits, err := f.compare(p)
			if err != nil || !fits {
				f.t.Fatal(fits, err)
			}
			use := func(tx *db.Tx) error { return f.useCode(tx, p, step, home) }
			f.tx(use)
			if err := f.db.Write(f.t.Context(), use); !problem.Is(err, problem.Unauthenticated) {
				f.t.Errorf("%q was used twice: %v", code, err)
			}
		}
	})
}

// After a rotation of the master key every person's codes still work, and the old key is no longer needed.
func TestFactor_survivesKeyRotation(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, _ := f.enrol(v)
		text := strings.Repeat("09", config.SecretBytes)
		both, err := config.ParseSecret(text + " " + strings.Repeat("07", config.SecretBytes))
		if err != nil {
			f.t.Fatal(err)
		}
		with := func(s config.Secret) *Identity {
			return New(f.db, f.clock, f.audit, Options{Secret: s, Development: true})
		}
		moved := int64(0)
		if err := with(both).Sealed().Reseal(f.t.Context(), func(n int64) { moved += n }); err != nil || moved != 1 {
			f.t.Fatal(moved, err)
		}
		first, err := config.ParseSecret(strings.Repeat("07", config.SecretBytes))
		if err != nil {
			f.t.Fatal(err)
		}
		alone, err := config.ParseSecret(text)
		if err != nil {
			f.t.Fatal(err)
		}
		i := with(alone.WithReference(first))
		counts, err := i.Sealed().Under(f.t.Context())
		if err != nil || len(counts) != 1 || counts[alone.Active()] != 1 {
			f.t.Fatal(counts, err)
		}
		f.clock.Advance(codePeriod)
		p, err := i.proof(f.t.Context(), f.person.Email, f.code(key))
		if err != nil {
			f.t.Fatal(err)
		}
		if _, fits, err := i.compare(p); err != nil || !fits {
			f.t.Fatal(fits, err)
		}
	})
}
