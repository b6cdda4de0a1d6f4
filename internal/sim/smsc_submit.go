package sim

import (
	"strings"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
)

// segment is one submit_sm as it was understood.
type segment struct {
	sequence int32
	from, to string
	joint    joint
	content  content
	wants    byte // of receipts: 0 none, 1 any, 2 on failure, 3 on success
}

// takeSubmit treats one submit_sm: its faults, its number's plan, its answer
// and what comes of it later.
func (s *smscSession) takeSubmit(h pdu.Header, unit []byte) {
	c := s.c
	c.taking.Add(1)
	defer c.taken() // when its answer is on its way
	hit := c.s.faults.next(SMSC, OpSubmit)
	if hit != nil && s.struck(h, hit) {
		return
	}
	g, status := s.understand(h, unit)
	if status == data.ESME_ROK {
		status = c.room()
	}
	if status != data.ESME_ROK {
		s.refuse(h.SequenceNumber, status)
		return
	}
	plan := c.plan(g.to)
	hit.bend(&plan)
	switch {
	case plan.Refuse != "":
		s.refuse(h.SequenceNumber, data.ESME_RSUBMITFAIL)
		return
	case plan.Down && c.s.isDown(SMSC+":"+g.to):
		s.refuse(h.SequenceNumber, data.ESME_RMSGQFUL)
		return
	}
	id := c.accept(g, plan, hit)
	s.respond(g.sequence, id, plan, hit)
	if !plan.Early {
		c.promise(g, id, plan, hit)
	}
}

// taken counts a submit whose answer is on its way, and its receipt if that is due.
func (c *smsc) taken() {
	c.submitted.Add(1)
	if c.taking.Add(-1) == 0 && c.watchers.Load() > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.still.Broadcast()
	}
}

// struck carries out the faults that strike before anything is done, and
// reports whether one did.
func (s *smscSession) struck(h pdu.Header, hit hit) bool {
	switch {
	case hit.has(RequestLost), hit.has(Outage):
		s.part()
	case hit.has(ErrorBefore):
		s.refuse(h.SequenceNumber, data.ESME_RSYSERR)
	case hit.has(Throttle):
		s.refuse(h.SequenceNumber, data.ESME_RTHROTTLED)
	case hit.has(QueueFull):
		s.refuse(h.SequenceNumber, data.ESME_RMSGQFUL)
	default:
		return false
	}
	return true
}

// understand reads a submit_sm and checks it as strictly as an operator does.
func (s *smscSession) understand(h pdu.Header, unit []byte) (segment, data.CommandStatusType) {
	if !s.sends.Load() {
		return segment{}, data.ESME_RINVBNDSTS
	}
	p := s.submit
	clear(p.OptionalParameters)
	p.Message = pdu.ShortMessage{}
	if err := p.Unmarshal(pdu.NewBuffer(unit)); err != nil {
		return segment{}, data.ESME_RINVCMDLEN
	}
	octets, _ := p.Message.GetMessageData()
	g := segment{
		sequence: h.SequenceNumber, from: p.SourceAddr.Address(), to: party(p.DestAddr.Address()),
		joint: jointOf(p), content: content{p.Message.Encoding(), octets}, wants: p.RegisteredDelivery & 3,
	}
	payload, whole := p.OptionalParameters[pdu.TagMessagePayload]
	if whole && len(octets) == 0 {
		g.content.octets = payload.Data
	}
	switch {
	case len(g.to) < 3 || strings.Trim(g.to, "0123456789") != "":
		return g, data.ESME_RINVDSTADR
	case !validSender(p.SourceAddr):
		return g, data.ESME_RINVSRCADR
	case !whole && !g.content.fits(g.joint.header):
		return g, data.ESME_RINVMSGLEN
	}
	return g, data.ESME_ROK
}

// validSender reports whether a handset could show the sender.
func validSender(a pdu.Address) bool {
	if a.Ton() == data.GSM_TON_ALPHANUMERIC {
		return a.Address() != "" && len(a.Address()) <= 11
	}
	return len(a.Address()) <= 20 && strings.Trim(a.Address(), "0123456789") == ""
}

// room says whether one more segment is taken now.
func (c *smsc) room() data.CommandStatusType {
	o := c.options.Load()
	switch {
	case o.Queue > 0 && c.waiting.Load() >= int64(o.Queue):
		return data.ESME_RMSGQFUL
	case o.Rate > 0 && !c.rate.take(c.s.clock.Now(), o.Rate):
		return data.ESME_RTHROTTLED
	}
	return data.ESME_ROK
}

// accept takes a segment: it is counted and goes to its handset, and early
// receipts leave at once.
func (c *smsc) accept(g segment, plan Plan, hit hit) (id uint64) {
	id = c.lastID.Add(1)
	c.accepted.Add(1)
	if book := c.counted.Load(); book != nil {
		book.add(g.from, g.to, g.joint, g.content.text())
	}
	if plan.Then == Success {
		whole := c.parts.add(g.from, g.to, g.joint, g.content)
		switch {
		case whole == nil:
		case plan.Delay < smsHeldBack || plan.Wait || plan.Early:
			c.arrive(g, whole)
		default:
			c.later(plan.Delay, func() { c.arrive(g, whole) })
		}
	}
	if plan.Early {
		plan.Delay = 0
		c.promise(g, id, plan, hit)
	}
	return id
}

func (c *smsc) arrive(g segment, whole []content) {
	c.s.handsets.put(g.to, inboxItem{from: g.from, parts: whole, at: c.s.clock.Now()})
}

// promise sends the receipts of a segment when they are due.
func (c *smsc) promise(g segment, id uint64, plan Plan, hit hit) {
	delivered := plan.Then == Success
	if plan.Wait || plan.NoCallback || g.wants == 0 || g.wants == 2 && delivered || g.wants == 3 && !delivered {
		return
	}
	truth := receipt{id: id, to: g.to, from: g.from, submitted: c.s.clock.Now().UnixMicro(), verdict: verdictOf(plan), odd: hit.has(OddReceipt)}
	report := func() { // of most: little is kept of each
		c.waiting.Add(-1)
		c.offer(truth)
	}
	if plan.Forged || plan.Twice || plan.Stale {
		report = func() { c.reportBadly(truth, plan) }
	}
	c.waiting.Add(1)
	if delay := plan.Delay + plan.CallAfter; delay > 0 {
		c.later(delay, report)
		return
	}
	report()
}

// reportBadly sends a receipt with those that a plan adds to it.
func (c *smsc) reportBadly(truth receipt, plan Plan) {
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
	c.offer(receipts...)
	if plan.Stale {
		c.later(time.Second, func() { c.offer(lie) })
	}
}

// refuse answers a submit with a status.
func (s *smscSession) refuse(sequence int32, status data.CommandStatusType) {
	switch status {
	case data.ESME_RTHROTTLED, data.ESME_RMSGQFUL:
		s.c.throttled.Add(1)
	default:
		s.c.refused.Add(1)
	}
	s.status(sequence, status, "")
}

// status sends the answer to a submit after the latency.
func (s *smscSession) status(sequence int32, status data.CommandStatusType, id string) {
	if wait := s.c.options.Load().Latency; wait > 0 {
		s.c.later(wait, func() {
			a := pdu.NewSubmitSMResp().(*pdu.SubmitSMResp)
			a.CommandStatus, a.SequenceNumber, a.MessageID = status, sequence, id
			s.send(a)
			s.flush()
		})
		return
	}
	s.answer.CommandStatus, s.answer.SequenceNumber, s.answer.MessageID = status, sequence, id
	s.send(s.answer)
}

// respond answers a segment that was taken, unless its plan or a fault takes
// the answer away.
func (s *smscSession) respond(sequence int32, id uint64, plan Plan, hit hit) {
	name := writeID(id, s.c.options.Load().SubmitIDs)
	switch {
	case hit.has(AnswerLost):
		s.part()
	case plan.Lost, hit.has(Silent):
	case hit.has(ErrorAfter):
		s.status(sequence, data.ESME_RSYSERR, "")
	case hit.has(Malformed):
		s.breakStream(sequence)
	case plan.Garbled:
		s.garble(sequence)
	case hit.has(Slow):
		s.c.later(hit.of(Slow).Delay, func() {
			a := pdu.NewSubmitSMResp().(*pdu.SubmitSMResp)
			a.SequenceNumber, a.MessageID = sequence, name
			s.send(a)
			s.flush()
		})
	default:
		s.status(sequence, data.ESME_ROK, name)
		if hit.has(Unbind) {
			s.unbind()
		}
	}
}
