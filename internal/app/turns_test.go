package app

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/makola/makola/internal/test/clocktest"
)

// oneTurn returns turns of which one runs at a time.
func oneTurn() *turns {
	return &turns{free: 1, waiting: map[netip.Addr]*list.List{}, unidentified: newUnidentified(mostUnidentified)}
}

// Addresses take turns in rotation, however many connections of one address wait.
func TestTurns_addressesAlternate(t *testing.T) {
	t.Parallel()
	turns, flood, other := oneTurn(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	turns.take(flood)
	var mu sync.Mutex
	var order []netip.Addr
	var group sync.WaitGroup
	waiting := func(n int) func() bool {
		return func() bool {
			turns.mu.Lock()
			defer turns.mu.Unlock()
			total := 0
			for _, queue := range turns.waiting {
				total += queue.Len()
			}
			return total == n
		}
	}
	for i, from := range []netip.Addr{flood, flood, flood, other} {
		group.Go(func() {
			turns.take(from)
			mu.Lock()
			order = append(order, from)
			mu.Unlock()
			turns.give()
		})
		clocktest.Await(t, "the connection to wait", waiting(i+1))
	}
	turns.give()
	group.Wait()
	if want := []netip.Addr{flood, other, flood, flood}; !slices.Equal(order, want) {
		t.Errorf("the turns went to %v, want %v", order, want)
	}
	if turns.free != 1 || len(turns.waiting) != 0 || turns.next.Len() != 0 {
		t.Errorf("afterwards %d turns are free and %d addresses wait", turns.free, len(turns.waiting))
	}
}

// pipe returns a connection that takes turns, and its client.
func pipe(t *testing.T, turns *turns) (c *turnConn, client net.Conn) {
	t.Helper()
	server, client := net.Pipe()
	c = newTurnConn(server, turns, netip.MustParseAddr("192.0.2.1"))
	t.Cleanup(func() { _, _ = c.Close(), client.Close() })
	return c, client
}

// A turn begins when bytes arrive. It ends when the connection reads, writes or closes, or after its maximum time.
func TestTurnConn_turnEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *turnConn, client net.Conn){
		"read": func(c *turnConn, client net.Conn) {
			go func() { _ = client.Close() }()
			_, _ = c.Read(make([]byte, 1))
		},
		"write": func(c *turnConn, client net.Conn) {
			go func() { _, _ = client.Read(make([]byte, 1)) }()
			_, _ = c.Write([]byte("x"))
		},
		"close": func(c *turnConn, _ net.Conn) { _ = c.Close() },
		"time":  func(*turnConn, net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns := oneTurn()
			free := func() bool {
				turns.mu.Lock()
				defer turns.mu.Unlock()
				return turns.free == 1
			}
			c, client := pipe(t, turns)
			go func() { _, _ = client.Write([]byte("x")) }()
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			end(c, client)
			clocktest.Await(t, "the end of the turn", free)
		})
	}
}

// An authenticated connection takes no turn, and all its requests run at once.
func TestTurnConn_known(t *testing.T) {
	t.Parallel()
	turns := oneTurn()
	c, client := pipe(t, turns)
	for range keylessAnswers {
		if _, begun := c.begin(t.Context()); !begun {
			t.Fatal("a request had no place")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, begun := c.begin(ended); begun {
		t.Error("a stranger's connection had one place more")
	}
	c.know()
	c.know()
	if leave, begun := c.begin(t.Context()); !begun {
		t.Error("a request of a known connection waited")
	} else {
		leave()
	}
	turns.take(netip.MustParseAddr("192.0.2.9")) // no turn is free
	go func() { _, _ = client.Write([]byte("x")) }()
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
