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
	drawn map[drawnKey]*drawn // unused tokens of the blocks of this node
}

// New makes a Limiter.
func New(d *db.DB, c *clock.Clock) *Limiter {
	return &Limiter{db: d, clock: c, drawn: map[drawnKey]*drawn{}}
}

// Limit is how many requests of one tenant are allowed in a window. Windows
// are fixed and begin at whole multiples of their length: on the hour, on the
// minute.
type Limit struct {
	Name   string // of the counter; endpoints with one name share it
	Max    int64  // requests in a window; 0 is no limit
	OfKey  int64  // of these for one key, so that a stolen one leaves the others some; 0: all
	Window time.Duration
	// Block is the number of requests that a node draws at once. At 1 or less every request is counted in the
	// database. More saves writes. Tokens that a node drew and did not use are lost for the window: a tenant never
	// gets too many requests, but may get fewer.
	Block int64
}

// AirtimeBuyLimit is the contract's limit of airtime-api/buy.
func AirtimeBuyLimit() Limit { return Limit{Name: "airtime-buy", Max: 60, Window: time.Hour} }

// SenderIDLimit is the contract's limit of sms-api/requestSenderId.
func SenderIDLimit() Limit { return Limit{Name: "sender-id", Max: 60, Window: time.Hour} }

// AirtimeStatusLimit is the contract's limit of airtime-api/checkstatus.
func AirtimeStatusLimit() Limit { return Limit{Name: "airtime-status", Max: 60, Window: time.Minute} }

// BundleStatusLimit is the contract's limit of databundle-api-v2/checkstatus.
func BundleStatusLimit() Limit { return Limit{Name: "bundle-status", Max: 60, Window: time.Minute} }

// NameLimit is the limit of name queries, which providers charge for.
func NameLimit() Limit {
	return Limit{Name: "names", Max: 600, OfKey: 450, Window: time.Minute, Block: 10}
}

// OfferLimit is the limit of databundle-api-v2/offers.
func OfferLimit() Limit {
	return Limit{Name: "offers", Max: 600, OfKey: 450, Window: time.Minute, Block: 10}
}

// VoucherLimit is the limit of payers' vouchers that an account sends.
func VoucherLimit() Limit { return Limit{Name: "voucher", Max: 60, Window: time.Minute} }

// ReplayLimit is the limit of webhooks that an account has sent again.
func ReplayLimit() Limit { return Limit{Name: "webhook-replay", Max: 60, Window: time.Minute} }

// ForKey is the part of a limit that one key may use.
func (l Limit) ForKey(id string) Limit {
	l.Name, l.Max = l.Name+"/"+id, l.OfKey
	return l
}

// blocksInWindow is into how many draws a general limit is cut.
const blocksInWindow = 50

// GeneralLimit is a limit over all endpoints of a tenant, in requests a
// minute, which each node draws in blocks. 0 is no limit.
func GeneralLimit(perMinute int64) Limit {
	return Limit{Name: "general", Max: perMinute, Window: time.Minute, Block: max(1, perMinute/blocksInWindow)}
}

// Decision is the verdict of a limit about one request.
type Decision struct {
	Allowed    bool
	Max        int64
	Window     time.Duration
	Remaining  int64         // requests left in the window, never below zero
	ResetAfter time.Duration // until the next window
}

// One statement, so that two nodes can never take the same place. A node whose
// clock is behind counts into the window that the other has begun, and never
// brings an old one back. A window that begins after $5 is of a clock that was
// set back since: it would close the endpoint until then, and is forgotten.
const takeRate = `INSERT INTO rate_counters (tenant, name, window_start, used) VALUES ($1, $2, $3, $4)
	ON CONFLICT (tenant, name) DO UPDATE SET
		used = CASE WHEN rate_counters.window_start >= excluded.window_start AND rate_counters.window_start <= $5
			THEN rate_counters.used + excluded.used ELSE excluded.used END,
		window_start = CASE WHEN rate_counters.window_start <= $5
			THEN greatest(rate_counters.window_start, excluded.window_start) ELSE excluded.window_start END
	RETURNING window_start, used`

const readRate = `SELECT window_start, used FROM rate_counters WHERE tenant = $1 AND name = $2`

// Left returns the remaining requests of a tenant under a limit, without counting one. Tokens that this node has drawn and not
// used are left. Tokens that other nodes have drawn count as used.
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

// furthest returns the latest time at which another node may begin the window that this node began at a time: clocks
// of nodes differ by clock.Skew at most.
func (l Limit) furthest(begun time.Time) time.Time { return begun.Add(l.Window + clock.Skew) }

type drawnKey struct{ tenant, name string }

// drawn is this node's share of one counter: the unused tokens, and whether the counter has any left to draw. The
// latter does not change before the window ends.
type drawn struct {
	lock  chan struct{} // holds one while a caller uses it: waiting for it has a time limit
	start time.Time
	left  int64 // tokens of this node
	rest  int64 // tokens that were not drawn when this node last asked
	spent bool  // no more can be drawn in this window
}

// Take counts one request of a tenant against a limit. Over all nodes exactly
// Max requests of a window are allowed (with blocks: at most Max). A window
// that is known to be used up costs no more writes.
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

// draw takes the next block, and learns whether another node began a later
// window or used this one up.
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

// keepCounters is how long a counter outlives its window's beginning. It is
// longer than the longest window.
const keepCounters = 48 * time.Hour

// farAhead bounds how far in the future a window may begin, because clocks of nodes differ. A window further ahead
// was made by a wrong clock. Its count would close the endpoint to the tenant until then.
const farAhead = time.Hour

const pruneCounters = `DELETE FROM rate_counters WHERE window_start < $1 OR window_start > $2`

// Prune removes counters of tenants that have not called for two days, here and in memory, and counters made by a
// wrong clock. It returns the number of rows removed.
func (r *Limiter) Prune(ctx context.Context) (rows int64, err error) {
	now := r.clock.Now()
	before := now.Add(-keepCounters)
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		rows, err = tx.Exec(pruneCounters, before, now.Add(farAhead))
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, d := range r.drawn {
		// A counter in use is not old; its caller keeps it.
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
