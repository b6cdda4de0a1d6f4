package identity

import (
	"context"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// Options configure an Identity.
type Options struct {
	Secret      config.Secret // empty: factors cannot be used, only removed
	Development bool          // allows sign-in links of development
	// HashMemory is the memory for hashing a password, in KiB. 0 selects the amount for production. Tests that are
	// not about hashing use little. The stored form of a password contains the amount with which it was hashed.
	HashMemory uint32
}

// New returns an Identity.
func New(d *db.DB, c *clock.Clock, log *audit.Log, o Options) *Identity {
	i := &Identity{db: d, clock: c, audit: log, sealer: o.Secret.Sealer(sealLabel), development: o.Development, hasher: newHasher(o.HashMemory)}
	if !o.Secret.Empty() {
		i.devices = o.Secret.Derive("identity/devices")
	}
	i.sessions = cache.New(c, Freshness, cachedSessions, i.loadSession)
	return i
}

const (
	pruneSessions      = `DELETE FROM sessions WHERE created_at < $1`
	pruneLinks         = `DELETE FROM sign_in_links WHERE expires_at < $1`
	prunePasswordLinks = `DELETE FROM password_links WHERE expires_at < $1`

	pruneTokens = `DELETE FROM personal_tokens WHERE expires_at < $1`
)

// Prune deletes sessions, links and personal tokens that ended long ago.
func (i *Identity) Prune(ctx context.Context) error {
	before := i.clock.Now().Add(-keepEnded)
	err := i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(pruneSessions, -1, before)
		tx.Defer(pruneLinks, -1, before)
		tx.Defer(pruneTokens, -1, before)
		tx.Defer(prunePasswordLinks, -1, before)
		tx.Defer(pruneTries, -1, i.clock.Now())
		return nil
	})
	if err != nil {
		return err
	}
	return i.pruneUses(ctx)
}
