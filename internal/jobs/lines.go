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
	tenants map[string]*share
	repeats share // of all tenants
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
	turns   map[turnKey]*turn
	ring    fifo[*turn] // that may run
	running int
	inRing  bool
}

type turnKey struct {
	tenant string
	again  bool
}

// turn is the ready jobs of one tenant in one line, in the order in which they
// became ready; repeats are apart.
type turn struct {
	turnKey
	line    *line
	share   *share
	jobs    fifo[*entry]
	running int
	inRing  bool
	parked  bool // at a share that is used up
}

// share is what a tenant, or all that is repeated, has of the workers.
type share struct {
	tenant  string
	running int
	parked  fifo[*turn] // until one of it ends
	turns   int
	pending int // jobs in memory, whatever their time
}

func newKind(h Handler) *kind {
	return &kind{Handler: h, periodic: strings.HasPrefix(h.Kind, periodicPrefix), lines: map[string]*line{}, tenants: map[string]*share{}}
}

// share gives the share of a job's tenant.
func (k *kind) share(j Job) *share {
	tenant := ""
	if k.Tenant != nil {
		tenant = k.Tenant(j)
	}
	s := k.tenants[tenant]
	if s == nil {
		s = &share{tenant: tenant}
		k.tenants[tenant] = s
	}
	return s
}

// leaves takes an entry off its tenant's books.
func (e *entry) leaves() {
	e.tenant.pending--
	e.kind.sweepShare(e.tenant)
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
	key := turnKey{e.tenant.tenant, k.Repeats > 0 && e.job.Tries > 0}
	t := l.turns[key]
	if t == nil {
		t = k.newTurn()
		t.turnKey, t.line, t.share = key, l, e.tenant
		l.turns[key] = t
		t.share.turns++
	}
	e.turn = t
	t.jobs.push(e)
	k.ready++
	m.ready++
	k.offerTurn(t)
}

// full gives the share that keeps a turn from running, nil when none does.
func (k *kind) full(t *turn) *share {
	switch {
	case t.share.running >= k.tenantLimit(t.tenant):
		return t.share
	case t.again && k.repeats.running >= k.Repeats:
		return &k.repeats
	}
	return nil
}

// tenantLimit is how many jobs of a tenant may run at once.
func (k *kind) tenantLimit(tenant string) int {
	if k.PerTenant == nil {
		return math.MaxInt
	}
	return max(1, k.PerTenant(tenant))
}

// offerTurn puts a turn into its line if its shares allow it.
func (k *kind) offerTurn(t *turn) {
	if t.inRing || t.parked || t.jobs.len() == 0 {
		return
	}
	if k.PerTurn != nil && t.running >= max(1, k.PerTurn(t.line.key)) {
		return // it is offered when one of its own ends
	}
	if s := k.full(t); s != nil {
		t.parked = true
		s.parked.push(t)
		return
	}
	t.inRing = true
	t.line.ring.push(t)
	k.offer(t.line)
}

// unpark offers as many turns that wait for a share as it has room for. One whose
// line has none is offered besides: it waits there.
func (k *kind) unpark(s *share) {
	if s.parked.len() == 0 {
		return
	}
	room := k.Repeats
	if s != &k.repeats {
		room = k.tenantLimit(s.tenant)
	}
	for room -= s.running; room > 0; {
		t, ok := s.parked.pop()
		if !ok {
			return
		}
		t.parked = false
		k.offerTurn(t)
		if t.inRing && t.line.running < k.limit(t.line.key) {
			room--
		}
		k.sweep(t)
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
		if k.full(t) == nil {
			for {
				e, ok := t.jobs.pop()
				if !ok {
					break
				}
				if e.state != ready {
					continue // finished while it stood in line
				}
				k.begin(t)
				return e
			}
		}
		// It came for nothing: what waits for the same share may run instead.
		k.offerTurn(t)
		k.unpark(t.share)
		if t.again {
			k.unpark(&k.repeats)
		}
		k.sweep(t)
	}
}

// begin counts a job of a turn that runs now.
func (k *kind) begin(t *turn) {
	k.ready--
	t.running++
	t.line.running++
	t.share.running++
	if t.again {
		k.repeats.running++
	}
	k.offerTurn(t)
	k.offer(t.line)
}

// ended says that the handler of e returned.
func (m *memory) ended(e *entry) {
	m.running--
	k, t := e.kind, e.turn
	e.turn = nil
	t.running--
	t.line.running--
	t.share.running--
	if t.again {
		k.repeats.running--
		k.unpark(&k.repeats)
	}
	k.unpark(t.share)
	k.offerTurn(t)
	k.offer(t.line)
	k.sweep(t) // and with its last turn the line
}

// first gives the job of the line that has been ready for longest.
func (l *line) first() (first *entry) {
	for _, t := range l.turns {
		for _, e := range t.jobs.items[t.jobs.head:] {
			if e.state != ready {
				continue
			}
			if first == nil || e.due.Before(first.due) {
				first = e
			}
			break
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
	return &line{key: key, turns: map[turnKey]*turn{}}
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
	if t.line == nil || t.running > 0 || t.inRing || t.parked || t.jobs.len() > 0 {
		return // it is in use, or was swept before
	}
	l := t.line
	if l.turns[t.turnKey] == t {
		delete(l.turns, t.turnKey)
		t.share.turns--
		k.sweepShare(t.share)
		if len(k.idleTurns) < idleKept {
			*t = turn{jobs: t.jobs.emptied()}
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

func (k *kind) sweepShare(s *share) {
	if s.tenant != "" && s.turns == 0 && s.pending == 0 && k.tenants[s.tenant] == s {
		delete(k.tenants, s.tenant)
	}
}
