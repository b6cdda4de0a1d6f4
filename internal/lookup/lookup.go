// Package lookup asks providers what moves no money: whose a mobile money wallet or a bank account is, and which data
// packages a number is offered at which price. Because nothing moves, a question goes to the next rail when one rail
// does not answer, and it may be asked again at any time. A package that was offered is stored as an offer with an id
// of ours, because its price may be paid within 60 minutes; payments read it here when it is bought.
package lookup

import (
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// Lookups asks the rails of a route table, and keeps offers. It is safe for concurrent use.
type Lookups struct {
	db      *db.DB
	tenants *tenant.Store
	routes  *route.Table
	clock   *clock.Clock
}

// New is for a database that is open. The rails of r are asked.
func New(d *db.DB, t *tenant.Store, r *route.Table, c *clock.Clock) *Lookups {
	return &Lookups{db: d, tenants: t, routes: r, clock: c}
}
