package smsc

import (
	"net"
	"strings"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/sim"
)

// session is the SMPP session with one client.
type session struct {
	*client
	c      *Centre
	submit *pdu.SubmitSM
	answer *pdu.SubmitSMResp
}

func newSession(c *Centre, conn net.Conn) *session {
	l := newLink(conn, c.s.Clock(), func() time.Duration { return c.options.Load().EnquireEvery })
	return &session{c: c, client: &client{link: l, receiver: newReceiver(l)}, submit: pdu.NewSubmitSM().(*pdu.SubmitSM), answer: pdu.NewSubmitSMResp().(*pdu.SubmitSMResp)}
}

// run serves the client until one side ends the connection.
func (s *session) run() {
	if !s.c.enter(s.client) {
		s.link.conn.Close()
		return
	}
	go func() {
		defer s.c.running.Done()
		s.link.read(s.take)
		s.link.cut()
		s.c.leave(s.client)
	}()
	go func() {
		defer s.c.running.Done()
		s.link.write()
	}()
}

// take handles one unit.
func (s *session) take(h pdu.Header, unit []byte) {
	switch h.CommandID {
	case data.SUBMIT_SM:
		s.takeSubmit(h, unit)
	case data.DELIVER_SM_RESP:
		s.c.outbox.confirm(s.receiver, h.SequenceNumber, h.CommandStatus)
	case data.BIND_TRANSCEIVER, data.BIND_TRANSMITTER, data.BIND_RECEIVER:
		s.takeBind(h, unit)
	case data.ENQUIRE_LINK:
		s.c.tally.enquiries.Add(1)
		answer := pdu.NewEnquireLinkResp()
		answer.SetSequenceNumber(h.SequenceNumber)
		s.link.send(answer)
	case data.UNBIND:
		answer := pdu.NewUnbindResp()
		answer.SetSequenceNumber(h.SequenceNumber)
		s.link.send(answer)
		s.link.part()
	case data.ENQUIRE_LINK_RESP:
		s.c.tally.alive.Add(1)
	case data.UNBIND_RESP, data.GENERIC_NACK:
	default:
		if h.CommandID >= 0 { // a request, not a response
			s.link.nack(h, data.ESME_RINVCMDID)
		}
	}
}

// takeBind binds a client, or refuses with a status.
func (s *session) takeBind(h pdu.Header, unit []byte) {
	request, err := pdu.CreatePDUFromCmdID(h.CommandID)
	if err == nil {
		err = request.Unmarshal(pdu.NewBuffer(unit))
	}
	if err != nil {
		s.link.nack(h, data.ESME_RINVCMDLEN)
		return
	}
	bind := request.(*pdu.BindRequest)
	answer := pdu.NewBindResp(*bind)
	answer.SystemID = "makola-smsc"
	answer.RegisterOptionalParam(pdu.Field{Tag: 0x0210, Data: []byte{data.SMPP_V34}}) // sc_interface_version
	hit := s.c.s.Strike(Name, sim.OpBind)
	switch {
	case hit.Has(sim.RequestLost):
		s.link.cut()
		return
	case hit.Has(sim.Unauthorized):
		answer.CommandStatus = data.ESME_RINVPASWD
	case hit != nil && !hit.Has(sim.Slow):
		answer.CommandStatus = data.ESME_RBINDFAIL
	case bind.SystemID != systemID:
		answer.CommandStatus = data.ESME_RINVSYSID
	case bind.Password != password:
		answer.CommandStatus = data.ESME_RINVPASWD
	}
	respond := func() {
		if answer.CommandStatus == data.ESME_ROK {
			answer.CommandStatus = s.c.admit(s.client, bind.BindingType != pdu.Receiver, bind.BindingType != pdu.Transmitter)
		}
		s.link.send(answer)
		if answer.CommandStatus != data.ESME_ROK {
			s.c.tally.notBound.Add(1)
		} else {
			_ = s.link.conn.SetReadDeadline(time.Time{})
			s.c.outbox.pump() // receipts may wait for this connection
		}
		s.link.flush()
	}
	if hit.Has(sim.Slow) {
		s.c.moments.later(hit.Of(sim.Slow).Delay, respond)
		return
	}
	respond()
}

// takeSubmit handles one submit_sm: its faults, its number's plan, its response and the later receipt.
func (s *session) takeSubmit(h pdu.Header, unit []byte) {
	c := s.c
	c.outbox.taking.Add(1)
	defer func() { // after its response is queued
		c.tally.submitted.Add(1)
		c.outbox.taken()
	}()
	hit := c.s.Strike(Name, sim.OpSubmit)
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
	hit.Bend(&plan)
	switch {
	case plan.Refuse != "":
		s.refuse(h.SequenceNumber, data.ESME_RSUBMITFAIL)
		return
	case plan.Down && c.s.IsDown(Name+":"+g.to):
		s.refuse(h.SequenceNumber, data.ESME_RMSGQFUL)
		return
	}
	id := c.accept(g, plan, hit)
	s.respond(g.sequence, id, plan, hit)
	if !plan.Early {
		c.promise(g, id, plan, hit)
	}
}

// struck applies the faults that take effect before anything is processed. It reports whether there was one.
func (s *session) struck(h pdu.Header, hit sim.Hit) bool {
	switch {
	case hit.Has(sim.RequestLost), hit.Has(sim.Outage):
		s.link.part()
	case hit.Has(sim.ErrorBefore):
		s.refuse(h.SequenceNumber, data.ESME_RSYSERR)
	case hit.Has(sim.Throttle):
		s.refuse(h.SequenceNumber, data.ESME_RTHROTTLED)
	case hit.Has(sim.QueueFull):
		s.refuse(h.SequenceNumber, data.ESME_RMSGQFUL)
	default:
		return false
	}
	return true
}

// understand decodes a submit_sm and checks it as strictly as an operator does.
func (s *session) understand(h pdu.Header, unit []byte) (segment, data.CommandStatusType) {
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
		sequence: h.SequenceNumber, from: p.SourceAddr.Address(), to: sim.Party(p.DestAddr.Address()),
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

// refuse responds to a submit with an error status.
func (s *session) refuse(sequence int32, status data.CommandStatusType) {
	switch status {
	case data.ESME_RTHROTTLED, data.ESME_RMSGQFUL:
		s.c.tally.throttled.Add(1)
	default:
		s.c.tally.refused.Add(1)
	}
	s.status(sequence, status, "")
}

// status sends the response to a submit after the latency.
func (s *session) status(sequence int32, status data.CommandStatusType, id string) {
	if wait := s.c.options.Load().Latency; wait > 0 {
		s.c.moments.later(wait, func() {
			a := pdu.NewSubmitSMResp().(*pdu.SubmitSMResp)
			a.CommandStatus, a.SequenceNumber, a.MessageID = status, sequence, id
			s.link.send(a)
			s.link.flush()
		})
		return
	}
	s.answer.CommandStatus, s.answer.SequenceNumber, s.answer.MessageID = status, sequence, id
	s.link.send(s.answer)
}

// respond sends the response to an accepted segment, unless its plan or a fault suppresses or replaces it.
func (s *session) respond(sequence int32, id uint64, plan sim.Plan, hit sim.Hit) {
	name := writeID(id, s.c.options.Load().SubmitIDs)
	switch {
	case hit.Has(sim.AnswerLost):
		s.link.part()
	case plan.Lost, hit.Has(sim.Silent):
	case hit.Has(sim.ErrorAfter):
		s.status(sequence, data.ESME_RSYSERR, "")
	case hit.Has(sim.Malformed):
		s.link.breakStream(sequence)
	case plan.Garbled:
		s.link.garble(sequence)
	case hit.Has(sim.Slow):
		s.c.moments.later(hit.Of(sim.Slow).Delay, func() {
			a := pdu.NewSubmitSMResp().(*pdu.SubmitSMResp)
			a.SequenceNumber, a.MessageID = sequence, name
			s.link.send(a)
			s.link.flush()
		})
	default:
		s.status(sequence, data.ESME_ROK, name)
		if hit.Has(sim.Unbind) {
			s.link.unbind()
		}
	}
}

// validSender reports whether a handset can show the sender.
func validSender(a pdu.Address) bool {
	if a.Ton() == data.GSM_TON_ALPHANUMERIC {
		return a.Address() != "" && len(a.Address()) <= 11
	}
	return len(a.Address()) <= 20 && strings.Trim(a.Address(), "0123456789") == ""
}
