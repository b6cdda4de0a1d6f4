package route

import (
	"context"
	"maps"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// The breaker opens after openAfter consecutive failures on one node and stays open for firstHold. Each failed probe
// doubles that time, up to maxHold. A probe without a report ends after probeFor.
const (
	openAfter = 10
	firstHold = 15 * time.Second
	maxHold   = 5 * time.Minute
	probeFor  = 30 * time.Second
)

// Report records the outcome of a call to a provider, so that its breaker can open or close. A clear refusal and a
// recognized duplicate are successes, because the provider works. A refusal without a known code counts as neither.
// Status queries are not reported, because they show little about submissions.
func (t *Table) Report(r provider.Rail, op Operation, o provider.Outcome, took time.Duration) {
	t.metrics.observe(r, op, o, took)
	k := breakerKey{r.Mode, r.Name, op}
	now := t.clock.Now()
	b := &t.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	was, open, _ := b.state(k, b.read)
	if o.Class == provider.Rejected && !o.Clear { // may come from a gateway or from our adapter: no evidence about the provider
		return
	}
	if !outage(o) {
		delete(b.failures, k)
		// The response proves nothing if its request was sent before the breaker opened.
		if open && now.Add(-took).After(was.openedAt) {
			b.changed[k] = nil
			t.announce(k, "closed", "")
		}
		return
	}
	b.failures[k]++
	hold := firstHold
	switch {
	case open && now.Before(was.until): // the response to a request from before the breaker opened
		return
	case open:
		hold = min(2*was.hold, maxHold)
	case b.failures[k] < openAfter:
		return
	}
	delete(b.failures, k) // after closing, failures are counted from zero
	b.changed[k] = &breaker{openedAt: now, until: now.Add(max(hold, min(o.RetryAfter, maxHold))), hold: hold, why: why(o)}
	t.announce(k, "open", why(o))
}

// outage reports whether the provider cannot be reached, or its responses cannot be read. Further submissions would
// then create payments with an unknown outcome.
func outage(o provider.Outcome) bool {
	switch o.Class {
	case provider.NotSent, provider.Barred:
		return true
	case provider.Unknown:
		return !o.NotFound && o.Reason != provider.ReasonMismatch
	default:
		return false
	}
}

func why(o provider.Outcome) string {
	s := o.Class.String()
	if o.Code != "" {
		s += " " + o.Code
	}
	if o.Message != "" {
		s += " " + o.Message
	}
	return provider.Clip(s)
}

func (t *Table) announce(k breakerKey, state, why string) {
	t.log.Warn("circuit breaker changed state", "provider", k.provider, "mode", k.mode, "operation", string(k.op), "state", state, "why", why)
	t.wakePublisher()
}

// wakePublisher makes the background work run publishBreakers soon.
func (t *Table) wakePublisher() {
	select {
	case t.log2db.publish <- struct{}{}:
	default:
	}
}

// A Probe permits the one request that a half-open breaker admits. The report of that request closes the breaker or
// opens it again. Until then, for at most probeFor, every other request is refused.
type Probe struct {
	table *Table
	key   breakerKey
	until time.Time // identifies the probe: probe_until of the row
}

// Of reports whether the probe belongs to a rail. A nil probe belongs to none.
func (p *Probe) Of(r provider.Rail) bool {
	return p != nil && p.key.provider == r.Name && p.key.mode == r.Mode
}

// GiveBack returns a probe whose owner has submitted nothing, so that another request can use it at once. It does
// nothing on nil, on a returned probe, and on an expired one. It works even after ctx has ended. A probe that cannot
// be returned expires after probeFor.
func (p *Probe) GiveBack(ctx context.Context) {
	if p == nil {
		return
	}
	t, b := p.table, &p.table.breakers
	b.mu.Lock()
	if is := b.changed[p.key]; is != nil && is.probeUntil.Equal(p.until) {
		again := *is
		again.probeUntil = time.Time{}
		b.changed[p.key] = &again
	}
	if is, ok := b.read[p.key]; ok && is.probeUntil.Equal(p.until) {
		is.probeUntil = time.Time{}
		b.read[p.key] = is
	}
	b.mu.Unlock()
	_, err := t.db.Exec(context.WithoutCancel(ctx), sqlGiveProbeBack, 0, p.key.mode, p.key.provider, string(p.key.op), db.Micros(p.until))
	if err != nil {
		t.log.Warn("failed to release circuit breaker probe", "provider", p.key.provider, "operation", string(p.key.op), "error", err)
	}
	t.wakePublisher() // a probe may have written the row in the meantime
}

const sqlGiveProbeBack = `UPDATE provider_breakers SET probe_until = $1
	WHERE mode = $2 AND provider = $3 AND operation = $4 AND probe_until = $5`

// mayTry reports whether the breaker admits a request. If it does not, wait is the time until it may. A half-open
// breaker admits a single request of all nodes, and only if there is no better rail. mayTry uses the last reading of
// the table instead of the caller's, which may be older than this node's own change.
func (t *Table) mayTry(ctx context.Context, k breakerKey, first bool) (ok bool, taken *Probe, wait time.Duration) {
	now := t.clock.Now()
	b := &t.breakers
	b.mu.Lock()
	is, open, ours := b.state(k, b.read)
	if !open {
		b.mu.Unlock()
		return true, nil, 0
	}
	next := is.until
	if is.probeUntil.After(next) {
		next = is.probeUntil
	}
	reached := now
	if next.Sub(now) > maxHold+probeFor { // no breaker stays open for so long, so the clock was set back
		reached = next
	}
	if reached.Before(next) || !first {
		b.mu.Unlock()
		return false, nil, next.Sub(now)
	}
	// The probe is claimed on this node first, and then in the table for all nodes.
	probe := &Probe{table: t, key: k, until: now.Add(probeFor).Truncate(time.Microsecond)}
	half := is
	half.probeUntil = probe.until
	if ours {
		b.changed[k] = &half
		b.mu.Unlock()
		return true, probe, 0
	}
	b.read[k] = half
	b.mu.Unlock()
	won, err := t.takeProbe(ctx, probe, reached)
	if err != nil {
		t.log.Warn("failed to claim circuit breaker probe", "provider", k.provider, "operation", string(k.op), "error", err)
	}
	if !won {
		return false, nil, probeFor
	}
	return true, probe, 0
}

const sqlTakeProbe = `UPDATE provider_breakers SET probe_until = $1
	WHERE mode = $2 AND provider = $3 AND operation = $4 AND open_until <= $5 AND probe_until <= $5`

func (t *Table) takeProbe(ctx context.Context, p *Probe, reached time.Time) (won bool, err error) {
	err = t.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(sqlTakeProbe, db.Micros(p.until), p.key.mode, p.key.provider, string(p.key.op), db.Micros(reached))
		won = n == 1
		return err
	})
	return won && err == nil, err
}

const (
	sqlOpenBreaker = `INSERT INTO provider_breakers (mode, provider, operation, opened_at, open_until, hold, probe_until, why)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (mode, provider, operation) DO UPDATE SET opened_at = excluded.opened_at, open_until = excluded.open_until,
			hold = excluded.hold, probe_until = excluded.probe_until, why = excluded.why
		WHERE provider_breakers.opened_at <= excluded.opened_at`
	sqlCloseBreaker = `DELETE FROM provider_breakers WHERE mode = $1 AND provider = $2 AND operation = $3`
)

// publishBreakers stores this node's decisions for all nodes. If they cannot be stored now, they apply on this node
// and are stored later.
func (t *Table) publishBreakers(ctx context.Context) error {
	b := &t.breakers
	b.mu.Lock()
	todo := maps.Clone(b.changed)
	b.mu.Unlock()
	if len(todo) == 0 {
		return nil
	}
	err := t.db.Write(ctx, func(tx *db.Tx) error {
		for k, is := range todo {
			var err error
			if is == nil {
				_, err = tx.Exec(sqlCloseBreaker, k.mode, k.provider, string(k.op))
			} else {
				_, err = tx.Exec(sqlOpenBreaker, k.mode, k.provider, string(k.op), db.Micros(is.openedAt), db.Micros(is.until),
					is.hold.Microseconds(), db.Micros(is.probeUntil), is.why)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.switches.Forget(struct{}{})
	// The table is read again before our own decisions are removed, so that no call of Choose sees the old rows in
	// between.
	if _, err := t.switches.Get(ctx, struct{}{}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, is := range todo {
		if now, ok := b.changed[k]; ok && now == is {
			delete(b.changed, k)
		}
	}
	return nil
}

func scanBreaker(row *db.Row) (breakerKey, breaker, error) {
	var k breakerKey
	var b breaker
	var op string
	var opened, until, hold, probe int64
	err := row.Scan(&k.mode, &k.provider, &op, &opened, &until, &hold, &probe, &b.why)
	k.op = Operation(op)
	b.openedAt, b.until, b.probeUntil = db.FromMicros(opened), db.FromMicros(until), db.FromMicros(probe)
	b.hold = time.Duration(hold) * time.Microsecond
	return k, b, err
}
