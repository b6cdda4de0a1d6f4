package payments

import (
	"log/slog"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// Deps is what payments stand on.
type Deps struct {
	DB     *db.DB
	Clock  *clock.Clock
	Log    *slog.Logger
	Secret config.Secret
	// Ledger, Tenants, Jobs, Webhooks, Routes follow under these names.
}

// Payments is the domain. Its parts share db, ledger, tenants, jobs, webhooks,
// routes, clock and log under these field names.
type Payments struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
}

// New builds the domain and registers its jobs; Start begins to work.
func New(d Deps) *Payments {
	return &Payments{db: d.DB, clock: d.Clock, log: d.Log}
}
