package route

import (
	"context"
	"maps"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// The breaker opens after this many failures in a row on one node and stays open for firstHold. Each failed probe
// doubles the time, up to maxHold. A probe without a report is given up after probeFor.
const (
	openAfter = 10
	firstHold = 15 * time.Second
	maxHold   = 5 * time.Minute
	probeFor  = 30 * time.Second
)

// Report records the outcome of a call to a provider, so that its breaker can open or close. A clear refusal and a
// recognized duplicate come from a provider that works. A bare refusal counts neither way. Status queries are not
// reported, because their outcome is little evidence that money can be sent.
func (t *Table) Report(r provider.Rail, op Operation, o provider.Outcome, took time.Duration) {
	t.metrics.observe(r, op, o, took)
	k := breakerKey{r.Mode, r.Name, op}
	now := t.clock.Now()
	b := &t.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	was, open, _ := b.state(k, b.read)
	if o.Class == provider.Rejected && !o.Clear { // of a gateway, or our own: no evidence about the provider
		return
	}
	if !outage(o) {
		delete(b.failures, k)
		// An answer to a request from before the opening proves nothing.
		if open && now.Add(-took).After(was.openedAt) {
			b.changed[k] = nil
			t.announce(k, "closed", "")
		}
		return
	}
	b.failures[k]++
	hold := firstHold
	switch {
	case open && now.Before(was.until): // a late answer from before the opening
		return
	case open:
		hold = min(2*was.hold, maxHold)
	case b.failures[k] < openAfter:
		return
	}
	delete(b.failures, k) // closing begins a new count
	b.changed[k] = &breaker{openedAt: now, until: now.Add(max(hold, min(o.RetryAfter, maxHold))), hold: hold, why: why(o)}
	t.announce(k, "open", why(o))
}

// outage reports whether the provider cannot be reached, or its responses cannot be read. Sending more would pile up
// payments with an unknown outcome.
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

// wakePublisher has publishBreakers run soon.
func (t *Table) wakePublisher() {
	select {
	case t.log2db.publish <- struct{}{}:
	default:
	}
}

// A Probe is the one request that a half-open breaker lets through. Its report
// closes the breaker or opens it again. Until then, and for probeFor at most, every
// other request is refused.
type Probe struct {
	table *Table
	key   breakerKey
	until time.Time // names the probe: the row's probe_until
}

// Of reports whether the probe belongs to a rail. A nil probe belongs to none.
func (p *Probe) Of(r provider.Rail) bool {
	return p != nil && p.key.provider == r.Name && p.key.mode == r.Mode
}

// GiveBack lets another request try at once: the one that held the probe has
// submitted nothing. It does nothing on nil, on a probe that was given back, and
// on one whose time is over. It works after the end of ctx. A probe that cannot be
// given back is over after probeFor.
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
	err := t.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		_, err := tx.Exec(sqlGiveProbeBack, 0, p.key.mode, p.key.provider, string(p.key.op), db.Micros(p.until))
		return err
	})
	if err != nil {
		t.log.Warn("circuit breaker probe released", "provider", p.key.provider, "operation", string(p.key.op), "error", err)
	}
	t.wakePublisher() // the row may have been written in the meantime, with the probe
}

const sqlGiveProbeBack = `UPDATE provider_breakers SET probe_until = $1
	WHERE mode = $2 AND provider = $3 AND operation = $4 AND probe_until = $5`

// mayTry reports whether the breaker lets a request through, and otherwise for how long it will not. A half-open
// breaker lets a single request of all nodes through, and only if there was no better rail. mayTry uses the last
// reading of the table, not the caller's: this node's own change may have reached the table in the meantime.
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
	if next.Sub(now) > maxHold+probeFor { // no hold is so long: the clock was set back since
		reached = next
	}
	if reached.Before(next) || !first {
		b.mu.Unlock()
		return false, nil, next.Sub(now)
	}
	// Taken on this node, before asking the others.
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

// publishBreakers writes this node's decisions. A decision that cannot be written now is kept and applies on this
// node.
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
	// Read back before dropping our own decision, so that no Choose in between sees the old rows.
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
