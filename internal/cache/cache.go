// Package cache keeps values that are read far more often than they change, such as keys and tenants, for a short
// time. The time counts from the start of the load, so no value is older than that, even if the clock is set.
// Concurrent callers share one load. Errors are never kept.
package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
)

// Cache holds values by key. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	clock *clock.Clock
	ttl   time.Duration
	max   int
	load  func(context.Context, K) (V, error)

	mu      sync.Mutex
	entries map[K]*entry[V]
}

// An entry is a running load until done is closed. After that it is the result of the load.
type entry[V any] struct {
	from  moment // when the load began
	done  chan struct{}
	value V
	err   error
}

// New makes a cache that returns a value for ttl after its load began, and holds at most max values.
func New[K comparable, V any](c *clock.Clock, ttl time.Duration, max int, load func(context.Context, K) (V, error)) *Cache[K, V] {
	return &Cache[K, V]{clock: c, ttl: ttl, max: max, load: load, entries: map[K]*entry[V]{}}
}

// Get returns the value of k, and loads it if it is absent or too old. Concurrent callers share one load, which
// continues when the caller that began it gives up.
func (c *Cache[K, V]) Get(ctx context.Context, k K) (V, error) {
	c.mu.Lock()
	now := c.now()
	e, there := c.entries[k]
	if !there || c.old(e, now) {
		e = &entry[V]{from: now, done: make(chan struct{})}
		if !there && len(c.entries) >= c.max {
			c.evictLocked(now)
		}
		c.entries[k] = e
		go c.fill(context.WithoutCancel(ctx), k, e)
	}
	c.mu.Unlock()
	select {
	case <-e.done:
		return e.value, e.err
	default:
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// moment is a time by both clocks of the machine. The wall clock may be set, and the monotonic clock may stop while
// the machine sleeps.
type moment struct {
	wall    time.Time
	elapsed time.Duration
}

func (c *Cache[K, V]) now() (m moment) {
	m.wall, m.elapsed = c.clock.Reading()
	return m
}

// old reports whether an entry must be loaded again, by whichever clock makes it older. An entry from the future was
// loaded before the machine's clock was set back, at an unknown time.
func (c *Cache[K, V]) old(e *entry[V], now moment) bool {
	age := now.wall.Sub(e.from.wall)
	return age < 0 || max(age, now.elapsed-e.from.elapsed) >= c.ttl
}

func (c *Cache[K, V]) fill(ctx context.Context, k K, e *entry[V]) {
	func() {
		defer func() {
			if p := recover(); p != nil { // no caller of this goroutine would recover the panic
				e.err = fmt.Errorf("cache: panic: %v\n%s", p, debug.Stack())
			}
		}()
		e.value, e.err = c.load(ctx, k)
	}()
	if e.err != nil {
		c.mu.Lock()
		if c.entries[k] == e {
			delete(c.entries, k)
		}
		c.mu.Unlock()
	}
	close(e.done)
}

// Forget drops the value of k, and the next Get loads it. A running load serves only the callers that already wait
// for it.
func (c *Cache[K, V]) Forget(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, k)
}

// evictLocked makes room: expired values first, then any.
func (c *Cache[K, V]) evictLocked(now moment) {
	for k, e := range c.entries {
		if c.old(e, now) {
			delete(c.entries, k)
		}
	}
	for k := range c.entries {
		if len(c.entries) <= c.max*3/4 {
			return
		}
		delete(c.entries, k)
	}
}
