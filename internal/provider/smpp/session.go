package smpp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/provider"
)

// session is one bound connection. It has three goroutines. A reader passes each response to its submit. A writer
// sends all waiting units in one write. A timer sends enquire_link and gives up submits without a response.
type session struct {
	link   *link
	conn   net.Conn
	window chan struct{} // a semaphore with one entry for each submit without a response

	mu       sync.Mutex
	sequence uint32
	waiting  map[uint32]*submission
	queued   []byte // sent by the writer in one write
	ids      []uint32
	closed   error
	// Readings of the clock's Elapsed: when the peer last sent a PDU, and when the enquire_link was sent that has no
	// response yet.
	heard  time.Duration
	asked  time.Duration
	asking bool

	kick   chan struct{} // there are units to write
	dead   chan struct{} // closed when the session ends
	stores sync.WaitGroup

	id       string // id of the connection, for texts from handsets
	refusals atomic.Int64
}

// submission is a submit without a response.
type submission struct {
	done    func(provider.Outcome)
	written bool          // passed to the socket: the operator may receive it from here on
	since   time.Duration // a reading of Elapsed
}

// open connects, binds and returns a session.
func open(ctx context.Context, l *link) (*session, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{link: l, conn: conn, window: make(chan struct{}, l.bind.Window), waiting: map[uint32]*submission{},
		kick: make(chan struct{}, 1), dead: make(chan struct{}), heard: l.clock.Elapsed(), id: uuid.NewString()}
	if err := s.bind(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

var bindCommands = map[BindMode]uint32{Transceiver: bindTransceiver, Transmitter: bindTransmitter, Receiver: bindReceiver}

// bind makes the opening exchange. The goroutines of the session do not run yet.
func (s *session) bind(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := s.conn.SetDeadline(time.Now().Add(s.link.bind.AnswerTimeout)); err != nil {
		return err
	}
	s.sequence = 1
	request := pdu{id: bindCommands[s.link.mode], sequence: s.sequence, body: bindBody(s.link.bind)}
	if _, err := s.conn.Write(request.appendTo(nil)); err != nil {
		return err
	}
	answer, err := readPDU(s.conn)
	if err != nil {
		return fmt.Errorf("smpp: no answer to the bind: %w", err)
	}
	if answer.status != statusOK {
		return fmt.Errorf("smpp: the bind was refused with status %s", bindStatus(answer.status))
	}
	if answer.id != request.id|answerBit {
		return fmt.Errorf("smpp: the bind was answered with the PDU 0x%08x", answer.id)
	}
	if !stop() {
		return ctx.Err()
	}
	return s.conn.SetDeadline(time.Time{})
}

// bindBody returns the body of the three bind requests (section 4.1).
func bindBody(b Bind) []byte {
	body := cstring(nil, b.SystemID, 16)
	body = cstring(body, b.Password, 9)
	body = cstring(body, b.SystemType, 13)
	return append(body, version34, 0, 0, 0) // interface version, ton, npi, empty address range
}

// run runs the session until it ends, and returns the cause.
func (s *session) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.end(ctx.Err()) })
	defer stop()
	var group sync.WaitGroup
	group.Add(2)
	go func() { defer group.Done(); s.write() }()
	go func() { defer group.Done(); s.keepAlive(ctx) }()
	s.end(s.read(ctx))
	group.Wait()
	s.stores.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// end closes the session once. For submits without a response, the outcome is Unknown if they were written, and
// NotSent otherwise.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.closed != nil {
		s.mu.Unlock()
		return
	}
	s.closed = why
	if why == nil {
		s.closed = errors.New("smpp: the peer closed the connection")
	}
	lost := s.waiting
	s.waiting = map[uint32]*submission{}
	close(s.dead)
	s.mu.Unlock()
	_ = s.conn.Close()
	for _, sub := range lost {
		s.finish(sub, lostOutcome(sub.written))
	}
}

func lostOutcome(written bool) provider.Outcome {
	if written {
		return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnknown, Message: "the connection was lost before the answer"}
	}
	return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable,
		Message: "the connection was lost before the segment was written", RetryAfter: time.Second}
}

// finish returns the submit's place in the window, and then calls done.
func (s *session) finish(sub *submission, o provider.Outcome) {
	<-s.window
	sub.done(o)
}

// submit implements provider.SMSSender on this connection.
func (s *session) submit(ctx context.Context, segment provider.Segment, done func(provider.Outcome)) {
	turn, err := s.link.rate.wait(ctx, s.dead)
	if err != nil {
		done(notSent(err))
		return
	}
	select {
	case s.window <- struct{}{}:
	case <-s.dead:
		s.link.rate.back(turn)
		done(lostOutcome(false))
		return
	case <-ctx.Done():
		s.link.rate.back(turn)
		done(notSent(ctx.Err()))
		return
	}
	sub := &submission{done: done, since: s.link.clock.Elapsed()}
	if !s.enqueue(sub, segment) {
		s.link.rate.back(turn)
		s.finish(sub, lostOutcome(false))
		return
	}
	s.wake()
}

// notSent returns the outcome of a segment that was given up before it had a place in the window.
func notSent(why error) provider.Outcome {
	return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: why.Error()}
}

// enqueue passes a submit to the writer. It returns false if the session takes no more submits.
func (s *session) enqueue(sub *submission, segment provider.Segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil || s.link.draining.Load() {
		return false
	}
	unit := pdu{id: submitSM, sequence: s.numberLocked(), body: submitBody(s.link.bind, segment)}
	s.waiting[unit.sequence] = sub // stored before it is written, so that its response is always expected
	s.queued = unit.appendTo(s.queued)
	s.ids = append(s.ids, unit.sequence)
	return true
}

func (s *session) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// numberLocked returns the next sequence number (section 3.2). The caller must have the lock.
func (s *session) numberLocked() uint32 {
	s.sequence = s.sequence%0x7fffffff + 1
	return s.sequence
}

// request queues a request without a body.
func (s *session) request(id uint32) {
	s.mu.Lock()
	s.queued = pdu{id: id, sequence: s.numberLocked()}.appendTo(s.queued)
	s.mu.Unlock()
	s.wake()
}

// maxQueued is the maximum number of octets that wait for a peer that does not read. The window already limits our
// submits, so maxQueued limits our responses to the peer's requests.
const maxQueued = 1 << 20

// send queues a unit that has no response. It ends the session of a peer that continues to send requests and reads
// nothing.
func (s *session) send(p pdu) {
	s.mu.Lock()
	full := len(s.queued) > maxQueued
	if !full {
		s.queued = p.appendTo(s.queued)
	}
	s.mu.Unlock()
	if full {
		s.end(errors.New("smpp: the peer does not read our responses"))
		return
	}
	s.wake()
}

// write repeatedly sends all queued units in one write.
func (s *session) write() {
	var spare []byte
	for {
		select {
		case <-s.kick:
		case <-s.dead:
			return
		}
		s.mu.Lock()
		out := s.queued
		s.queued = spare[:0]
		for _, id := range s.ids {
			if sub := s.waiting[id]; sub != nil {
				sub.written = true // set before the write, because a failed write may still send a part
			}
		}
		s.ids = s.ids[:0]
		s.mu.Unlock()
		if len(out) > 0 {
			// The deadline uses the machine's clock, because it is about the socket.
			err := s.conn.SetWriteDeadline(time.Now().Add(s.link.bind.AnswerTimeout))
			if err == nil {
				_, err = s.conn.Write(out)
			}
			if err != nil {
				s.end(fmt.Errorf("smpp: write: %w", err))
				return
			}
		}
		spare = out
	}
}

func (s *session) read(ctx context.Context) error {
	reader := bufio.NewReaderSize(s.conn, 32<<10)
	for {
		p, err := readPDU(reader)
		if err != nil {
			return fmt.Errorf("smpp: read: %w", err)
		}
		s.mu.Lock()
		s.heard, s.asking = s.link.clock.Elapsed(), false
		s.mu.Unlock()
		if err := s.take(ctx, p); err != nil {
			return err
		}
	}
}

var errUnbound = errors.New("smpp: the peer unbound")

// take handles one unit from the peer.
func (s *session) take(ctx context.Context, p pdu) error {
	switch p.id {
	case submitSM | answerBit, genericNack:
		s.answered(p)
	case enquireLink:
		s.send(p.answer(statusOK))
	case deliverSM:
		s.delivered(ctx, p)
	case unbind:
		_, _ = s.conn.Write(p.answer(statusOK).appendTo(nil)) // written directly, because the writer ends with the session
		return errUnbound
	case enquireLink | answerBit, unbind | answerBit:
	default:
		if p.id&answerBit == 0 {
			s.send(pdu{id: genericNack, status: statusInvalidCmd, sequence: p.sequence})
		}
	}
	return nil
}

func (s *session) answered(p pdu) {
	s.mu.Lock()
	sub := s.waiting[p.sequence]
	delete(s.waiting, p.sequence)
	s.mu.Unlock()
	if sub == nil {
		return // the submit was given up before, with the outcome Unknown, or is not ours
	}
	o := submitOutcome(p, s.link.bind)
	if p.status == statusThrottled || p.status == statusQueueFull {
		s.link.rate.slow()
	} else if o.Class == provider.Accepted {
		s.link.rate.recover()
	}
	s.finish(sub, o)
}

// delivered stores a receipt and then acknowledges it. The connection handles other units while a receipt is stored.
// The receipts of a connection are queued in the order of their arrival, because the first final receipt counts. If a
// receipt cannot be stored, the answer is a temporary error, and the operator sends the receipt again. A message from
// a handset is acknowledged and ignored.
func (s *session) delivered(ctx context.Context, p pdu) {
	d := readDelivery(p.body)
	receipt, kind := parseReceipt(d, s.link.bind, s.link.clock.Now())
	switch {
	case kind == matchable:
		s.store(ctx, p, "delivery receipt", func() func() error { return s.link.receipt(ctx, receipt) })
		return
	case kind == incoming && s.link.incoming != nil:
		m := parseIncoming(d)
		m.Session, m.Sequence, m.At = fmt.Sprintf("%s/%d", s.id, s.refusals.Load()), p.sequence, s.link.clock.Now()
		s.store(ctx, p, "incoming text", func() func() error { return s.link.incoming(ctx, m) })
		return
	case kind == unreadable: // a refused text would be sent again for ever
		s.link.log.WarnContext(ctx, "acknowledged unreadable delivery receipt", "bind", s.link.bind.Name, "octets", len(p.body))
	}
	s.send(p.answer(statusOK))
}

// store queues the content of a unit, and answers the unit when the content is stored. It waits while too many units
// of the connection are being stored.
func (s *session) store(ctx context.Context, p pdu, what string, queue func() (stored func() error)) {
	s.link.storing <- struct{}{}
	stored := queue()
	s.stores.Add(1)
	go func() {
		defer s.stores.Done()
		defer func() { <-s.link.storing }()
		if err := stored(); err != nil {
			level := slog.LevelError
			if ctx.Err() != nil { // the connection ends without a response, and the operator sends the receipt again
				level = slog.LevelDebug
			}
			s.link.log.Log(ctx, level, "failed to store "+what, "bind", s.link.bind.Name, "error", err)
			s.refusals.Add(1)
			s.send(p.answer(statusTryLater))
			return
		}
		s.send(p.answer(statusOK))
	}()
}

// keepAlive sends enquire_link to a peer that sends nothing, and ends the session if the peer does not respond. It
// also gives up submits without a response.
func (s *session) keepAlive(ctx context.Context) {
	step := max(min(s.link.bind.EnquireEvery, s.link.bind.AnswerTimeout)/4, time.Millisecond)
	for {
		timer := s.link.clock.Timer(step)
		select {
		case <-timer.C:
		case <-s.dead:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		late, ask, silent := s.look(s.link.clock.Elapsed())
		for _, sub := range late {
			s.finish(sub, provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnknown, Message: "no answer to the submit"})
		}
		if silent {
			s.end(errors.New("smpp: the peer does not respond to enquire_link"))
			return
		}
		if ask {
			s.request(enquireLink)
		}
	}
}

// look returns the submits that have waited too long for a response. ask is set if enquire_link must be sent, and
// silent if the peer did not respond to it.
func (s *session) look(now time.Duration) (late []*submission, ask, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sub := range s.waiting {
		if now-sub.since > s.link.bind.AnswerTimeout {
			late = append(late, sub)
			delete(s.waiting, id)
		}
	}
	switch {
	case !s.asking && now-s.heard >= s.link.bind.EnquireEvery:
		s.asking, s.asked = true, now
		return late, true, false
	case s.asking && now-s.asked >= s.link.bind.AnswerTimeout:
		return late, false, true
	}
	return late, false, false
}

// pending returns the number of submits without a response.
func (s *session) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// submitBody returns the body of a submit_sm (section 4.4.1).
func submitBody(b Bind, g provider.Segment) []byte {
	body := make([]byte, 0, 96+len(g.Octets))
	body = cstring(body, b.ServiceType, 6)
	sourceTON := byte(alphanumeric)
	if isNumber(g.From) {
		sourceTON = intlNumber
	}
	body = append(body, sourceTON, sourceTON&intlNumber)
	if sourceTON == alphanumeric {
		body[len(body)-1] = 0 // an alphanumeric sender has no numbering plan
	}
	body = cstring(body, g.From, 21)
	body = append(body, intlNumber, intlNumber)
	body = cstring(body, g.To.International(), 21)
	long := g.Parts > 1
	esm := byte(0)
	if long && b.Concatenation == UDH {
		esm = esmUDH
	}
	receipt := byte(0)
	if g.WantsReceipt {
		receipt = 1
	}
	body = append(body, esm, 0, 0, 0) // protocol id, priority, no scheduled delivery time
	body = cstring(body, validity(g.Validity), 17)
	body = append(body, receipt, 0, dataCoding[g.Encoding], 0)
	text := g.Octets
	if esm == esmUDH {
		header := []byte{5, 0, 3, byte(g.Group), byte(g.Parts), byte(g.Part)}
		text = append(header, text...)
	}
	body = append(body, byte(len(text)))
	body = append(body, text...)
	if long && b.Concatenation == SAR {
		body = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(body, tagSARReference), 2)
		body = binary.BigEndian.AppendUint16(body, g.Group)
		body = append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(body, tagSARTotal), 1), byte(g.Parts))
		body = append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(body, tagSARPart), 1), byte(g.Part))
	}
	return body
}

// validity formats a relative time (section 7.1.1.2). It returns "" for zero.
func validity(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := int(max(d, time.Second) / time.Second)
	return fmt.Sprintf("0000%02d%02d%02d%02d000R", s/86_400, s/3_600%24, s/60%60, s%60)
}

func isNumber(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// submitOutcome reads the response to a submit. Statuses that mean "try later" prove that the message was not
// accepted. After a system error the outcome is unknown. Every other error status of the specification is a final
// refusal.
func submitOutcome(p pdu, b Bind) provider.Outcome {
	code := fmt.Sprintf("0x%08x", p.status)
	switch p.status {
	case statusOK:
		if p.id == genericNack {
			return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnknown, Code: code}
		}
		f := fields{rest: p.body}
		id := canonicalID(decodeText([]byte(f.cstring()), 0), b.SubmitIDs)
		if id == "" {
			return provider.Outcome{Class: provider.Accepted, State: provider.Pending, Message: "accepted without a message id"}
		}
		return provider.Outcome{Class: provider.Accepted, State: provider.Pending, UpstreamID: id}
	case statusThrottled, statusQueueFull, statusTryLater:
		return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Code: code, RetryAfter: time.Second}
	case statusSystem, statusUnknown:
		return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonUnknown, Code: code}
	default:
		return provider.Outcome{Class: provider.Rejected, State: provider.Failed, Reason: provider.ReasonRefused, Code: code}
	}
}
