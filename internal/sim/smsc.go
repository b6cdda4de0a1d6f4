package sim

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// SMSC is the message centre's name, as in faults and paths.
const SMSC = "smsc"

// The one account of the message centre. SMPP allows 8 characters of password.
const (
	smscSystemID = "makola"
	smscPassword = "sim-pass"
)

// IDForm is how the message centre writes the ids of messages.
type IDForm string

// The forms of ids.
const (
	IDText    IDForm = "text"
	IDHex     IDForm = "hex"
	IDDecimal IDForm = "decimal"
)

// SMSCOptions are the habits of the message centre. They may change while it
// runs (SetSMSC); connections that are bound notice at once.
type SMSCOptions struct {
	// SubmitIDs is the form of ids in answers to submits, ReceiptIDs in
	// receipts; empty means IDText.
	SubmitIDs  IDForm `json:"submit_ids"`
	ReceiptIDs IDForm `json:"receipt_ids"`
	// BareReceipts leaves receipted_message_id and message_state out.
	BareReceipts bool `json:"bare_receipts"`
	// Rate is how many segments a second are taken; the rest is answered
	// with ESME_RTHROTTLED. Zero: any number.
	Rate int `json:"rate"`
	// Queue is how many segments may wait for their receipt; beyond it a
	// submit is answered with ESME_RMSGQFUL. Zero: any number.
	Queue int `json:"queue"`
	// Binds is how many connections may be bound at once; zero: any number.
	Binds int `json:"max_binds"`
	// ReceiptWindow is how many receipts one connection may owe an
	// acknowledgement for; zero: 100.
	ReceiptWindow int `json:"receipt_window"`
	// Latency passes between a submit and its answer.
	Latency time.Duration `json:"-"`
	// EnquireEvery is the silence after which a connection is asked for a
	// sign of life; zero: 60 s. After three without one it is closed.
	EnquireEvery time.Duration `json:"-"`
}

func (o SMSCOptions) withDefaults() SMSCOptions {
	if o.SubmitIDs == "" {
		o.SubmitIDs = IDText
	}
	if o.ReceiptIDs == "" {
		o.ReceiptIDs = IDText
	}
	if o.ReceiptWindow == 0 {
		o.ReceiptWindow = 100
	}
	if o.EnquireEvery == 0 {
		o.EnquireEvery = time.Minute
	}
	return o
}

// SMPPAccount is what an SMPP client needs to bind with the message centre.
type SMPPAccount struct {
	Address  string `json:"address"` // host:port of the first listener; empty before it is announced
	SystemID string `json:"system_id"`
	Password string `json:"password"`
}

// SMSCTotals are what the message centre counted since it was made.
type SMSCTotals struct {
	Bound     int   `json:"bound"`      // connections that are bound now
	PeakBound int   `json:"peak_bound"` // the most at once
	Connected int64 `json:"connected"`  // connections taken
	Binds     int64 `json:"binds"`      // that succeeded
	NotBound  int64 `json:"not_bound"`  // binds that were refused
	Enquiries int64 `json:"enquiries"`  // enquire_link that came in
	Alive     int64 `json:"alive"`      // answers to those that went out
	Submitted int64 `json:"submitted"`  // submit_sm that came in
	Accepted  int64 `json:"accepted"`   // of those, segments taken, answered or not
	Throttled int64 `json:"throttled"`  // ESME_RTHROTTLED and ESME_RMSGQFUL
	Refused   int64 `json:"refused"`    // any other no
	Receipts  int64 `json:"receipts"`   // deliver_sm sent, the repeated as well
	Confirmed int64 `json:"confirmed"`  // of those, acknowledged
	Repeated  int64 `json:"repeated"`   // sent again: refused for now, or the connection ended
	Dropped   int64 `json:"dropped"`    // given up: refused for good, or far too many waited
}

// smsc is the message centre: sessions (smsc_session.go) take submits
// (smsc_submit.go), which come to receipts by the plan of their number
// (smsc_plan.go); receipts go out through any connection that may receive.
// Nothing is kept of a message but what is still to be done about it, the
// handsets' bounded inboxes, and a count of segments if it is switched on.
type smsc struct {
	s       *Sim
	options atomic.Pointer[SMSCOptions]
	lastID  atomic.Uint64
	counted atomic.Pointer[segmentBook] // nil: off
	parts   *assembly
	rate    rateWindow

	connected, binds, notBound, enquiries, alive       atomic.Int64
	submitted, accepted, throttled, refused            atomic.Int64
	receiptsOut, confirmed, repeated, dropped, waiting atomic.Int64
	taking, watchers                                   atomic.Int64 // submits that are being taken, and who waits for rest

	mu        sync.Mutex
	still     *sync.Cond // signalled when no receipt is under way
	listeners []net.Listener
	address   string
	sessions  []*smscSession // every connection
	receivers []*smscSession // those that are bound and may receive
	turn      int
	bound     int
	peak      int
	queue     receiptQueue
	underWay  int // receipts without an acknowledgement
	scripts   map[string]Plan
	slots     map[int64][]func() // what happens at one moment, by microsecond
	closed    bool
	running   sync.WaitGroup
}

var errSMSCClosed = errors.New("the simulator's message centre is closed")

func newSMSC(s *Sim, o SMSCOptions) *smsc {
	c := &smsc{s: s, parts: newAssembly(), scripts: map[string]Plan{}, queue: receiptQueue{limit: maxReceipts}, slots: map[int64][]func(){}}
	c.still = sync.NewCond(&c.mu)
	o = o.withDefaults()
	c.options.Store(&o)
	// Ids go on from where a message centre that ran before cannot have been.
	c.lastID.Store(uint64(s.clock.Now().UnixMilli()) << 12)
	return c
}

// firstAcceptPause comes after an accept that failed, as for want of file descriptors; each one more doubles it.
const firstAcceptPause = 5 * time.Millisecond

// AnnounceSMPP says where the message centre will be served, before whoever asks for its account can: ServeSMPP runs beside
// the interface that tells it.
func (s *Sim) AnnounceSMPP(l net.Listener) {
	s.smsc.mu.Lock()
	defer s.smsc.mu.Unlock()
	if s.smsc.address == "" {
		s.smsc.address = l.Addr().String()
	}
}

// ServeSMPP takes connections of SMPP clients until the simulator or the
// listener is closed. The account is that of SMPP.
func (s *Sim) ServeSMPP(l net.Listener) error {
	c := s.smsc
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errors.Join(errSMSCClosed, l.Close())
	}
	c.listeners = append(c.listeners, l)
	c.mu.Unlock()
	s.AnnounceSMPP(l)
	for pause := firstAcceptPause; ; {
		conn, err := l.Accept()
		if err == nil {
			pause = firstAcceptPause
			c.start(conn)
			continue
		}
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		if closed || errors.Is(err, net.ErrClosed) {
			return nil
		}
		s.log.Warn("the message centre accepts no connection now", "error", err)
		time.Sleep(pause)
		pause = min(2*pause, time.Second)
	}
}

// SMPP gives the account with the message centre.
func (s *Sim) SMPP() SMPPAccount {
	s.smsc.mu.Lock()
	defer s.smsc.mu.Unlock()
	return SMPPAccount{Address: s.smsc.address, SystemID: smscSystemID, Password: smscPassword}
}

// SetSMSC changes the habits of the message centre.
func (s *Sim) SetSMSC(o SMSCOptions) {
	o = o.withDefaults()
	s.smsc.options.Store(&o)
	s.smsc.mu.Lock()
	defer s.smsc.mu.Unlock()
	s.smsc.pumpLocked()
}

// SMSCOptions gives the habits of the message centre.
func (s *Sim) SMSCOptions() SMSCOptions { return *s.smsc.options.Load() }

// SMSCTotals gives the counts of the message centre.
func (s *Sim) SMSCTotals() SMSCTotals {
	c := s.smsc
	c.mu.Lock()
	defer c.mu.Unlock()
	return SMSCTotals{
		Bound: c.bound, PeakBound: c.peak, Connected: c.connected.Load(), Binds: c.binds.Load(), NotBound: c.notBound.Load(),
		Enquiries: c.enquiries.Load(), Alive: c.alive.Load(),
		Submitted: c.submitted.Load(), Accepted: c.accepted.Load(),
		Throttled: c.throttled.Load(), Refused: c.refused.Load(), Receipts: c.receiptsOut.Load(), Confirmed: c.confirmed.Load(),
		Repeated: c.repeated.Load(), Dropped: c.dropped.Load(),
	}
}

// Disconnect cuts every SMPP connection as a failing network does: nothing
// that is under way arrives any more.
func (s *Sim) Disconnect() {
	s.smsc.mu.Lock()
	sessions := slices.Clone(s.smsc.sessions)
	s.smsc.mu.Unlock()
	for _, session := range sessions {
		session.cut()
	}
}

// SendText sends a text from a handset to a sender ID or short code, as a
// customer does who answers a message. It is cut to 70 characters.
func (s *Sim) SendText(from, to, text string) {
	s.smsc.offer(receipt{to: party(from), from: to, text: text})
}

// ScriptSMS fixes what messages to a number come to, whatever the number says.
func (s *Sim) ScriptSMS(number string, p Plan) {
	s.smsc.mu.Lock()
	defer s.smsc.mu.Unlock()
	s.smsc.scripts[party(number)] = p
}

// plan is what a message to a number will come to: its script, else its number.
func (c *smsc) plan(to string) Plan {
	c.mu.Lock()
	p, scripted := c.scripts[to]
	c.mu.Unlock()
	if !scripted {
		p = SMSPlanFor(to)
	}
	if p.Then == "" {
		p.Then = Success
	}
	return p
}

// later does something once d has passed, on the simulator's scheduler. Messages of one moment
// share one entry there, however many they are.
func (c *smsc) later(d time.Duration, do func()) {
	step := time.Millisecond
	if d > 10*grid {
		step = grid
	}
	due := c.s.clock.Now().Add(d).Truncate(step)
	moment := due.UnixMicro()
	c.mu.Lock()
	list, known := c.slots[moment]
	c.slots[moment] = append(list, do)
	c.mu.Unlock()
	if known {
		return
	}
	c.s.schedule.at(due, func() {
		c.mu.Lock()
		list := c.slots[moment]
		delete(c.slots, moment)
		c.mu.Unlock()
		for _, do := range list {
			do()
		}
	})
}

// leave removes a connection; the receipts that it owes an answer for go out
// again through another.
func (c *smsc) leave(s *smscSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(other *smscSession) bool { return other == s }
	c.sessions = slices.DeleteFunc(c.sessions, same)
	c.receivers = slices.DeleteFunc(c.receivers, same)
	if s.bound {
		c.bound--
	}
	c.underWay -= len(s.owed)
	c.repeated.Add(int64(len(s.owed)))
	c.queue.unpop(s.owed)
	s.owed = nil
	c.pumpLocked()
}

// quietLocked says that every receipt which can go has gone and was answered, and that no submit may
// bring another one at this moment.
func (c *smsc) quietLocked() bool {
	return c.taking.Load() == 0 && c.underWay == 0 && (c.queue.len() == 0 || len(c.receivers) == 0)
}

func (c *smsc) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.quietLocked()
}

// quiet waits until no receipt is under way.
func (c *smsc) quiet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.still.Broadcast()
	})()
	c.watchers.Add(1)
	defer c.watchers.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.quietLocked() && !c.closed && ctx.Err() == nil {
		c.still.Wait()
	}
	return ctx.Err()
}

// close unbinds every connection and waits for its end.
func (c *smsc) close() {
	c.mu.Lock()
	c.closed = true
	for _, l := range c.listeners {
		l.Close()
	}
	sessions := slices.Clone(c.sessions)
	c.still.Broadcast()
	c.mu.Unlock()
	for _, s := range sessions {
		s.unbind()
	}
	c.running.Wait()
}

// rateWindow counts segments in each second of the clock.
type rateWindow struct {
	mu     sync.Mutex
	second int64
	count  int
}

// take reports whether one more segment fits into this second.
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
