package ratelimit

import (
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/problem"
)

// Wrong keys that one address may send: so many at once, and so many a minute after that. Each costs a question to the
// database. A customer whose key was revoked tries one key, which is asked for once a second.
const (
	GuessesAtOnce    = 100
	GuessesPerMinute = 60
	guessers         = 10_000 // addresses that a node remembers
	provenKeys       = 10_000 // keys that were right, which an address may use however many others it tried
)

// Guesses counts wrong keys by address, in the memory of this node. It is safe for concurrent use.
type Guesses struct {
	clock  *clock.Clock
	mu     sync.Mutex
	of     map[netip.Prefix]guesser
	proven map[string]bool // by hash
}

type guesser struct {
	left float64
	at   time.Duration // by Elapsed
}

// source is whom an address counts for: IPv6 hands them out by the network.
func source(from netip.Addr) netip.Prefix {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	p, _ := from.Prefix(bits) // of no address at all: the zero prefix
	return p
}

// left returns the number of guesses that a source has left, and the time until the next one.
func (g *Guesses) left(from netip.Prefix, now time.Duration) (left float64, next time.Duration) {
	who, known := g.of[from]
	if !known {
		return GuessesAtOnce, 0
	}
	left = min(who.left+(now-who.at).Minutes()*GuessesPerMinute, GuessesAtOnce)
	return left, time.Duration((1 - left) / GuessesPerMinute * float64(time.Minute))
}

// NewGuesses makes a Guesses.
func NewGuesses(c *clock.Clock) *Guesses {
	return &Guesses{clock: c, of: map[netip.Prefix]guesser{}, proven: map[string]bool{}}
}

// Refused refuses an address that sent too many wrong keys, unless the key, known by its hash, was right before.
func (g *Guesses) Refused(from netip.Addr, hash string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, next := g.left(source(from), g.clock.Elapsed())
	if left >= 1 || g.proven[hash] {
		return nil
	}
	e := problem.New(problem.RateLimited, "rate_limited", "Too many requests with wrong keys. At most "+strconv.Itoa(GuessesPerMinute)+" are taken in a minute")
	e.RetryAfter = max(next, time.Second)
	return e
}

// Right notes a key that was right.
func (g *Guesses) Right(hash string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proven[hash] {
		return
	}
	if len(g.proven) >= provenKeys {
		clear(g.proven)
	}
	g.proven[hash] = true
}

// Wrong counts a key that was wrong.
func (g *Guesses) Wrong(from netip.Addr, hash string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.proven, hash)
	if len(g.of) >= guessers {
		clear(g.of)
	}
	who := source(from)
	left, _ := g.left(who, g.clock.Elapsed())
	g.of[who] = guesser{max(left-1, 0), g.clock.Elapsed()}
}
