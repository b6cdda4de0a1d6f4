// Package lookup queries providers without moving money: the holder of a mobile money wallet or a bank account, and
// the data packages and prices for a number. A query may be repeated at any time, so it is sent to the next rail if
// one does not answer. An offered package is stored as an offer with an id of ours, because its price is valid for 60
// minutes. Package payments reads the offer from here when a client buys it.
package lookup

import (
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// Lookups queries the rails of a route table, and stores offers. It is safe for concurrent use.
type Lookups struct {
	db      *db.DB
	tenants *tenant.Store
	routes  *route.Table
	clock   *clock.Clock
}

// New returns a Lookups that queries the rails of r.
func New(d *db.DB, t *tenant.Store, r *route.Table, c *clock.Clock) *Lookups {
	return &Lookups{db: d, tenants: t, routes: r, clock: c}
}
