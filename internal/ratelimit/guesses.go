package ratelimit

import (
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/problem"
)

// The limits of wrong keys from one address: a number at once, and then a number a minute. Each wrong key costs a
// database query. They leave room for a customer with a revoked key, because the same key is queried only once a
// second.
const (
	GuessesAtOnce    = 100
	GuessesPerMinute = 60
	guessers         = 10_000 // maximum number of addresses in a node's memory
	provenKeys       = 10_000 // maximum number of correct keys in memory; an address may use such a key, however many wrong ones it sent
)

// Guesses counts wrong keys by address, in the memory of this node. It is safe for concurrent use.
type Guesses struct {
	clock  *clock.Clock
	mu     sync.Mutex
	of     map[netip.Prefix]guesser
	proven map[string]bool // keys that were correct, by hash
}

type guesser struct {
	left float64
	at   time.Duration // by Elapsed
}

// source returns the network for which an address counts. For IPv6 this is the /64 prefix, because providers assign
// whole prefixes.
func source(from netip.Addr) netip.Prefix {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	p, _ := from.Prefix(bits) // the zero prefix for an invalid address
	return p
}

// left returns the number of wrong keys that a source may still send, and the time until the next one.
func (g *Guesses) left(from netip.Prefix, now time.Duration) (left float64, next time.Duration) {
	who, known := g.of[from]
	if !known {
		return GuessesAtOnce, 0
	}
	left = min(who.left+(now-who.at).Minutes()*GuessesPerMinute, GuessesAtOnce)
	return left, time.Duration((1 - left) / GuessesPerMinute * float64(time.Minute))
}

// NewGuesses returns a Guesses.
func NewGuesses(c *clock.Clock) *Guesses {
	return &Guesses{clock: c, of: map[netip.Prefix]guesser{}, proven: map[string]bool{}}
}

// Refused returns an error for an address that sent too many wrong keys, unless the key with this hash was correct
// before.
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

// Right stores that a key was correct.
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

// Wrong counts a wrong key of an address.
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
