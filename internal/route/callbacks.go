package route

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

// publishCallbacksEvery is how often a node stores its counts of callbacks. Anybody can send callbacks, so a callback must
// not cause a write by itself.
const publishCallbacksEvery = 5 * time.Second

// CallbackArrived counts a callback of a provider that was verified or refused. The counts are stored in the background, and
// some may be lost.
func (t *Table) CallbackArrived(name, mode string, verified bool) {
	now, c, key := t.clock.Now(), &t.callbacks, railKey{name, mode}
	c.mu.Lock()
	n, first := c.open[key], len(c.open) == 0
	if verified {
		n.Verified, n.VerifiedAt = n.Verified+1, now
	} else {
		n.Refused, n.RefusedAt = n.Refused+1, now
	}
	c.open[key] = n
	c.mu.Unlock()
	if !first {
		return // the writer was signalled already
	}
	select {
	case c.new <- struct{}{}:
	default:
	}
}

const (
	addCallbacks = `INSERT INTO provider_callbacks (mode, provider, verified, verified_at, refused, refused_at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (mode, provider) DO UPDATE SET
		verified = provider_callbacks.verified + excluded.verified, verified_at = greatest(excluded.verified_at, provider_callbacks.verified_at),
		refused = provider_callbacks.refused + excluded.refused, refused_at = greatest(excluded.refused_at, provider_callbacks.refused_at)`
	readCallbacks = `SELECT verified, verified_at, refused, refused_at FROM provider_callbacks WHERE mode = $1 AND provider = $2`
)

// publishCallbacks stores the counts of this node. Counts that cannot be stored are lost.
func (t *Table) publishCallbacks() {
	counts := t.callbacks.take()
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	err := t.db.Write(ctx, func(tx *db.Tx) error {
		for key, n := range counts {
			if _, err := tx.Exec(addCallbacks, key.mode, key.provider, n.Verified, db.Micros(n.VerifiedAt), n.Refused, db.Micros(n.RefusedAt)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.log.Warn("failed to store counts of callbacks", "error", err)
	}
}

// CallbacksOf returns the counts of a provider's callbacks, including the counts of this node that are not
// stored yet.
func (t *Table) CallbacksOf(ctx context.Context, name, mode string) (n Callbacks, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		n = Callbacks{}
		_, err := tx.One(readCallbacks, []any{mode, name}, &n.Verified, &n.VerifiedAt, &n.Refused, &n.RefusedAt)
		return err
	})
	t.callbacks.mu.Lock()
	open := t.callbacks.open[railKey{name, mode}]
	t.callbacks.mu.Unlock()
	n.Verified, n.Refused = n.Verified+open.Verified, n.Refused+open.Refused
	if open.VerifiedAt.After(n.VerifiedAt) {
		n.VerifiedAt = open.VerifiedAt
	}
	if open.RefusedAt.After(n.RefusedAt) {
		n.RefusedAt = open.RefusedAt
	}
	return n, err
}
