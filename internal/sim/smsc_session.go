package sim

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
)

const (
	smppHeader  = 16
	bindWithin  = 30 * time.Second // of connecting
	lastWithin  = 30 * time.Second // for what waits to be written, once nothing more is taken
	partWithin  = time.Second      // for a client to close after we did
	maxUnsent   = 4 << 20          // octets that wait for a client that does not read
	flushBeyond = 32 << 10         // octets that go out while more is being read
	maxSilence  = 3                // requests for a sign of life without one
)

// smscSession is one connection of a client: a reader that treats each unit as
// it comes, and a writer that puts everything which waits into one write. The
// reader never waits for an answer's time to come, so a client's window may be
// as wide as it likes.
type smscSession struct {
	c      *smsc
	conn   net.Conn
	reader *bufio.Reader
	frame  []byte // the unit being read
	submit *pdu.SubmitSM
	answer *pdu.SubmitSMResp
	sends  atomic.Bool // bound, and not as a receiver

	// Guarded by the message centre's mutex.
	bound    bool
	owed     map[int32]receipt // receipts without an acknowledgement, by sequence number
	sequence int32
	report   *pdu.DeliverSM

	mu      sync.Mutex
	room    *sync.Cond // signalled when out was written
	out     *pdu.ByteBuffer
	silence int  // requests for a sign of life without one
	parting bool // nothing more is taken; what waits is written, then the connection ends
	gone    bool

	kick chan struct{} // there is something to write
	dead chan struct{}
}

// start serves a connection.
func (c *smsc) start(conn net.Conn) {
	s := &smscSession{
		c: c, conn: conn, reader: bufio.NewReaderSize(conn, 32<<10), frame: make([]byte, 512), out: pdu.NewBuffer(nil),
		submit: pdu.NewSubmitSM().(*pdu.SubmitSM), answer: pdu.NewSubmitSMResp().(*pdu.SubmitSMResp),
		report: pdu.NewDeliverSM().(*pdu.DeliverSM), owed: map[int32]receipt{},
		kick: make(chan struct{}, 1), dead: make(chan struct{}),
	}
	s.room = sync.NewCond(&s.mu)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return
	}
	c.connected.Add(1)
	c.sessions = append(c.sessions, s)
	c.running.Add(2)
	go func() {
		defer c.running.Done()
		s.read()
		s.cut()
		c.leave(s)
	}()
	go func() {
		defer c.running.Done()
		s.write()
	}()
}

// read takes units until the connection ends.
func (s *smscSession) read() {
	_ = s.conn.SetReadDeadline(time.Now().Add(bindWithin))
	for {
		if _, err := io.ReadFull(s.reader, s.frame[:smppHeader]); err != nil {
			return
		}
		header := pdu.ParseHeader([smppHeader]byte(s.frame))
		if header.CommandLength < smppHeader || header.CommandLength > data.MAX_PDU_LEN {
			s.nack(header, data.ESME_RINVCMDLEN)
			s.part()
			_, _ = io.Copy(io.Discard, s.conn) // nothing behind it can be understood
			return
		}
		if missing := int(header.CommandLength) - len(s.frame); missing > 0 {
			s.frame = append(s.frame, make([]byte, missing)...)
		}
		if _, err := io.ReadFull(s.reader, s.frame[smppHeader:header.CommandLength]); err != nil {
			return
		}
		if !s.listening() {
			continue // parting: what comes now was not taken
		}
		s.take(header, s.frame[:header.CommandLength])
		if s.reader.Buffered() == 0 {
			s.flush()
		}
	}
}

// listening notes a sign of life and reports whether units are still taken. It
// waits while a client does not read what it is answered.
func (s *smscSession) listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence = 0
	for s.out.Len() > maxUnsent && !s.gone {
		s.room.Wait()
	}
	return !s.parting && !s.gone
}

// take treats one unit.
func (s *smscSession) take(h pdu.Header, unit []byte) {
	switch h.CommandID {
	case data.SUBMIT_SM:
		s.takeSubmit(h, unit)
	case data.DELIVER_SM_RESP:
		s.c.confirm(s, h.SequenceNumber, h.CommandStatus)
	case data.BIND_TRANSCEIVER, data.BIND_TRANSMITTER, data.BIND_RECEIVER:
		s.takeBind(h, unit)
	case data.ENQUIRE_LINK:
		s.c.enquiries.Add(1)
		answer := pdu.NewEnquireLinkResp()
		answer.SetSequenceNumber(h.SequenceNumber)
		s.send(answer)
	case data.UNBIND:
		answer := pdu.NewUnbindResp()
		answer.SetSequenceNumber(h.SequenceNumber)
		s.send(answer)
		s.part()
	case data.ENQUIRE_LINK_RESP:
		s.c.alive.Add(1)
	case data.UNBIND_RESP, data.GENERIC_NACK:
	default:
		if h.CommandID >= 0 { // a request, not an answer
			s.nack(h, data.ESME_RINVCMDID)
		}
	}
}

// takeBind lets a client in, or says why not.
func (s *smscSession) takeBind(h pdu.Header, unit []byte) {
	request, err := pdu.CreatePDUFromCmdID(h.CommandID)
	if err == nil {
		err = request.Unmarshal(pdu.NewBuffer(unit))
	}
	if err != nil {
		s.nack(h, data.ESME_RINVCMDLEN)
		return
	}
	bind := request.(*pdu.BindRequest)
	answer := pdu.NewBindResp(*bind)
	answer.SystemID = "makola-smsc"
	answer.RegisterOptionalParam(pdu.Field{Tag: 0x0210, Data: []byte{data.SMPP_V34}}) // sc_interface_version
	hit := s.c.s.faults.next(SMSC, OpBind)
	switch {
	case hit.has(RequestLost):
		s.cut()
		return
	case hit.has(Unauthorized):
		answer.CommandStatus = data.ESME_RINVPASWD
	case hit != nil && !hit.has(Slow):
		answer.CommandStatus = data.ESME_RBINDFAIL
	case bind.SystemID != smscSystemID:
		answer.CommandStatus = data.ESME_RINVSYSID
	case bind.Password != smscPassword:
		answer.CommandStatus = data.ESME_RINVPASWD
	}
	respond := func() {
		if answer.CommandStatus == data.ESME_ROK {
			answer.CommandStatus = s.c.admit(s, bind.BindingType)
		}
		s.send(answer)
		if answer.CommandStatus != data.ESME_ROK {
			s.c.notBound.Add(1)
		} else {
			_ = s.conn.SetReadDeadline(time.Time{})
			s.c.offer() // receipts may wait for this connection
		}
		s.flush()
	}
	if hit.has(Slow) {
		s.c.later(hit.of(Slow).Delay, respond)
		return
	}
	respond()
}

// admit counts a connection as bound.
func (c *smsc) admit(s *smscSession, mode pdu.BindingType) data.CommandStatusType {
	limit := c.options.Load().Binds
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.bound:
		return data.ESME_RALYBND
	case limit > 0 && c.bound >= limit, s.owed == nil:
		return data.ESME_RBINDFAIL
	}
	s.bound = true
	s.sends.Store(mode != pdu.Receiver)
	c.bound++
	c.peak = max(c.peak, c.staying())
	c.binds.Add(1)
	if mode != pdu.Transmitter {
		c.receivers = append(c.receivers, s)
	}
	return data.ESME_ROK
}

// deliver sends a receipt. The message centre's mutex is held.
func (s *smscSession) deliver(r receipt) {
	s.sequence = s.sequence&0x3fffffff + 1
	r.tries++
	s.owed[s.sequence] = r
	r.fill(s.report, s.c.options.Load(), s.c.s.clock.Now())
	s.report.SetSequenceNumber(s.sequence)
	s.c.receiptsOut.Add(1)
	s.send(s.report)
}

// nack says that a unit makes no sense.
func (s *smscSession) nack(h pdu.Header, status data.CommandStatusType) {
	answer := pdu.NewGenericNack().(*pdu.GenericNack)
	answer.CommandStatus, answer.SequenceNumber = status, h.SequenceNumber
	s.send(answer)
}

// send queues a unit; flush lets it go.
func (s *smscSession) send(p pdu.PDU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parting || s.gone {
		return
	}
	p.Marshal(s.out)
	if s.out.Len() > flushBeyond {
		s.flush()
	}
}

// flush wakes the writer.
func (s *smscSession) flush() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// write writes whatever waits, and asks for a sign of life when it is time.
func (s *smscSession) write() {
	spare := pdu.NewBuffer(nil)
	life := s.c.s.clock.Timer(s.c.options.Load().EnquireEvery)
	defer func() { life.Stop() }()
	for {
		select {
		case <-s.kick:
		case <-life.C:
			s.enquire()
			life = s.c.s.clock.Timer(s.c.options.Load().EnquireEvery)
		case <-s.dead:
			return
		}
		s.mu.Lock()
		out, parting := s.out, s.parting
		spare.Reset()
		s.out = spare
		s.room.Broadcast()
		s.mu.Unlock()
		if out.Len() > 0 {
			if _, err := s.conn.Write(out.Bytes()); err != nil {
				s.cut()
				return
			}
		}
		if spare = out; spare.Cap() > 1<<20 {
			spare = pdu.NewBuffer(nil)
		}
		if parting {
			s.hangUp()
			return
		}
	}
}

// enquire asks for a sign of life, or gives a client up that shows none.
func (s *smscSession) enquire() {
	s.mu.Lock()
	s.silence++
	silent := s.silence > maxSilence
	s.mu.Unlock()
	if silent {
		s.cut()
		return
	}
	request := pdu.NewEnquireLink()
	s.send(request)
}

// staying counts the bound connections that the centre is not ending: a client that was cut off may be
// back before the end of its old connection is on the books. It is called under the centre's lock.
func (c *smsc) staying() int {
	n := 0
	for _, s := range c.sessions {
		s.mu.Lock()
		if s.bound && !s.parting && !s.gone {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// unbind asks the client to leave and ends the connection.
func (s *smscSession) unbind() {
	s.send(pdu.NewUnbind())
	s.part()
}

// part ends the connection once what waits has been written.
func (s *smscSession) part() {
	s.mu.Lock()
	s.parting = true
	s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(lastWithin))
	s.flush()
}

// hangUp closes our half, so that what was written arrives, and gives the
// client a moment to close its own.
func (s *smscSession) hangUp() {
	half, ok := s.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		s.cut()
		return
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(partWithin))
}

// cut ends the connection at once.
func (s *smscSession) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.gone = true
	close(s.dead)
	s.room.Broadcast()
	s.conn.Close()
}

// garble sends an answer whose frame is right and whose message id never ends.
func (s *smscSession) garble(sequence int32) {
	s.raw(20, sequence, 0xde, 0xad, 0xbe, 0xef)
}

// breakStream sends an answer that claims a length which cannot be.
func (s *smscSession) breakStream(sequence int32) {
	s.raw(0xfffffff0, sequence, 0xde, 0xad)
}

// raw sends an answer to a submit as no codec would write it.
func (s *smscSession) raw(length uint32, sequence int32, body ...byte) {
	unit := binary.BigEndian.AppendUint32(nil, length)
	unit = binary.BigEndian.AppendUint32(unit, 0x80000004)
	unit = binary.BigEndian.AppendUint32(unit, 0)
	unit = binary.BigEndian.AppendUint32(unit, uint32(sequence))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parting && !s.gone {
		s.out.Write(append(unit, body...))
	}
}
