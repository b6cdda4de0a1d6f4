package app

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/clocktest"
)

// A connection above the limit closes the oldest connection of the address with the most connections. If several addresses have
// the most, it closes the oldest of their connections.
func TestStrangers_crowdEndsFirst(t *testing.T) {
	t.Parallel()
	s := newUnidentified(3)
	crowd, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	a, b, c, d, e := &turnConn{from: other}, &turnConn{from: crowd}, &turnConn{from: crowd}, &turnConn{from: other}, &turnConn{from: crowd}
	for _, one := range []*turnConn{a, b, c} {
		if ends := s.arrive(one); ends != nil {
			t.Fatal("a connection within the limit ended another")
		}
	}
	if ends := s.arrive(d); ends != a {
		t.Errorf("of two and two, %v ended instead of the oldest", ends)
	}
	if ends := s.arrive(e); ends != b {
		t.Errorf("of three and one, %v ended instead of the oldest of the three", ends)
	}
	for _, one := range []*turnConn{a, b, c, c, d, e} { // some have ended already
		s.leave(one)
	}
	if s.count != 0 || len(s.addresses) != 0 {
		t.Errorf("%d connections of %d addresses are left", s.count, len(s.addresses))
	}
}

// If a client opens thousands of connections without a key, its own connections are closed. A connection with a key stays.
func TestStrangers_endedAtTheDoor(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(*config.Server) {})
	s, address := a.doors.api.turns.unidentified, a.doors.api.net.Addr().String()
	s.mu.Lock()
	s.most = 2
	s.mu.Unlock()
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.count
	}
	known := dialed(t, address)
	if got := known.get("/api/v1/account-api/balance", "x-api-key: "+a.ready.APIKey); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	clocktest.Await(t, "the connection with a key to be known", func() bool { return count() == 0 })
	first := dialed(t, address)
	if got := first.get("/healthz"); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	for range 2 {
		if got := dialed(t, address).get("/healthz"); got != http.StatusOK {
			t.Fatalf("answered %d", got)
		}
	}
	if got := first.get("/healthz"); got != 0 {
		t.Errorf("the oldest connection without a key is answered %d", got)
	}
	if got := known.get("/healthz"); got != http.StatusOK {
		t.Errorf("the connection with a key is answered %d", got)
	}
	if n := count(); n != 2 {
		t.Errorf("%d connections are unknown, want 2", n)
	}
}
