package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
)

func get(t *testing.T, c *cache.Cache[string, int64], k string) int64 {
	t.Helper()
	v, err := c.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCache_ageCountsFromLoadStart(t *testing.T) {
	now := clock.NewManual(time.Unix(1000, 0))
	var loads int64
	c := cache.New(now, time.Second, 10, func(context.Context, string) (int64, error) {
		loads++
		if loads == 1 {
			now.Advance(600 * time.Millisecond) // a slow load
		}
		return loads, nil
	})
	if v := get(t, c, "a"); v != 1 {
		t.Fatal(v)
	}
	now.Advance(399 * time.Millisecond)
	if v := get(t, c, "a"); v != 1 {
		t.Fatalf("loaded too early: %d", v)
	}
	now.Advance(time.Millisecond)
	if v := get(t, c, "a"); v != 2 {
		t.Fatalf("answered a value that is a second old: %d", v)
	}
}

func TestCache_callersShareALoad(t *testing.T) {
	var loads atomic.Int64
	begun, open := make(chan struct{}), make(chan struct{})
	c := cache.New(clock.Real(), time.Hour, 10, func(context.Context, string) (int64, error) {
		n := loads.Add(1)
		if n == 1 {
			close(begun)
		}
		<-open
		return n, nil
	})
	// The caller that began the load gives up. The load continues for the other callers.
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := c.Get(ctx, "a")
		gaveUp <- err
	}()
	<-begun
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := c.Get(context.Background(), "a"); v != 1 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	close(open)
	wg.Wait()
}

func TestForget_endsALoadInProgress(t *testing.T) {
	var loads atomic.Int64
	begun, open := make(chan struct{}), make(chan struct{})
	c := cache.New(clock.Real(), time.Hour, 10, func(context.Context, string) (int64, error) {
		n := loads.Add(1)
		if n == 1 {
			close(begun)
			<-open
		}
		return n, nil
	})
	first := make(chan int64)
	go func() {
		v, _ := c.Get(context.Background(), "a")
		first <- v
	}()
	<-begun
	c.Forget("a")
	if v := get(t, c, "a"); v != 2 {
		t.Fatalf("joined a load from before Forget: %d", v)
	}
	close(open)
	if v := <-first; v != 1 {
		t.Fatal(v)
	}
	if v := get(t, c, "a"); v != 2 {
		t.Fatalf("an old load replaced a newer one: %d", v)
	}
}

func TestCache_errorsAreNotStored(t *testing.T) {
	var loads int64
	c := cache.New(clock.Real(), time.Hour, 10, func(context.Context, string) (int64, error) {
		if loads++; loads == 1 {
			return 0, errors.New("away")
		}
		return loads, nil
	})
	if _, err := c.Get(t.Context(), "a"); err == nil {
		t.Fatal("no error")
	}
	if v := get(t, c, "a"); v != 2 {
		t.Fatal(v)
	}
}

func TestCache_bounded(t *testing.T) {
	loads := map[string]int64{}
	c := cache.New(clock.NewManual(time.Unix(1000, 0)), time.Hour, 4, func(_ context.Context, k string) (int64, error) {
		loads[k]++
		return loads[k], nil
	})
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for range 2 {
		for _, k := range keys {
			get(t, c, k)
		}
	}
	again := 0
	for _, k := range keys {
		if loads[k] > 1 {
			again++
		}
	}
	if again < len(keys)-4 {
		t.Fatalf("only %d of %d keys were loaded again: the cache keeps more than 4", again, len(keys))
	}
}
