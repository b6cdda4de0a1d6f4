// Package access decides who may call on behalf of a tenant: API keys and the
// members and scopes they carry, the addresses from which payouts may be sent,
// and how often each endpoint may be called. It keeps the log of what operators
// did, and it knows which master key the database belongs to. It knows a tenant
// by its id only: whether the tenant is blocked or may collect is the business
// of package tenant.
//
// A key and an allow-list cost a query at most once a second on each node, so a
// revocation or a new address is in force everywhere within one second.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// Freshness is how old a cached key or allow-list may be.
const Freshness = time.Second

// How many keys and allow-lists a node remembers at once.
const (
	cachedKeys  = 50_000
	cachedLists = 10_000
)

// Access keeps keys, allow-lists, rate counters and the audit log. It is safe
// for concurrent use.
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

// ErrWrongSecret says that the database was made with another master key.
var ErrWrongSecret = errors.New("the master key is not the one this database was made with")

const claimInstallation = `INSERT INTO installation (id, fingerprint, created_at) VALUES (1, $1, $2)
	ON CONFLICT (id) DO NOTHING`

const selectFingerprint = `SELECT fingerprint FROM installation WHERE id = 1`

// CheckInstallation ties the database to the master key on the first start and
// answers ErrWrongSecret on any later start with another one: such a node would
// make other provider references for the same requests, and a request that was
// repeated could be paid twice.
func (a *Access) CheckInstallation(ctx context.Context, secret config.Secret) error {
	ours := fingerprint(secret)
	stored, err := a.storedFingerprint(ctx)
	if err != nil {
		return err
	}
	if stored == "" {
		err := a.db.Write(ctx, func(tx *db.Tx) error {
			if _, err := tx.Exec(claimInstallation, ours, a.clock.Now()); err != nil {
				return err
			}
			_, err := tx.One(selectFingerprint, nil, &stored)
			return err
		})
		// Of two first starts one claims; a lost answer is told by reading.
		if errors.Is(err, db.ErrAmbiguous) {
			stored, err = a.storedFingerprint(ctx)
		}
		if err != nil {
			return err
		}
	}
	return same(stored, ours)
}

// Tied says whether the database has a master key: that of the first server that was started on it.
func (a *Access) Tied(ctx context.Context) (bool, error) {
	stored, err := a.storedFingerprint(ctx)
	return stored != "", err
}

// CheckSecret is CheckInstallation for who starts no server: it ties nothing,
// and any key will do for a database that no server has been started on.
func (a *Access) CheckSecret(ctx context.Context, secret config.Secret) error {
	stored, err := a.storedFingerprint(ctx)
	if err != nil || stored == "" {
		return err
	}
	return same(stored, fingerprint(secret))
}

const (
	selectProduction = `SELECT production FROM installation WHERE id = 1`
	markProduction   = `UPDATE installation SET production = 1 WHERE id = 1`
)

// Production says whether a server in production mode was ever started on the database.
func (a *Access) Production(ctx context.Context) (production bool, err error) {
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		n := 0
		_, err := tx.One(selectProduction, nil, &n)
		production = n == 1
		return err
	})
	return production, err
}

// MarkProduction notes, for commands, that a server in production mode is started on the database, which CheckInstallation has
// tied.
func (a *Access) MarkProduction(ctx context.Context) error {
	if marked, err := a.Production(ctx); err != nil || marked {
		return err
	}
	return a.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(markProduction, 1)
		return nil
	})
}

func fingerprint(secret config.Secret) string {
	mac := hmac.New(sha256.New, secret.Derive("installation"))
	mac.Write([]byte("fingerprint"))
	return hex.EncodeToString(mac.Sum(nil))
}

// storedFingerprint is that of the master key that the database was made with; empty before the first start.
func (a *Access) storedFingerprint(ctx context.Context) (stored string, err error) {
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(selectFingerprint, nil, &stored)
		return err
	})
	return stored, err
}

func same(stored, ours string) error {
	if err := refuseMarked(stored); err != nil {
		return err
	}
	if !hmac.Equal([]byte(stored), []byte(ours)) {
		return ErrWrongSecret
	}
	return nil
}
