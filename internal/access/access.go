// Package access decides who may call on behalf of a tenant: API keys and the
// members and scopes they carry, the addresses from which payouts may be sent,
// and how often each endpoint may be called. It knows a tenant by its id only:
// whether the tenant is blocked or may collect is the business of package
// tenant.
//
// A key and an allow-list cost a query at most once a second on each node, so a
// revocation or a new address is in force everywhere within one second.
package access

import (
	"net/netip"
	"sync"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Freshness is how old a cached key or allow-list may be.
const Freshness = time.Second

// How many keys and allow-lists a node remembers at once.
const (
	cachedKeys  = 50_000
	cachedLists = 10_000
)

// Access keeps keys, allow-lists and rate counters. It is safe for concurrent use.
type Access struct {
	db    *db.DB
	clock *clock.Clock
	keys  *cache.Cache[string, keyRow]
	lists *cache.Cache[string, []netip.Prefix]

	guesses guesses

	mu    sync.Mutex
	drawn map[drawnKey]*drawn // what is left of the blocks of this node
}

// New makes an Access.
func New(d *db.DB, c *clock.Clock) *Access {
	a := &Access{db: d, clock: c, drawn: map[drawnKey]*drawn{}, guesses: guesses{of: map[netip.Prefix]guesser{}, proven: map[string]bool{}}}
	a.keys = cache.New(c, Freshness, cachedKeys, a.loadKey)
	a.lists = cache.New(c, Freshness, cachedLists, a.loadList)
	return a
}
