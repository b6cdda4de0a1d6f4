package access

import (
	"net/netip"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/test/dbtest"
)

// A client that tries keys is turned away before each costs a question to the database; others, also those behind the same
// address whose keys are right, are served.
func TestKeys_wrongOnesAreLimited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		right := makeKey(t, d, a, NewKey{Tenant: "t1"})
		attacker, neighbour := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1::1")
		wrong := func(from netip.Addr) error {
			t.Helper()
			m, err := a.Mint(NewKey{Tenant: "t1"}) // well made, and nobody's
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.AuthenticateFrom(t.Context(), m.Text, from)
			return err
		}
		if _, err := a.AuthenticateFrom(t.Context(), right.Text, attacker); err != nil {
			t.Fatal(err)
		}
		for n := range ratelimit.GuessesAtOnce {
			if err := wrong(attacker); !problem.Is(err, problem.Unauthenticated) {
				t.Fatalf("wrong key %d: %v", n, err)
			}
		}
		next := netip.MustParseAddr("2001:db8::ffff:1") // of the same network
		err := wrong(next)
		if p := problem.From(err); !problem.Is(err, problem.RateLimited) || p.RetryAfter != time.Second {
			t.Errorf("after %d wrong keys: %v", ratelimit.GuessesAtOnce, err)
		}
		if _, err := a.AuthenticateFrom(t.Context(), right.Text, attacker); err != nil {
			t.Errorf("a right key from there: %v", err)
		}
		if err := wrong(neighbour); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("from another address: %v", err)
		}
		for range 2 * ratelimit.GuessesAtOnce {
			if _, err := a.AuthenticateFrom(t.Context(), "no key", neighbour); !problem.Is(err, problem.Unauthenticated) {
				t.Fatalf("what is no key: %v", err)
			}
		}
		c.Advance(2 * time.Second)
		if err := wrong(attacker); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("two seconds later: %v", err)
		}
		c.Advance(time.Hour)
		for range ratelimit.GuessesAtOnce {
			if err := wrong(attacker); !problem.Is(err, problem.Unauthenticated) {
				t.Fatalf("an hour later: %v", err)
			}
		}
		if err := wrong(attacker); !problem.Is(err, problem.RateLimited) {
			t.Errorf("more than %d are saved up: %v", ratelimit.GuessesAtOnce, err)
		}
	})
}

// A clock that is set back keeps an address out for no longer than before, and one that is set forward gives it no more guesses.
func TestAuthenticateFrom_clockSet(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		from := netip.MustParseAddr("2001:db8::1")
		wrong := func() error {
			t.Helper()
			m, err := a.Mint(NewKey{Tenant: "t1"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.AuthenticateFrom(t.Context(), m.Text, from)
			return err
		}
		for range ratelimit.GuessesAtOnce {
			if err := wrong(); !problem.Is(err, problem.Unauthenticated) {
				t.Fatal(err)
			}
		}
		c.Set(24 * time.Hour)
		if err := wrong(); !problem.Is(err, problem.RateLimited) {
			t.Errorf("after a step forward: %v", err)
		}
		c.Set(-48 * time.Hour)
		c.Advance(time.Second)
		if err := wrong(); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("a second after a step back: %v", err)
		}
	})
}
