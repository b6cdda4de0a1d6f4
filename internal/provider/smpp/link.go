package smpp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// link maintains one connection. It binds, runs the session until it ends, and binds again.
type link struct {
	bind     Bind
	mode     BindMode
	clock    *clock.Clock
	log      *slog.Logger
	receipt  func(context.Context, provider.Receipt) func() error
	rate     *bucket
	incoming func(context.Context, provider.Incoming) func() error
	storing  chan struct{}           // a token for each receipt or text that is being stored
	session  atomic.Pointer[session] // nil while there is none, and on a receiver
	current  atomic.Pointer[session] // all sessions, for drain
	draining atomic.Bool

	mu    sync.Mutex
	bound bool
	since time.Time // time of the last change
	why   error     // the last failure, while not bound
}

// note stores whether the link is bound, and if not, why.
func (l *link) note(bound bool, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bound != l.bound {
		l.since = l.clock.Now()
	}
	l.bound, l.why = bound, why
}

// storedAtOnce is the maximum number of receipts and texts of one connection that are stored at once, in sets.
// An operator that sends faster must wait.
const storedAtOnce = 1_000

func newLink(b Bind, mode BindMode, o Options) *link {
	return &link{since: o.Clock.Now(), bind: b, mode: mode, clock: o.Clock, log: o.Log, receipt: o.Receipt, incoming: o.Incoming, rate: newBucket(o.Clock, b.Rate),
		storing: make(chan struct{}, storedAtOnce)}
}

func (l *link) serves(n msisdn.Network) bool {
	return len(l.bind.Networks) == 0 || n == "" || slices.Contains(l.bind.Networks, n)
}

func (l *link) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if l.bind.TLS != nil {
		return (&tls.Dialer{NetDialer: &dialer, Config: l.bind.TLS}).DialContext(ctx, "tcp", l.bind.Address)
	}
	return dialer.DialContext(ctx, "tcp", l.bind.Address)
}

// The pauses between attempts to connect.
const (
	firstPause = 100 * time.Millisecond
	sound      = time.Second // a session of at least this length resets the pause
)

// keep binds repeatedly. The pause grows with each failed attempt and each session that ends at once.
func (l *link) keep(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; {
		begun := l.clock.Elapsed()
		s, err := open(ctx, l)
		if err == nil {
			l.log.InfoContext(ctx, "SMPP connection bound", "bind", l.bind.Name, "mode", string(l.mode))
			l.current.Store(s)
			l.note(true, nil)
			if l.mode != Receiver && !l.draining.Load() {
				l.session.Store(s)
			}
			err = s.run(ctx)
			l.session.CompareAndSwap(s, nil)
			l.current.CompareAndSwap(s, nil)
			if l.clock.Elapsed()-begun >= sound {
				pause = firstPause
			}
		}
		l.note(false, err)
		if ctx.Err() != nil || l.draining.Load() {
			return
		}
		l.log.WarnContext(ctx, "SMPP connection lost", "bind", l.bind.Name, "mode", string(l.mode), "error", err)
		if l.clock.Sleep(ctx, pause/2+rand.N(pause)) != nil { // the random part spreads reconnects
			return
		}
		pause = min(2*pause, l.bind.ReconnectWithin)
	}
}

// sleep waits for d by the machine's clock and reports whether it passed before ctx ended. It is for times that end a
// connection.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// drain stops taking submits, waits for pending responses, and unbinds.
func (l *link) drain(ctx context.Context) {
	l.draining.Store(true)
	l.session.Store(nil)
	s := l.current.Load()
	if s == nil {
		return
	}
	for s.pending() > 0 && sleep(ctx, 10*time.Millisecond) { // until the last response or the end of ctx
	}
	s.request(unbind)
	select {
	case <-s.dead: // the peer closes after its response
	case <-ctx.Done():
	}
}

// bucket limits the segments per second. A "throttled" response of the operator halves the rate. Each second without
// one restores a tenth of the rate.
type bucket struct {
	clock *clock.Clock
	mu    sync.Mutex
	full  float64 // segments a second; 0: no limit
	now   float64 // the current rate
	// next, slowed and blocked are readings of Elapsed. So a clock that is set back does not delay texts.
	next    time.Duration
	slowed  time.Duration
	blocked time.Duration // no segment is sent before this time
}

// afterThrottle is the pause after the operator answered "throttled" or "queue full".
const afterThrottle = 200 * time.Millisecond

// unlimited is the rate of a connection without a configured limit, after which slow can halve it.
const unlimited = 10_000

func newBucket(c *clock.Clock, rate float64) *bucket {
	return &bucket{clock: c, full: rate, now: rate, slowed: -time.Minute}
}

var errSessionLost = errors.New("smpp: the connection was lost")

// wait waits for one segment's turn. It returns the length of the turn, which back needs. A segment that stops
// waiting gives its turn back. So no segment waits for unused turns after a lost connection.
func (b *bucket) wait(ctx context.Context, dead <-chan struct{}) (turn time.Duration, err error) {
	if err := over(ctx, dead); err != nil {
		return 0, err
	}
	now, at, turn := b.book()
	if at <= now {
		return turn, nil
	}
	timer := b.clock.TimerPassed(at)
	defer timer.Stop()
	select {
	case <-timer.C:
		return turn, nil
	case <-dead:
	case <-ctx.Done():
	}
	b.back(turn)
	return 0, over(ctx, dead)
}

// over returns the reason why a segment no longer waits, or nil.
func over(ctx context.Context, dead <-chan struct{}) error {
	select {
	case <-dead:
		return errSessionLost
	default:
		return ctx.Err()
	}
}

// book reserves the next turn.
func (b *bucket) book() (now, at, turn time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.clock.Elapsed()
	at = now
	if b.now > 0 {
		b.next = max(b.next, now)
		at, turn = b.next, time.Duration(float64(time.Second)/b.now)
		b.next += turn
	}
	return now, max(at, b.blocked), turn
}

// back returns the turn of a segment that was not sent.
func (b *bucket) back(turn time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = max(b.next-turn, b.clock.Elapsed())
}

func (b *bucket) slow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Elapsed()
	b.blocked = now + afterThrottle
	if now-b.slowed < afterThrottle {
		return // the responses to one window of submits count once
	}
	b.slowed = now
	if b.now == 0 {
		b.now = unlimited
	}
	b.now = max(b.now/2, 1)
}

func (b *bucket) recover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == b.full {
		return
	}
	now := b.clock.Elapsed()
	if now-b.slowed < time.Second {
		return
	}
	b.slowed = now
	limit := b.full
	if limit == 0 {
		limit = unlimited
	}
	b.now += limit / 10
	if b.now >= limit {
		b.now = b.full
	}
}
