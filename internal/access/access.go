// Package access decides who may call on behalf of a tenant. It stores API keys with their members and scopes, and
// the addresses that may request payouts. It knows only a tenant's id. Package tenant decides whether the tenant is
// blocked or may collect.
//
// Each node reads a key and an allow-list at most once a second. A revocation or a new address therefore applies on
// every node within one second.
package access

import (
	"net/netip"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ratelimit"
)

// Freshness is the maximum age of a cached key or allow-list.
const Freshness = time.Second

// The maximum numbers of keys and allow-lists in a node's cache.
const (
	cachedKeys  = 50_000
	cachedLists = 10_000
)

// Access stores keys and allow-lists. It is safe for concurrent use.
type Access struct {
	db    *db.DB
	clock *clock.Clock
	keys  *cache.Cache[string, keyRow]
	lists *cache.Cache[string, []netip.Prefix]

	guesses *ratelimit.Guesses
}

// New returns an Access.
func New(d *db.DB, c *clock.Clock) *Access {
	a := &Access{db: d, clock: c, guesses: ratelimit.NewGuesses(c)}
	a.keys = cache.New(c, Freshness, cachedKeys, a.loadKey)
	a.lists = cache.New(c, Freshness, cachedLists, a.loadList)
	return a
}
