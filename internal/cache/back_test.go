package cache

import (
	"context"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
)

// TestCache_clockSetBackExpiresAll: after the clock was set back, the age of loaded entries is unknown. A revoked key must not
// work until the machine's clock has caught up.
func TestCache_clockSetBackExpiresAll(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	loads := 0
	c := New(clock.NewManual(at), time.Second, 2, func(context.Context, string) (int, error) {
		loads++
		return loads, nil
	})
	get := func(key string, want int) {
		t.Helper()
		if v, err := c.Get(t.Context(), key); v != want || err != nil {
			t.Fatalf("%s is %d, %v; want %d", key, v, err, want)
		}
	}
	get("a", 1)
	get("b", 2)
	c.clock = clock.NewManual(at.Add(-time.Hour))
	get("a", 3)
	get("a", 3)
	get("c", 4) // there is room for two values, and the oldest is dropped first
	get("a", 3)
}

// A clock step back does not make a value younger. It is loaded again after its normal lifetime.
func TestGet_smallStepBack(t *testing.T) {
	at := clock.NewManual(time.Unix(1_000_000, 0))
	loads := 0
	c := New(at, time.Minute, 2, func(context.Context, string) (int, error) {
		loads++
		return loads, nil
	})
	for _, want := range []int{1, 1, 2} {
		if v, err := c.Get(t.Context(), "a"); v != want || err != nil {
			t.Fatalf("%d, %v; want %d", v, err, want)
		}
		at.Advance(30 * time.Second)
		at.Set(-30 * time.Second)
	}
}
