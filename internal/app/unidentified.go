package app

import (
	"container/list"
	"net/netip"
	"sync"
)

// mostUnidentified is the largest number of connections that have not yet carried a request with a key or of a
// session. Each costs up to 150 KB while its requests wait.
const mostUnidentified = 1024

// unidentified are the connections that have not yet carried a request with a key or of a session. Beyond the limit,
// the oldest connection of the address with the most connections ends. So a client that opens thousands of
// connections displaces only its own connections.
type unidentified struct {
	most int

	mu        sync.Mutex
	count     int
	arrived   uint64                    // ever
	addresses map[netip.Addr]*list.List // elements are *turnConn, oldest first
}

func newUnidentified(most int) *unidentified {
	return &unidentified{most: most, addresses: map[netip.Addr]*list.List{}}
}

// arrive counts a connection. It returns the connection that must end for it, or nil.
func (s *unidentified) arrive(c *turnConn) (ends *turnConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.addresses[c.from]
	if own == nil {
		own = list.New()
		s.addresses[c.from] = own
	}
	c.place = own.PushBack(c)
	s.count++
	s.arrived++
	c.number = s.arrived
	if s.count <= s.most {
		return nil
	}
	for _, own := range s.addresses {
		oldest := own.Front().Value.(*turnConn)
		if ends == nil || own.Len() > s.addresses[ends.from].Len() || own.Len() == s.addresses[ends.from].Len() && oldest.number < ends.number {
			ends = oldest
		}
	}
	s.removeLocked(ends)
	return ends
}

// leave removes a connection that has been identified or has ended.
func (s *unidentified) leave(c *turnConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(c)
}

func (s *unidentified) removeLocked(c *turnConn) {
	if c.place == nil {
		return
	}
	own := s.addresses[c.from]
	own.Remove(c.place)
	c.place = nil
	s.count--
	if own.Len() == 0 {
		delete(s.addresses, c.from)
	}
}
