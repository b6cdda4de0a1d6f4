package webhook

// The pools in which deliveries run. Deliveries to slow and unknown receivers wait only for deliveries of their own
// pool. Deliveries to quick receivers use the rest of the workers.
const (
	quickPool = iota
	newPool
	slowPool
)

// pools divide the workers, so that slow deliveries in one pool do not delay deliveries in another. The queue calls
// its methods one at a time.
type pools struct {
	all    []*pool
	choose func(tenant, host string) int // returns the pool of a receiver's next deliveries
	shares map[string]*shares            // by tenant
	places map[receiver]*place
}

// pool is a part of the workers. atOnce limits its deliveries, and perTenant those of one tenant.
type pool struct {
	atOnce, perTenant int
	running           int
	waiting           []*share // shares that wait for room in the pool; tenants take turns
}

// shares has a tenant's share of each pool.
type shares struct {
	of     []share
	places int // number of receivers with a place
}

// share is a tenant's share of a pool.
type share struct {
	pool    *pool
	running int
	waiting []receiver // some of these receivers may have moved to another share
	waits   bool       // the share is in its pool's waiting list
}

// place is the state of a receiver that has deliveries or waits.
type place struct {
	share   *share
	running []*share // the shares in which its running deliveries count, oldest first
	waits   bool     // the receiver is in its share's waiting list
}

func newPools(workers int, choose func(tenant, host string) int) *pools {
	return &pools{
		choose: choose, shares: map[string]*shares{}, places: map[receiver]*place{},
		all: []*pool{
			quickPool: {atOnce: workers, perTenant: 40},
			newPool:   {atOnce: max(1, workers/4), perTenant: 8},
			slowPool:  {atOnce: max(1, workers/2), perTenant: 8},
		},
	}
}

// room returns how many more deliveries may run in a share.
func (s *share) room() int { return min(s.pool.atOnce-s.pool.running, s.pool.perTenant-s.running) }

// placeOf returns the place of a receiver.
func (p *pools) placeOf(r receiver) *place {
	if found := p.places[r]; found != nil {
		return found
	}
	of := p.shares[r.tenant]
	if of == nil {
		of = &shares{of: make([]share, len(p.all))}
		for i, pool := range p.all {
			of.of[i].pool = pool
		}
		p.shares[r.tenant] = of
	}
	of.places++
	found := &place{share: &of.of[p.choose(r.tenant, r.host)]}
	p.places[r] = found
	return found
}

// enter begins a delivery to a receiver and returns true. If there is no room, the receiver waits and enter returns
// false.
func (p *pools) enter(tenant, host string) bool {
	r := receiver{tenant, host}
	at := p.placeOf(r)
	if at.share.room() <= 0 {
		if !at.waits {
			at.waits = true
			at.share.waiting = append(at.share.waiting, r)
			at.share.wait()
		}
		return false
	}
	at.running = append(at.running, at.share)
	at.share.running++
	at.share.pool.running++
	return true
}

// leave ends a delivery. If the receiver has become quicker or slower, it moves to another pool.
func (p *pools) leave(tenant, host string, offer func(tenant, host string) bool) {
	r := receiver{tenant, host}
	at := p.places[r]
	ended := at.running[0]
	at.running = at.running[1:]
	ended.running--
	ended.pool.running--
	if now := &p.shares[tenant].of[p.choose(tenant, host)]; now != at.share {
		left := at.share
		at.share = now
		if at.waits {
			at.waits = false
			offer(tenant, host)
		}
		p.admit(left, offer) // the receiver may have been first in line there
	}
	p.admit(ended, offer)
	p.sweep(r)
}

// wait adds a share to the list of shares that wait for room in its pool. If the share itself is full, it does
// nothing, because the end of one of its own deliveries makes room.
func (s *share) wait() {
	if !s.waits && len(s.waiting) > 0 && s.running < s.pool.perTenant {
		s.waits = true
		s.pool.waiting = append(s.pool.waiting, s)
	}
}

// admit offers room in a pool to the waiting receivers of the given share, and to receivers that have waited longer.
// If a receiver's host cannot begin a delivery, admit offers the room to another receiver.
func (p *pools) admit(of *share, offer func(tenant, host string) bool) {
	pool := of.pool
	of.wait()
	for room := pool.atOnce - pool.running; room > 0 && len(pool.waiting) > 0; {
		s := pool.waiting[0]
		pool.waiting = pool.waiting[1:]
		s.waits = false
		for own := s.room(); own > 0 && room > 0 && len(s.waiting) > 0; {
			r := s.waiting[0]
			s.waiting = s.waiting[1:]
			at := p.places[r]
			if at == nil || at.share != s || !at.waits {
				continue // the receiver moved to another share
			}
			at.waits = false
			if offer(r.tenant, r.host) {
				own--
				room--
			}
			p.sweep(r)
		}
		if room <= 0 {
			s.wait() // at the end of the list
		}
	}
}

// sweep removes a receiver without deliveries. If it was the tenant's last receiver, sweep removes the
// tenant, too.
func (p *pools) sweep(r receiver) {
	at := p.places[r]
	if at == nil || len(at.running) > 0 || at.waits {
		return
	}
	delete(p.places, r)
	of := p.shares[r.tenant]
	if of.places--; of.places == 0 {
		delete(p.shares, r.tenant)
	}
}
