// Package access decides who may call on behalf of a tenant: API keys and the
// members and scopes they carry, and the addresses from which payouts may be
// sent. It knows a tenant by its id only: whether the tenant is blocked or may
// collect is the business of package tenant.
//
// A key and an allow-list cost a query at most once a second on each node, so a
// revocation or a new address is in force everywhere within one second.
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
