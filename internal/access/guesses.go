package access

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// Wrong keys that one address may send: so many at once, and so many a minute after that. Each costs a question to the
// database. A customer whose key was revoked tries one key, which is asked for once a second.
const (
	guessesAtOnce    = 100
	guessesPerMinute = 60
	guessers         = 10_000 // addresses that a node remembers
	provenKeys       = 10_000 // keys that were right, which an address may use however many others it tried
)

// guesses counts wrong keys by address.
type guesses struct {
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

// left says how many guesses a source has, and how long until the next.
func (g *guesses) left(from netip.Prefix, now time.Duration) (left float64, next time.Duration) {
	who, known := g.of[from]
	if !known {
		return guessesAtOnce, 0
	}
	left = min(who.left+(now-who.at).Minutes()*guessesPerMinute, guessesAtOnce)
	return left, time.Duration((1 - left) / guessesPerMinute * float64(time.Minute))
}

// AuthenticateFrom is Authenticate for a caller at an address. An address that sent too many wrong keys is RateLimited,
// unless the key was right before on this node.
func (a *Access) AuthenticateFrom(ctx context.Context, text string, from netip.Addr) (Caller, error) {
	if !wellFormed(text) {
		return Caller{}, errKey() // which costs nothing
	}
	g, who, hash := &a.guesses, source(from), hashKey(text)
	g.mu.Lock()
	left, next := g.left(who, a.clock.Elapsed())
	refused := left < 1 && !g.proven[hash]
	g.mu.Unlock()
	if refused {
		e := problem.New(problem.RateLimited, "rate_limited", "Too many requests with wrong keys. At most "+strconv.Itoa(guessesPerMinute)+" are taken in a minute")
		e.RetryAfter = max(next, time.Second)
		return Caller{}, e
	}
	caller, err := a.Authenticate(ctx, text)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil && !g.proven[hash]:
		if len(g.proven) >= provenKeys {
			clear(g.proven)
		}
		g.proven[hash] = true
	case problem.Is(err, problem.Unauthenticated):
		delete(g.proven, hash)
		if len(g.of) >= guessers {
			clear(g.of)
		}
		left, _ := g.left(who, a.clock.Elapsed())
		g.of[who] = guesser{max(left-1, 0), a.clock.Elapsed()}
	}
	return caller, err
}
