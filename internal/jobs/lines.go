package jobs

import (
	"math"
	"strings"
	"time"
)

// kind is a handler with its lines.
type kind struct {
	Handler
	lines   map[string]*line
	ring    fifo[*line] // lines with a turn that may run, below their limit
	tenants map[string]*tenant
	pools   []*pool
	// Unused lines, kept for the next job: most lines hold one job, for a moment.
	idleLines []*line
	idleTurns []*turn
	periodic  bool
	ready     int
	workers   int             // goroutines that run this kind
	starting  int             // of these, how many have not looked for a job yet
	resting   []chan struct{} // besides these, who waits to be one again; closed: to end
}

// line is the ready jobs of one key. In it tenants take turns.
type line struct {
	key     string
	turns   map[string]*turn // by tenant
	ring    fifo[*turn]      // that may run
	running int
	inRing  bool
}

// turn is the ready jobs of one tenant in one line, in the order in which they
// became ready: first tries and repeats apart, which take turns, too.
type turn struct {
	line    *line
	tenant  *tenant
	share   *share // of the pool that the turn is in since one of its jobs ended last
	first   fifo[*entry]
	repeats fifo[*entry]
	again   bool // a repeat is next
	running int
	inRing  bool
	parked  bool // at its share, which is used up or whose pool is
}

// tenant is whose jobs of a kind are in memory.
type tenant struct {
	name    string
	shares  []share // of each pool
	turns   int
	pending int // jobs in memory, whatever their time
}

// share is what a tenant has of a pool.
type share struct {
	pool    *pool
	running int
	parked  fifo[*turn] // some may have gone to another share
	waits   bool        // in its pool's waiting
}

// pool is a part of the workers.
type pool struct {
	Pool
	running int
	waiting fifo[*share] // for room in the pool: tenants take turns here
}

func newKind(h Handler) *kind {
	k := &kind{Handler: h, periodic: strings.HasPrefix(h.Kind, periodicPrefix), lines: map[string]*line{}, tenants: map[string]*tenant{}}
	for _, p := range h.Pools {
		k.pools = append(k.pools, &pool{Pool: p})
	}
	if len(k.pools) == 0 {
		k.pools = []*pool{{Pool: Pool{AtOnce: math.MaxInt, PerTenant: math.MaxInt}}}
	}
	return k
}

// tenant gives a job's tenant.
func (k *kind) tenant(j Job) *tenant {
	name := ""
	if k.Tenant != nil {
		name = k.Tenant(j)
	}
	t := k.tenants[name]
	if t == nil {
		t = &tenant{name: name, shares: make([]share, len(k.pools))}
		for i, p := range k.pools {
			t.shares[i].pool = p
		}
		k.tenants[name] = t
	}
	return t
}

// leaves takes an entry off its tenant's books.
func (e *entry) leaves() {
	e.tenant.pending--
	e.kind.sweepTenant(e.tenant)
}

// crowdPause is how much later a repeat runs whose tenant has too many jobs.
const crowdPause = 10 * time.Minute

// postpone puts a repeat off that is due while its tenant has too many jobs: those
// that have not been tried yet come first.
func (k *kind) postpone(e *entry, now time.Time) {
	if k.Crowd > 0 && e.job.Tries > 0 && e.tenant.pending > k.Crowd && !e.due.After(now) {
		e.due, e.moved = now.Add(Jitter(e.job.ID, e.job.Tries, crowdPause)), true
	}
}

func (m *memory) makeReady(e *entry) {
	e.state = ready
	k := e.kind
	l := k.lines[e.key]
	if l == nil {
		l = k.newLine(e.key)
		k.lines[e.key] = l
	}
	t := l.turns[e.tenant.name]
	if t == nil {
		t = k.newTurn()
		t.line, t.tenant = l, e.tenant
		t.share = k.shareOf(t)
		l.turns[e.tenant.name] = t
		t.tenant.turns++
	}
	e.turn = t
	if e.job.Tries > 0 {
		t.repeats.push(e)
	} else {
		t.first.push(e)
	}
	k.ready++
	m.ready++
	k.offerTurn(t)
}

func (t *turn) len() int { return t.first.len() + t.repeats.len() }

// pop gives the turn's next job.
func (t *turn) pop() (*entry, bool) {
	again := t.repeats.len() > 0 && (t.again || t.first.len() == 0)
	t.again = !again
	if again {
		return t.repeats.pop()
	}
	return t.first.pop()
}

// shareOf gives the share in which a turn should run now.
func (k *kind) shareOf(t *turn) *share {
	if k.Pool == nil {
		return &t.tenant.shares[0]
	}
	return &t.tenant.shares[k.Pool(t.tenant.name, t.line.key)]
}

// room is how many more jobs may run in a share.
func (s *share) room() int { return min(s.pool.AtOnce-s.pool.running, s.pool.PerTenant-s.running) }

// turnFull says whether a turn has as many jobs that run as it may.
func (k *kind) turnFull(t *turn) bool {
	return k.PerTurn != nil && t.running >= max(1, k.PerTurn(t.tenant.name, t.line.key))
}

// offerTurn puts a turn into its line if its share allows it.
func (k *kind) offerTurn(t *turn) {
	if t.inRing || t.parked || t.len() == 0 || k.turnFull(t) {
		return // a full one is offered when one of its own ends
	}
	if t.share.room() <= 0 {
		t.parked = true
		t.share.parked.push(t)
		t.share.wait()
		return
	}
	t.inRing = true
	t.line.ring.push(t)
	k.offer(t.line)
}

// wait has a share wait for room in its pool, unless it has none of its own: that comes when one of its own ends.
func (s *share) wait() {
	if !s.waits && s.parked.len() > 0 && s.running < s.pool.PerTenant {
		s.waits = true
		s.pool.waiting.push(s)
	}
}

// unpark offers as many turns as a pool has room for, of the tenant whose share it is and of those who wait
// longer. A turn whose line has no room is offered besides: it waits there.
func (k *kind) unpark(of *share) {
	p := of.pool
	of.wait()
	for room := p.AtOnce - p.running; room > 0; {
		s, ok := p.waiting.pop()
		if !ok {
			return
		}
		s.waits = false
		for own := s.room(); own > 0 && room > 0; {
			t, ok := s.parked.pop()
			if !ok {
				break
			}
			if t.share != s || !t.parked {
				continue // it went to another share
			}
			t.parked = false
			k.offerTurn(t)
			if t.inRing && t.line.running < k.limit(t.line.key) {
				own--
				room--
			}
			k.sweep(t)
		}
		if room <= 0 {
			s.wait() // behind the others
		}
	}
}

// offer puts a line into the ring if a worker may take from it.
func (k *kind) offer(l *line) {
	if l.inRing || l.ring.len() == 0 {
		return
	}
	if l.running < k.limit(l.key) {
		l.inRing = true
		k.ring.push(l)
	}
}

// takes says whether this node can do such jobs now.
func (k *kind) takes() bool { return k.Takes == nil || k.Takes() }

// limit is how many jobs of one key may run at once.
func (k *kind) limit(key string) int {
	if k.PerKey == nil {
		return k.Workers
	}
	return max(1, k.PerKey(key))
}

// take gives the next job to run, going round the lines, and in each round its
// tenants, so that a long one does not hold up a short one. It is nil when none
// may run.
func (m *memory) take(k *kind) *entry {
	for {
		l, ok := k.ring.pop()
		if !ok {
			return nil
		}
		l.inRing = false
		if l.running >= k.limit(l.key) {
			k.offer(l) // when one of it ends
			continue
		}
		if e := k.takeFrom(l); e != nil {
			e.state = running
			m.ready--
			m.running++
			return e
		}
	}
}

// takeFrom gives the job of a line whose turn it is, if there is one.
func (k *kind) takeFrom(l *line) *entry {
	for {
		t, ok := l.ring.pop()
		if !ok {
			k.sweepLine(l)
			return nil
		}
		t.inRing = false
		if t.share.room() > 0 && !k.turnFull(t) {
			for {
				e, ok := t.pop()
				if !ok {
					break
				}
				if e.state != ready {
					continue // finished while it stood in line
				}
				k.begin(e)
				return e
			}
		}
		// It came for nothing: what waits for the same share may run instead.
		k.offerTurn(t)
		k.unpark(t.share)
		k.sweep(t)
	}
}

// begin counts a job that runs now.
func (k *kind) begin(e *entry) {
	t := e.turn
	e.share = t.share
	k.ready--
	t.running++
	t.line.running++
	t.share.running++
	t.share.pool.running++
	k.offerTurn(t)
	k.offer(t.line)
}

// ended says that the handler of e returned.
func (m *memory) ended(e *entry) {
	m.running--
	k, t, s := e.kind, e.turn, e.share
	e.turn, e.share = nil, nil
	t.running--
	t.line.running--
	s.running--
	s.pool.running--
	if now := k.shareOf(t); now != t.share { // by what this run has learned
		left := t.share
		t.share, t.parked = now, false
		k.unpark(left) // it may have been offered there
	}
	k.unpark(s)
	k.offerTurn(t)
	k.offer(t.line)
	k.sweep(t) // and with its last turn the line
}

// first gives the job of the line that has been ready for longest.
func (l *line) first() (first *entry) {
	for _, t := range l.turns {
		for _, jobs := range []*fifo[*entry]{&t.first, &t.repeats} {
			for _, e := range jobs.items[jobs.head:] {
				if e.state != ready {
					continue
				}
				if first == nil || e.due.Before(first.due) {
					first = e
				}
				break
			}
		}
	}
	return first
}

// idleKept is how many lines and turns a kind keeps for later.
const idleKept = 64

func (k *kind) newLine(key string) *line {
	if last := len(k.idleLines) - 1; last >= 0 {
		l := k.idleLines[last]
		k.idleLines = k.idleLines[:last]
		l.key = key
		return l
	}
	return &line{key: key, turns: map[string]*turn{}}
}

func (k *kind) newTurn() *turn {
	if last := len(k.idleTurns) - 1; last >= 0 {
		t := k.idleTurns[last]
		k.idleTurns = k.idleTurns[:last]
		return t
	}
	return &turn{}
}

// sweep forgets a turn, a line and a tenant without jobs.
func (k *kind) sweep(t *turn) {
	if t.line == nil || t.running > 0 || t.inRing || t.parked || t.len() > 0 {
		return // it is in use, or was swept before
	}
	l := t.line
	if l.turns[t.tenant.name] == t {
		delete(l.turns, t.tenant.name)
		t.tenant.turns--
		k.sweepTenant(t.tenant)
		if len(k.idleTurns) < idleKept {
			*t = turn{first: t.first.emptied(), repeats: t.repeats.emptied()}
			k.idleTurns = append(k.idleTurns, t)
		}
	}
	k.sweepLine(l)
}

func (k *kind) sweepLine(l *line) {
	if l.running == 0 && !l.inRing && len(l.turns) == 0 && k.lines[l.key] == l {
		delete(k.lines, l.key)
		if len(k.idleLines) < idleKept {
			l.ring = l.ring.emptied()
			k.idleLines = append(k.idleLines, l)
		}
	}
}

func (k *kind) sweepTenant(t *tenant) {
	if t.name != "" && t.turns == 0 && t.pending == 0 && k.tenants[t.name] == t {
		delete(k.tenants, t.name)
	}
}
