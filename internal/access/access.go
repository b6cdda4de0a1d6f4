// Package access decides who may call on behalf of a tenant. It keeps API keys with their members and scopes, and the
// addresses that may send payouts. It knows only a tenant's id. Package tenant decides whether the tenant is blocked
// or may collect.
//
// A key and an allow-list cost at most one query a second on each node, so a revocation or a new address is in force
// everywhere within one second.
package access

import (
	"net/netip"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ratelimit"
)

// Freshness is how old a cached key or allow-list may be.
const Freshness = time.Second

// How many keys and allow-lists a node remembers at once.
const (
	cachedKeys  = 50_000
	cachedLists = 10_000
)

// Access keeps keys and allow-lists. It is safe for concurrent use.
type Access struct {
	db    *db.DB
	clock *clock.Clock
	keys  *cache.Cache[string, keyRow]
	lists *cache.Cache[string, []netip.Prefix]

	guesses *ratelimit.Guesses
}

// New makes an Access.
func New(d *db.DB, c *clock.Clock) *Access {
	a := &Access{db: d, clock: c, guesses: ratelimit.NewGuesses(c)}
	a.keys = cache.New(c, Freshness, cachedKeys, a.loadKey)
	a.lists = cache.New(c, Freshness, cachedLists, a.loadList)
	return a
}
