package smsc

import (
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"

	"github.com/makola/makola/internal/sim"
)

// Centre is the message centre. Of a message it stores only the outstanding work, the text in the handset's limited
// inbox and, if enabled, a count of segments.
type Centre struct {
	s       *sim.Sim
	moments *moments
	outbox  *outbox
	options atomic.Pointer[Options]
	tally   tally
	lastID  atomic.Uint64
	counted atomic.Pointer[segmentBook] // nil: segments are not counted
	parts   *assembly
	rate    rateWindow
	waiting atomic.Int64 // number of segments whose receipt is not due yet

	mu        sync.Mutex
	listeners []net.Listener
	address   string
	clients   []*client // all connections
	bound     int
	peak      int
	scripts   map[string]sim.Plan
	closed    bool
	running   sync.WaitGroup
}

// client is a connection. The centre's mutex protects bound and left.
type client struct {
	link     *link
	receiver *receiver
	sends    atomic.Bool // bound as a transmitter or transceiver
	bound    bool
	left     bool
}

// enter adds a connection. It returns false if the centre is closed.
func (c *Centre) enter(by *client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tally.connected.Add(1)
	c.clients = append(c.clients, by)
	c.running.Add(2)
	return true
}

// admit counts a connection as bound, or returns the status of a refusal.
func (c *Centre) admit(by *client, sends, receives bool) data.CommandStatusType {
	limit := c.options.Load().Binds
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case by.bound:
		return data.ESME_RALYBND
	case limit > 0 && c.bound >= limit, by.left:
		return data.ESME_RBINDFAIL
	}
	by.bound = true
	by.sends.Store(sends)
	c.bound++
	c.peak = max(c.peak, c.stayingLocked())
	c.tally.binds.Add(1)
	if receives {
		c.outbox.join(by.receiver)
	}
	return data.ESME_ROK
}

// stayingLocked counts the bound connections that the centre is not closing. A client whose connection was cut may
// reconnect before the centre notices the end of the old connection.
func (c *Centre) stayingLocked() int {
	n := 0
	for _, by := range c.clients {
		if by.bound && by.link.stays() {
			n++
		}
	}
	return n
}

// leave removes a connection.
func (c *Centre) leave(by *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = slices.DeleteFunc(c.clients, func(other *client) bool { return other == by })
	if by.bound {
		c.bound--
	}
	by.left = true
	c.outbox.leave(by.receiver)
}

// Account returns the credentials for a bind.
func (c *Centre) Account() Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Account{Address: c.address, SystemID: systemID, Password: password}
}

// Set changes the options of the message centre.
func (c *Centre) Set(o Options) {
	o = o.withDefaults()
	c.options.Store(&o)
	c.outbox.pump()
}

// Options returns the options of the message centre.
func (c *Centre) Options() Options { return *c.options.Load() }

// Totals returns the counts of the message centre.
func (c *Centre) Totals() Totals {
	t := c.tally.totals()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Bound, t.PeakBound = c.bound, c.peak
	return t
}

// Disconnect cuts all connections, like a failing network. Data in transit is lost.
func (c *Centre) Disconnect() {
	c.mu.Lock()
	clients := slices.Clone(c.clients)
	c.mu.Unlock()
	for _, by := range clients {
		by.link.cut()
	}
}

// SendText sends a text from a handset to a sender ID or short code, like a customer who answers a message. The text
// is cut to 70 characters.
func (c *Centre) SendText(from, to, text string) {
	octets, _ := data.UCS2.Encode(text) // has every character
	octets = octets[:min(len(octets), maxTextOctets)]
	if len(octets) <= octetsAlone {
		c.outbox.offer(receipt{to: sim.Party(from), from: to, text: octets})
		return
	}
	var parts []receipt
	reference, total := byte(c.lastID.Add(1)), (len(octets)+octetsOfPart-1)/octetsOfPart
	for part := range slices.Chunk(octets, octetsOfPart) {
		header := []byte{5, 0, 3, reference, byte(total), byte(len(parts) + 1)}
		parts = append(parts, receipt{to: sim.Party(from), from: to, text: append(header, part...), part: true})
	}
	c.outbox.offer(parts...)
}

// Sizes of a handset's text in octets of UCS-2.
const (
	octetsAlone   = 140
	octetsOfPart  = 134
	maxTextOctets = 20 * octetsOfPart
)

// Script fixes what messages to a number come to, whatever the number is.
func (c *Centre) Script(number string, p sim.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[sim.Party(number)] = p
}

// CountSegments starts to count accepted segments, from zero, or stops counting. The memory for the count grows with
// the number of messages.
func (c *Centre) CountSegments(on bool) {
	if !on {
		c.counted.Store(nil)
		return
	}
	c.counted.Store(newSegmentBook())
}

// Segments returns all segments that were accepted since CountSegments, ordered by recipient, sender, text and part.
func (c *Centre) Segments() []SegmentCount {
	return c.counted.Load().list(func(segmentKey, int32) bool { return true })
}

// SegmentsTo returns the segments of one recipient, like Segments.
func (c *Centre) SegmentsTo(number string) []SegmentCount {
	to := sim.Party(number)
	return c.counted.Load().list(func(k segmentKey, _ int32) bool { return k.to == to })
}

// SegmentsTwice returns the segments that were accepted more than once.
func (c *Centre) SegmentsTwice() []SegmentCount {
	return c.counted.Load().list(func(_ segmentKey, n int32) bool { return n > 1 })
}

// plan returns the plan of a message: the script of its number, or the number's own plan.
func (c *Centre) plan(to string) sim.Plan {
	c.mu.Lock()
	p, scripted := c.scripts[to]
	c.mu.Unlock()
	if !scripted {
		p = sim.TextPlan(to)
	}
	if p.Then == "" {
		p.Then = sim.Success
	}
	return p
}

// segment is one decoded submit_sm.
type segment struct {
	sequence int32
	from, to string
	joint    joint
	content  content
	wants    byte // wanted receipts: 0 none, 1 any, 2 on failure, 3 on success
}

// room returns ESME_ROK if one more segment is accepted now, and otherwise the status of the refusal.
func (c *Centre) room() data.CommandStatusType {
	o := c.options.Load()
	switch {
	case o.Queue > 0 && c.waiting.Load() >= int64(o.Queue):
		return data.ESME_RMSGQFUL
	case o.Rate > 0 && !c.rate.take(c.s.Clock().Now(), o.Rate):
		return data.ESME_RTHROTTLED
	}
	return data.ESME_ROK
}

// accept accepts a segment: it counts the segment and delivers the text to its handset. An early receipt is sent at
// once.
func (c *Centre) accept(g segment, plan sim.Plan, hit sim.Hit) (id uint64) {
	id = c.lastID.Add(1)
	c.tally.accepted.Add(1)
	if book := c.counted.Load(); book != nil {
		book.add(g.from, g.to, g.joint, g.content.text())
	}
	if plan.Then == sim.Success {
		whole := c.parts.add(g.from, g.to, g.joint, g.content)
		switch {
		case whole == nil:
		case plan.Delay < sim.HeldBack || plan.Wait || plan.Early:
			c.arrive(g, whole)
		default:
			c.moments.later(plan.Delay, func() { c.arrive(g, whole) })
		}
	}
	if plan.Early {
		plan.Delay = 0
		c.promise(g, id, plan, hit)
	}
	return id
}

func (c *Centre) arrive(g segment, whole []content) {
	c.s.Receive(g.to, g.from, func() string {
		var text strings.Builder
		for _, part := range whole {
			text.WriteString(part.text())
		}
		return text.String()
	})
}

// promise schedules the receipts of a segment.
func (c *Centre) promise(g segment, id uint64, plan sim.Plan, hit sim.Hit) {
	delivered := plan.Then == sim.Success
	if plan.Wait || plan.NoCallback || g.wants == 0 || g.wants == 2 && delivered || g.wants == 3 && !delivered {
		return
	}
	truth := receipt{id: id, to: g.to, from: g.from, submitted: c.s.Clock().Now().UnixMicro(), verdict: verdictOf(plan), odd: hit.Has(sim.OddReceipt)}
	report := func() { // the usual case captures little data for each segment
		c.waiting.Add(-1)
		c.outbox.offer(truth)
	}
	if plan.Forged || plan.Twice || plan.Stale {
		report = func() { c.reportBadly(truth, plan) }
	}
	c.waiting.Add(1)
	if delay := plan.Delay + plan.CallAfter; delay > 0 {
		c.moments.later(delay, report)
		return
	}
	report()
}

// reportBadly sends a receipt and the false or repeated receipts that a plan requires.
func (c *Centre) reportBadly(truth receipt, plan sim.Plan) {
	c.waiting.Add(-1)
	lie := truth
	lie.verdict = verdictFailed
	if truth.verdict != verdictDelivered {
		lie.verdict = verdictDelivered
	}
	var receipts []receipt
	if plan.Forged {
		stranger := lie
		stranger.id = c.lastID.Add(1)
		receipts = append(receipts, stranger)
	}
	receipts = append(receipts, truth)
	if plan.Twice {
		receipts = append(receipts, truth)
	}
	c.outbox.offer(receipts...)
	if plan.Stale {
		c.moments.later(time.Second, func() { c.outbox.offer(lie) })
	}
}

// rateWindow counts the segments in each second.
type rateWindow struct {
	mu     sync.Mutex
	second int64
	count  int
}

// take counts a segment and reports whether it is within this second's limit.
func (w *rateWindow) take(now time.Time, limit int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if second := now.Unix(); second != w.second {
		w.second, w.count = second, 0
	}
	if w.count >= limit {
		return false
	}
	w.count++
	return true
}
