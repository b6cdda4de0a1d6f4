package smsc

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/clock"
)

const (
	smppHeader  = 16
	bindWithin  = 30 * time.Second // maximum time between connecting and binding
	lastWithin  = 30 * time.Second // for writing pending units after the connection stopped reading
	partWithin  = time.Second      // for the client to close its side after we closed ours
	maxUnsent   = 4 << 20          // maximum octets that wait for a client that does not read
	flushBeyond = 32 << 10         // octets after which the writer runs while more is being read
	maxSilence  = 3                // enquire_link requests without a response
)

// link is one connection with a client. Its reader passes on each unit at once, and its writer sends all pending
// units in one write. The reader does not wait until responses are due, so a client's window may have any size.
type link struct {
	conn    net.Conn
	clock   *clock.Clock
	enquiry func() time.Duration // idle time after which enquire_link is sent
	reader  *bufio.Reader
	frame   []byte // the unit that is being read

	mu      sync.Mutex
	room    *sync.Cond // signalled after out was written
	out     *pdu.ByteBuffer
	silence int  // number of enquire_link requests without a response
	parting bool // no more units are accepted; pending ones are written, then the connection ends
	gone    bool

	kick chan struct{} // there are units to write
	dead chan struct{}
}

func newLink(conn net.Conn, c *clock.Clock, enquiry func() time.Duration) *link {
	l := &link{
		conn: conn, clock: c, enquiry: enquiry, reader: bufio.NewReaderSize(conn, 32<<10), frame: make([]byte, 512), out: pdu.NewBuffer(nil),
		kick: make(chan struct{}, 1), dead: make(chan struct{}),
	}
	l.room = sync.NewCond(&l.mu)
	return l
}

// read passes units to take until the connection ends.
func (l *link) read(take func(pdu.Header, []byte)) {
	_ = l.conn.SetReadDeadline(time.Now().Add(bindWithin))
	for {
		if _, err := io.ReadFull(l.reader, l.frame[:smppHeader]); err != nil {
			return
		}
		header := pdu.ParseHeader([smppHeader]byte(l.frame))
		if header.CommandLength < smppHeader || header.CommandLength > data.MAX_PDU_LEN {
			l.nack(header, data.ESME_RINVCMDLEN)
			l.part()
			_, _ = io.Copy(io.Discard, l.conn) // the rest cannot be parsed
			return
		}
		if missing := int(header.CommandLength) - len(l.frame); missing > 0 {
			l.frame = append(l.frame, make([]byte, missing)...)
		}
		if _, err := io.ReadFull(l.reader, l.frame[smppHeader:header.CommandLength]); err != nil {
			return
		}
		if !l.listening() {
			continue // the connection is ending, so units are ignored
		}
		take(header, l.frame[:header.CommandLength])
		if l.reader.Buffered() == 0 {
			l.flush()
		}
	}
}

// listening records activity of the client and reports whether units are still accepted. It waits while the client
// does not read its responses.
func (l *link) listening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silence = 0
	for l.out.Len() > maxUnsent && !l.gone {
		l.room.Wait()
	}
	return !l.parting && !l.gone
}

// nack sends a generic_nack for an unreadable unit.
func (l *link) nack(h pdu.Header, status data.CommandStatusType) {
	answer := pdu.NewGenericNack().(*pdu.GenericNack)
	answer.CommandStatus, answer.SequenceNumber = status, h.SequenceNumber
	l.send(answer)
}

// send queues a unit. flush makes the writer send it.
func (l *link) send(p pdu.PDU) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parting || l.gone {
		return
	}
	p.Marshal(l.out)
	if l.out.Len() > flushBeyond {
		l.flush()
	}
}

// flush wakes up the writer.
func (l *link) flush() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// write sends all pending units, and enquire_link when it is due.
func (l *link) write() {
	spare := pdu.NewBuffer(nil)
	life := l.clock.Timer(l.enquiry())
	defer func() { life.Stop() }()
	for {
		select {
		case <-l.kick:
		case <-life.C:
			l.enquire()
			life = l.clock.Timer(l.enquiry())
		case <-l.dead:
			return
		}
		l.mu.Lock()
		out, parting := l.out, l.parting
		spare.Reset()
		l.out = spare
		l.room.Broadcast()
		l.mu.Unlock()
		if out.Len() > 0 {
			if _, err := l.conn.Write(out.Bytes()); err != nil {
				l.cut()
				return
			}
		}
		if spare = out; spare.Cap() > 1<<20 {
			spare = pdu.NewBuffer(nil)
		}
		if parting {
			l.hangUp()
			return
		}
	}
}

// enquire sends enquire_link, or ends the connection of a client that did not respond to several.
func (l *link) enquire() {
	l.mu.Lock()
	l.silence++
	silent := l.silence > maxSilence
	l.mu.Unlock()
	if silent {
		l.cut()
		return
	}
	request := pdu.NewEnquireLink()
	l.send(request)
}

// stays reports whether the connection is not being closed.
func (l *link) stays() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.parting && !l.gone
}

// unbind sends unbind and then ends the connection.
func (l *link) unbind() {
	l.send(pdu.NewUnbind())
	l.part()
}

// part ends the connection after all pending units are written.
func (l *link) part() {
	l.mu.Lock()
	l.parting = true
	l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(lastWithin))
	l.flush()
}

// hangUp closes our side of the connection, so that written data arrives. It then waits a moment for the client to
// close its side.
func (l *link) hangUp() {
	half, ok := l.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.cut()
		return
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(partWithin))
}

// cut ends the connection at once.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	l.gone = true
	close(l.dead)
	l.room.Broadcast()
	l.conn.Close()
}

// garble sends a response with a correct length whose message id has no terminator.
func (l *link) garble(sequence int32) {
	l.raw(20, sequence, 0xde, 0xad, 0xbe, 0xef)
}

// breakStream sends a response with an impossible length.
func (l *link) breakStream(sequence int32) {
	l.raw(0xfffffff0, sequence, 0xde, 0xad)
}

// raw sends a malformed response to a submit.
func (l *link) raw(length uint32, sequence int32, body ...byte) {
	unit := binary.BigEndian.AppendUint32(nil, length)
	unit = binary.BigEndian.AppendUint32(unit, 0x80000004)
	unit = binary.BigEndian.AppendUint32(unit, 0)
	unit = binary.BigEndian.AppendUint32(unit, uint32(sequence))
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.parting && !l.gone {
		l.out.Write(append(unit, body...))
	}
}
