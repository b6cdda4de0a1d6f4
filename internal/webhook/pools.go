package webhook

// The pools in which deliveries run. Slow and unknown receivers wait only for their own kind. Quick receivers use the
// rest of the workers.
const (
	quickPool = iota
	newPool
	slowPool
)

// pools share the workers out: what takes long in one pool holds up nothing in another. The queue asks
// them one call at a time.
type pools struct {
	all    []*pool
	choose func(tenant, host string) int // where the deliveries to a receiver run from now on
	shares map[string]*shares            // by tenant
	places map[receiver]*place
}

// pool is a part of the workers.
type pool struct {
	atOnce, perTenant int
	running           int
	waiting           []*share // for room in the pool: tenants take turns here
}

// shares are a tenant's shares of the pools.
type shares struct {
	of     []share
	places int // receivers with a place
}

// share is a tenant's share of a pool.
type share struct {
	pool    *pool
	running int
	waiting []receiver // some may have gone to another share
	waits   bool       // in its pool's waiting
}

// place is a receiver that has deliveries or waits.
type place struct {
	share   *share
	running []*share // where its deliveries count that run, the first that began first
	waits   bool     // in its share's waiting
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

// room is how many more deliveries may run in a share.
func (s *share) room() int { return min(s.pool.atOnce-s.pool.running, s.pool.perTenant-s.running) }

// placeOf gives the place of a receiver.
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

// enter takes a place for a delivery to a receiver, or has the receiver wait for one.
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

// leave gives the place of a delivery back. Its receiver goes to another pool if it has become quicker or slower.
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
		p.admit(left, offer) // the receiver may have had its turn there
	}
	p.admit(ended, offer)
	p.sweep(r)
}

// wait has a share wait for room in its pool, unless it has none of its own: that comes when one of its own ends.
func (s *share) wait() {
	if !s.waits && len(s.waiting) > 0 && s.running < s.pool.perTenant {
		s.waits = true
		s.pool.waiting = append(s.pool.waiting, s)
	}
}

// admit offers as many receivers as a pool has room for: those of the given tenant, and those that have waited
// longer. A receiver whose host has no room is offered in addition, and waits there.
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
				continue // it went to another share
			}
			at.waits = false
			if offer(r.tenant, r.host) {
				own--
				room--
			}
			p.sweep(r)
		}
		if room <= 0 {
			s.wait() // behind the others
		}
	}
}

// sweep forgets a receiver without deliveries, and its tenant with the last one.
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
