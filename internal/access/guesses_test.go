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

// A client that tries wrong keys is soon refused before a key costs a query. Other clients are served, even those
// behind the same address if their keys are right.
func TestKeys_wrongOnesAreLimited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, c := other(d, start)
		right := makeKey(t, d, a, NewKey{Tenant: "t1"})
		attacker, neighbour := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1::1")
		wrong := func(from netip.Addr) error {
			t.Helper()
			m, err := a.Mint(NewKey{Tenant: "t1"}) // a well-formed key that is not stored
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
		next := netip.MustParseAddr("2001:db8::ffff:1") // an address in the same network
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

// If the clock is set back, an address is not refused for longer. If the clock is set forward, an address gets no
// further guesses.
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
