// Package ratelimit counts two things: calls of each tenant and key to an endpoint, exactly over all nodes, and wrong
// keys of an address, on this node.
//
// Files: ratelimit.go (calls), guesses.go (wrong keys).
package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Limiter counts the calls of tenants. It is safe for concurrent use.
type Limiter struct {
	db    *db.DB
	clock *clock.Clock

	mu    sync.Mutex
	drawn map[drawnKey]*drawn // unused tokens that this node has drawn
}

// New returns a Limiter.
func New(d *db.DB, c *clock.Clock) *Limiter {
	return &Limiter{db: d, clock: c, drawn: map[drawnKey]*drawn{}}
}

// Limit is the number of requests of one tenant that are allowed in a window. Windows begin at whole multiples of
// their length, such as on the hour or on the minute.
type Limit struct {
	Name   string // name of the counter; endpoints with the same name share it
	Max    int64  // requests in a window; 0: no limit
	OfKey  int64  // maximum for one key, so that a stolen key cannot use up the limit; 0: Max
	Window time.Duration
	// Block is the number of requests that a node draws from the counter at once. At 1 or less, every request is
	// counted in the database. A larger block saves writes. Tokens that a node drew and did not use are lost for the
	// window. A tenant may therefore get fewer requests than Max, but never more.
	Block int64
}

// AirtimeBuyLimit returns the documented limit of airtime-api/buy.
func AirtimeBuyLimit() Limit { return Limit{Name: "airtime-buy", Max: 60, Window: time.Hour} }

// SenderIDLimit returns the documented limit of sms-api/requestSenderId.
func SenderIDLimit() Limit { return Limit{Name: "sender-id", Max: 60, Window: time.Hour} }

// AirtimeStatusLimit returns the documented limit of airtime-api/checkstatus.
func AirtimeStatusLimit() Limit { return Limit{Name: "airtime-status", Max: 60, Window: time.Minute} }

// BundleStatusLimit returns the documented limit of databundle-api-v2/checkstatus.
func BundleStatusLimit() Limit { return Limit{Name: "bundle-status", Max: 60, Window: time.Minute} }

// NameLimit returns the limit of name queries, for which providers charge.
func NameLimit() Limit {
	return Limit{Name: "names", Max: 600, OfKey: 450, Window: time.Minute, Block: 10}
}

// OfferLimit returns the limit of databundle-api-v2/offers.
func OfferLimit() Limit {
	return Limit{Name: "offers", Max: 600, OfKey: 450, Window: time.Minute, Block: 10}
}

// VoucherLimit returns the limit of payers' vouchers that an account sends.
func VoucherLimit() Limit { return Limit{Name: "voucher", Max: 60, Window: time.Minute} }

// ReplayLimit returns the limit of webhook replays of an account.
func ReplayLimit() Limit { return Limit{Name: "webhook-replay", Max: 60, Window: time.Minute} }

// ForKey returns the limit for a single key.
func (l Limit) ForKey(id string) Limit {
	l.Name, l.Max = l.Name+"/"+id, l.OfKey
	return l
}

// blocksInWindow is the number of blocks into which a general limit is divided.
const blocksInWindow = 50

// GeneralLimit returns a limit over all endpoints of a tenant, in requests a minute. Each node draws it in blocks. 0
// means no limit.
func GeneralLimit(perMinute int64) Limit {
	return Limit{Name: "general", Max: perMinute, Window: time.Minute, Block: max(1, perMinute/blocksInWindow)}
}

// Decision is the result of Take.
type Decision struct {
	Allowed    bool
	Max        int64
	Window     time.Duration
	Remaining  int64         // requests left in the window; not negative
	ResetAfter time.Duration // time until the next window
}

// A single statement counts, so that two nodes never take the same token. A node whose clock is behind counts in the
// newer window that another node has begun, and never begins an old one again. A window that begins after $5 dates
// from before a clock was set back. It would close the endpoint until then, so it is replaced.
const takeRate = `INSERT INTO rate_counters (tenant, name, window_start, used) VALUES ($1, $2, $3, $4)
	ON CONFLICT (tenant, name) DO UPDATE SET
		used = CASE WHEN rate_counters.window_start >= excluded.window_start AND rate_counters.window_start <= $5
			THEN rate_counters.used + excluded.used ELSE excluded.used END,
		window_start = CASE WHEN rate_counters.window_start <= $5
			THEN greatest(rate_counters.window_start, excluded.window_start) ELSE excluded.window_start END
	RETURNING window_start, used`

const readRate = `SELECT window_start, used FROM rate_counters WHERE tenant = $1 AND name = $2`

// Left returns the remaining requests of a tenant under a limit, without counting one. Unused tokens that this node
// has drawn are remaining. Tokens that other nodes have drawn count as used.
func (r *Limiter) Left(ctx context.Context, tenant string, l Limit) (Decision, error) {
	if l.Max <= 0 {
		return Decision{Allowed: true}, nil
	}
	now := r.clock.Now()
	begun := now.Truncate(l.Window)
	var start time.Time
	var used int64
	err := r.db.Read(ctx, func(tx *db.Tx) error {
		found, err := tx.One(readRate, []any{tenant, l.Name}, &start, &used)
		if !found || now.Sub(start) >= l.Window || start.After(l.furthest(begun)) {
			start, used = begun, 0
		}
		return err
	})
	if err != nil {
		return Decision{}, err
	}
	d := r.drawnFor(drawnKey{tenant, l.Name})
	select {
	case d.lock <- struct{}{}:
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
	defer func() { <-d.lock }()
	left := max(l.Max-used, 0)
	if d.start.Equal(start) {
		left += d.left
	}
	return Decision{Allowed: left > 0, Max: l.Max, Window: l.Window, Remaining: left, ResetAfter: min(start.Add(l.Window).Sub(now), l.Window)}, nil
}

// furthest returns the latest time at which another node may begin its window, if this node's window begins at begun.
// The clocks of nodes differ by at most clock.Skew.
func (l Limit) furthest(begun time.Time) time.Time { return begun.Add(l.Window + clock.Skew) }

type drawnKey struct{ tenant, name string }

// drawn is this node's part of one counter: the unused tokens, and whether the counter has tokens left. Once it has
// none, it has none until the window ends.
type drawn struct {
	lock  chan struct{} // a lock as a channel, so that waiting for it can time out
	start time.Time
	left  int64 // tokens of this node
	rest  int64 // tokens that were left in the counter at this node's last draw
	spent bool  // the counter has no tokens left in this window
}

// Take counts one request of a tenant under a limit. Over all nodes, exactly Max requests of a window are allowed, or
// at most Max with blocks. If the window is known to be used up, Take writes nothing.
func (r *Limiter) Take(ctx context.Context, tenant string, l Limit) (Decision, error) {
	if l.Max <= 0 {
		return Decision{Allowed: true}, nil
	}
	now := r.clock.Now()
	d := r.drawnFor(drawnKey{tenant, l.Name})
	select {
	case d.lock <- struct{}{}:
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
	defer func() { <-d.lock }()
	if begun := now.Truncate(l.Window); now.Sub(d.start) >= l.Window || d.start.After(l.furthest(begun)) {
		d.start, d.left, d.rest, d.spent = begun, 0, 0, false
	}
	if d.left == 0 && !d.spent {
		if err := r.draw(ctx, tenant, l, d); err != nil {
			return Decision{}, err
		}
	}
	decision := Decision{Max: l.Max, Window: l.Window, ResetAfter: min(d.start.Add(l.Window).Sub(now), l.Window)}
	if d.left > 0 {
		d.left--
		decision.Allowed, decision.Remaining = true, d.left+d.rest
	}
	return decision, nil
}

// draw draws the next block. It also updates d if another node has begun a later window or used up this one.
func (r *Limiter) draw(ctx context.Context, tenant string, l Limit, d *drawn) error {
	block := max(l.Block, 1)
	var start time.Time
	var used int64
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.One(takeRate, []any{tenant, l.Name, d.start, block, l.furthest(d.start)}, &start, &used)
		return err
	})
	if err != nil {
		return err
	}
	d.start = start
	d.left = min(max(l.Max-(used-block), 0), block)
	d.rest = max(l.Max-used, 0)
	d.spent = d.rest == 0
	return nil
}

func (r *Limiter) drawnFor(key drawnKey) *drawn {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.drawn[key]
	if d == nil {
		d = &drawn{lock: make(chan struct{}, 1)}
		r.drawn[key] = d
	}
	return d
}

// keepCounters is how long a counter is kept after the begin of its window. It is longer than the longest window.
const keepCounters = 48 * time.Hour

// farAhead is how far in the future a window may begin, because the clocks of nodes differ. A window further in the
// future was begun by a wrong clock, and would close the endpoint to the tenant until then.
const farAhead = time.Hour

const pruneCounters = `DELETE FROM rate_counters WHERE window_start < $1 OR window_start > $2`

// Prune deletes the counters of tenants that have not called for two days, in the database and in memory, and
// counters of a wrong clock. It returns the number of deleted rows.
func (r *Limiter) Prune(ctx context.Context) (rows int64, err error) {
	now := r.clock.Now()
	before := now.Add(-keepCounters)
	rows, err = r.db.Exec(ctx, pruneCounters, before, now.Add(farAhead))
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, d := range r.drawn {
		// A counter that is in use is not old, so it is skipped.
		select {
		case d.lock <- struct{}{}:
			if d.start.Before(before) {
				delete(r.drawn, key)
			}
			<-d.lock
		default:
		}
	}
	return rows, err
}
