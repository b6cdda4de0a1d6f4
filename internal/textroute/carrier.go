package textroute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
)

const (
	// restUnreached is how long a provider rests after it could not be reached. restRefused is how long it rests
	// after it refused the account.
	restUnreached = 5 * time.Second
	restRefused   = time.Minute
	// lostInRow is how many consecutive requests without a response make a provider rest for restLost, because
	// further texts would be unknown, too.
	lostInRow = 5
	restLost  = 30 * time.Second
	// The shortest and the longest pause after a 429.
	leastPause = time.Second
	mostPause  = time.Minute
)

// carrier is one provider over HTTP.
type carrier struct {
	rail    provider.TextRail
	clock   *clock.Clock
	metrics *Metrics
	window  chan struct{} // one entry for each open request

	// The times are values of Elapsed, so that a clock that is set does not delay texts.
	mu     sync.Mutex
	rests  time.Duration // end of its pause after failures; 0: not paused
	paused time.Duration // end of a pause of its texts
	lost   int           // requests in a row without a response
	since  time.Duration // time of the last change between working and paused
	why    string        // it rests
}

func newCarrier(r provider.TextRail, c *clock.Clock, m *Metrics) *carrier {
	return &carrier{rail: r, clock: c, metrics: m, window: make(chan struct{}, max(r.Window, 1)), since: c.Elapsed()}
}

// ID returns the id under which a message of a provider over HTTP is stored. Ids of different providers are never equal.
func ID(name, id string) string { return name + "/" + id }

// takes reports whether the provider knows a sender ID.
func (c *carrier) takes(from string) bool {
	return len(c.rail.Senders) == 0 || slices.Contains(c.rail.Senders, from)
}

// ready returns nil unless the provider is paused after a failure.
func (c *carrier) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clock.Elapsed() >= c.rests {
		return nil
	}
	return fmt.Errorf("textroute: no texts are sent over %s at the moment: %s", c.rail.Name, c.why)
}

func (c *carrier) state() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Elapsed()
	if now >= c.rests {
		return State{Name: c.rail.Name, Up: true, Since: now - max(c.since, c.rests)}
	}
	return State{Name: c.rail.Name, Since: now - c.since, Why: c.why}
}

// submit waits for a place in the window and sends the text in another goroutine. ctx ends the wait. A request that
// has begun always completes.
func (c *carrier) submit(ctx context.Context, t provider.Text, done func(provider.Outcome)) {
	if err := c.enter(ctx); err != nil {
		done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: err.Error()})
		return
	}
	go func() {
		o := c.exchange(context.WithoutCancel(ctx), t)
		<-c.window
		done(o)
	}()
}

// errRests ends the wait for a provider that begins to rest.
var errRests = errors.New("textroute: the provider is paused after failures")

// enter takes a place in the window, after a pause if there is one.
func (c *carrier) enter(ctx context.Context) error {
	select {
	case c.window <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c.mu.Lock()
		now, rests, until := c.clock.Elapsed(), c.rests, c.paused
		c.mu.Unlock()
		err := ctx.Err()
		switch {
		case err == nil && now < rests:
			err = errRests
		case err == nil && now < until:
			err = c.clock.SleepUntil(ctx, until)
		case err == nil:
			return nil
		}
		if err != nil {
			<-c.window
			return err
		}
	}
}

// exchange sends the text and returns the outcome for its caller. It returns Rejected only for messages that no
// provider would accept.
func (c *carrier) exchange(ctx context.Context, t provider.Text) provider.Outcome {
	begun := c.clock.Elapsed()
	c.count(func(m *Metrics) { m.open.WithLabelValues(c.rail.Name, c.rail.Mode).Inc() })
	o := c.rail.Texts.SendText(ctx, t)
	c.count(func(m *Metrics) {
		m.open.WithLabelValues(c.rail.Name, c.rail.Mode).Dec()
		m.texts.WithLabelValues(c.rail.Name, c.rail.Mode, o.Class.String()).Inc()
		m.seconds.WithLabelValues(c.rail.Name, c.rail.Mode).Observe((c.clock.Elapsed() - begun).Seconds())
	})
	c.note(o)
	switch {
	case o.Class == provider.Accepted && o.UpstreamID != "":
		o.UpstreamID = ID(c.rail.Name, o.UpstreamID)
	case o.TriesOther(): // the caller offers the text again, and the route leads to the next provider
		o.Class, o.Clear = provider.NotSent, false
	case o.Class == provider.Barred:
		o.Class, o.RetryAfter = provider.NotSent, pauseOf(o)
	}
	return o
}

func (c *carrier) count(do func(*Metrics)) {
	if c.metrics != nil {
		do(c.metrics)
	}
}

func pauseOf(o provider.Outcome) time.Duration { return min(max(o.RetryAfter, leastPause), mostPause) }

// note updates the state of the provider after an outcome.
func (c *carrier) note(o provider.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Elapsed()
	switch {
	case o.Class == provider.NotSent:
		c.restLocked(now, restUnreached, o)
	case o.TriesOther():
		c.restLocked(now, restRefused, o)
	case o.Class == provider.Barred:
		c.paused = max(c.paused, now+pauseOf(o))
	case o.Class == provider.Unknown:
		if c.lost++; c.lost >= lostInRow {
			c.restLocked(now, restLost, o)
		}
	default:
		c.lost = 0
	}
}

func (c *carrier) restLocked(now, rest time.Duration, o provider.Outcome) {
	if now >= c.rests {
		c.since = now
	}
	c.rests, c.lost = max(c.rests, now+rest), 0
	c.why = strings.TrimSpace(o.Code + " " + o.Message)
}
