package smsc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
	"pgregory.net/rapid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/simtest"
)

// newCentre returns a message centre that listens.
func newCentre(t testing.TB, o Options) (*Centre, *clock.Clock) {
	t.Helper()
	m := New(o)
	_, c := simtest.New(t, sim.Options{}, m.Join)
	listen(t, m)
	return m, c
}

func listen(t testing.TB, m *Centre) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, m, l)
}

func serve(t testing.TB, m *Centre, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- m.Serve(l) }()
	t.Cleanup(func() {
		m.s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	clocktest.Await(t, "the listener", func() bool { return m.Account().Address != "" })
}

// line is the client's end of a connection. It reads and writes single units.
type line struct {
	t    testing.TB
	conn net.Conn
	next int32
}

func dial(t testing.TB, s *Centre) *line {
	t.Helper()
	conn, err := net.Dial("tcp", s.Account().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &line{t: t, conn: conn}
}

// bound returns a connection after its bind.
func bound(t testing.TB, s *Centre, mode pdu.BindingType) *line {
	t.Helper()
	l := dial(t, s)
	if status := l.bind(mode, systemID, password); status != data.ESME_ROK {
		t.Fatalf("bind: %x", status)
	}
	return l
}

func (l *line) send(p pdu.PDU) int32 {
	l.t.Helper()
	l.next++
	p.SetSequenceNumber(l.next)
	b := pdu.NewBuffer(nil)
	p.Marshal(b)
	l.write(b.Bytes()...)
	return l.next
}

func (l *line) write(octets ...byte) {
	l.t.Helper()
	if _, err := l.conn.Write(octets); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) read() pdu.PDU {
	l.t.Helper()
	p, err := pdu.Parse(l.conn)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// ask sends a request and reads its answer.
func (l *line) ask(p pdu.PDU) pdu.PDU {
	l.t.Helper()
	sequence := l.send(p)
	answer := l.read()
	if answer.GetSequenceNumber() != sequence {
		l.t.Fatalf("%+v answers %d", answer, sequence)
	}
	return answer
}

func (l *line) bind(mode pdu.BindingType, id, password string) data.CommandStatusType {
	l.t.Helper()
	b := pdu.NewBindRequest(mode)
	b.SystemID, b.Password = id, password
	return l.ask(b).GetHeader().CommandStatus
}

// closed reports whether the centre has closed the connection.
func (l *line) closed() bool {
	_, err := l.conn.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// planned reports whether an event is planned.
func (m *moments) planned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.slots) > 0
}

// plainText returns a segment in ASCII.
func plainText(text string) content { return content{data.ASCII, []byte(text)} }

// message returns a submit_sm.
func message(to, text string) *pdu.SubmitSM {
	p := pdu.NewSubmitSM().(*pdu.SubmitSM)
	setAddress(&p.SourceAddr, "ADOM")
	setAddress(&p.DestAddr, to)
	octets, err := data.GSM7BIT.Encode(text)
	if err != nil {
		panic(err)
	}
	_ = p.Message.SetMessageDataWithEncoding(octets, data.GSM7BIT)
	p.RegisteredDelivery = 1
	return p
}

func (l *line) submit(p *pdu.SubmitSM) (status data.CommandStatusType, id string) {
	l.t.Helper()
	a := l.ask(p).(*pdu.SubmitSMResp)
	return a.CommandStatus, a.MessageID
}

// Each magic number of messages selects its plan.
func TestPlanFor_messageNumbers(t *testing.T) {
	for code, want := range map[string]sim.Plan{
		"000": {Delay: 2 * time.Second, Then: sim.Success},
		"001": {Then: sim.Success},
		"002": {Delay: 45 * time.Second, Then: sim.Success},
		"003": {Delay: 2 * time.Second, Then: sim.Success, Wait: true},
		"005": {Delay: 2 * time.Second, Then: sim.Success},
		"006": {Delay: 3 * time.Second, Then: sim.Success, Lost: true},
		"007": {Delay: 3 * time.Second, Then: sim.Failed, Reason: sim.Internal, Lost: true},
		"020": {Delay: 2 * time.Second, Then: sim.Success, Refuse: sim.Refused},
		"021": {Delay: 10 * time.Second, Then: sim.Failed, Reason: sim.Expired},
		"022": {Delay: 2 * time.Second, Then: sim.Success},
		"024": {Delay: 2 * time.Second, Then: sim.Failed, Reason: sim.NotRegistered},
		"026": {Delay: 2 * time.Second, Then: sim.Failed, Reason: sim.Barred},
	} {
		if got := sim.TextPlan("233240000" + code); got != want {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// A request that is unreadable, or that does not fit the state of the session, is refused.
func TestSession_refusesOutOfState(t *testing.T) {
	s, _ := newCentre(t, Options{})
	l := dial(t, s)
	if status, _ := l.submit(message("233244123456", "x")); status != data.ESME_RINVBNDSTS {
		t.Errorf("a submit before the bind: %x", status)
	}
	if status := l.bind(pdu.Transceiver, "nobody", password); status != data.ESME_RINVSYSID {
		t.Errorf("a stranger: %x", status)
	}
	if status := l.bind(pdu.Transceiver, systemID, "wrong"); status != data.ESME_RINVPASWD {
		t.Errorf("a wrong password: %x", status)
	}
	if status := l.bind(pdu.Receiver, systemID, password); status != data.ESME_ROK {
		t.Errorf("a receiver: %x", status)
	}
	if status := l.bind(pdu.Transceiver, systemID, password); status != data.ESME_RALYBND {
		t.Errorf("a second bind: %x", status)
	}
	if status, _ := l.submit(message("233244123456", "x")); status != data.ESME_RINVBNDSTS {
		t.Errorf("a receiver submits: %x", status)
	}
	if a := l.ask(pdu.NewEnquireLink()); a.GetHeader().CommandID != data.ENQUIRE_LINK_RESP {
		t.Errorf("%+v", a)
	}
	if a := l.ask(pdu.NewQuerySM()); !a.IsGNack() || a.GetHeader().CommandStatus != data.ESME_RINVCMDID {
		t.Errorf("a query: %+v", a)
	}
	if a := l.ask(pdu.NewUnbind()); a.GetHeader().CommandID != data.UNBIND_RESP || !l.closed() {
		t.Errorf("%+v", a)
	}
	l.conn.Close()
	clocktest.Await(t, "the unbind", func() bool { return s.Totals().Bound == 0 })
	if got := s.Totals(); got.Binds != 1 || got.NotBound != 3 || got.Accepted != 0 {
		t.Errorf("%+v", got)
	}
}

// An unreadable unit is refused. An impossible length ends the connection.
func TestSession_brokenUnits(t *testing.T) {
	s, _ := newCentre(t, Options{})
	l := bound(t, s, pdu.Transceiver)
	l.write(0, 0, 0, 20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9, 'a', 'b', 'c', 'd')
	if a, ok := l.read().(*pdu.SubmitSMResp); !ok || a.CommandStatus != data.ESME_RINVCMDLEN || a.SequenceNumber != 9 {
		t.Errorf("%+v", a)
	}
	if status, id := l.submit(message("233244123456", "x")); status != data.ESME_ROK || id == "" {
		t.Errorf("afterwards: %x", status)
	}
	for _, length := range []uint32{0, 15, 1 << 20, 1 << 31} {
		l := bound(t, s, pdu.Transceiver)
		l.write(binary.BigEndian.AppendUint32(nil, length)...)
		l.write(0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 7)
		if a := l.read(); !a.IsGNack() || a.GetHeader().CommandStatus != data.ESME_RINVCMDLEN || !l.closed() {
			t.Errorf("%d: %+v", length, a)
		}
	}
}

// No unit of a possible length stops the message centre.
func TestSession_survivesAnyUnit(t *testing.T) {
	s, _ := newCentre(t, Options{})
	ids := []uint32{1, 2, 4, 4, 4, 4, 5, 9, 0x15, 0x103, 0x80000000, 0x80000005, 0x80000015, 0x777}
	rapid.Check(t, func(t *rapid.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far)
		c := newSession(s, near)
		c.run()
		good := pdu.NewBuffer(nil)
		message("233244123456", "x").Marshal(good)
		for range 20 {
			body := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
			if rapid.Bool().Draw(t, "like a submit") {
				body = bytes.Clone(good.Bytes()[16:])
				body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "octet")
				body = append(body, rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "more")...)
			}
			unit := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
			unit = binary.BigEndian.AppendUint32(unit, rapid.SampledFrom(ids).Draw(t, "id"))
			unit = append(append(unit, 0, 0, 0, 0, 0, 0, 0, 1), body...)
			c.sends.Store(true)
			c.take(pdu.ParseHeader([16]byte(unit)), unit)
		}
	})
}

// The message centre accepts only the parameters that operators accept.
func TestSubmit_isStrict(t *testing.T) {
	s, _ := newCentre(t, Options{})
	l := bound(t, s, pdu.Transmitter)
	raw := func(coding data.Encoding, n int, udh pdu.UDH) *pdu.SubmitSM {
		p := message("233244123456", "x")
		_ = p.Message.SetMessageDataWithEncoding(bytes.Repeat([]byte{'a'}, n), coding)
		if udh != nil {
			p.Message.SetUDH(udh)
			p.EsmClass = data.SM_UDH_GSM
		}
		return p
	}
	part := pdu.UDH{pdu.NewIEConcatMessage(2, 1, 7)}
	wide := pdu.UDH{{ID: 8, Data: []byte{1, 2, 2, 1}}}
	for name, c := range map[string]struct {
		p    *pdu.SubmitSM
		want data.CommandStatusType
	}{
		"160 septets":                 {raw(data.GSM7BIT, 160, nil), data.ESME_ROK},
		"161 septets":                 {raw(data.GSM7BIT, 161, nil), data.ESME_RINVMSGLEN},
		"153 septets of a part":       {raw(data.GSM7BIT, 153, part), data.ESME_ROK},
		"154 septets of a part":       {raw(data.GSM7BIT, 154, part), data.ESME_RINVMSGLEN},
		"152 septets, wide reference": {raw(data.GSM7BIT, 152, wide), data.ESME_ROK},
		"153 septets, wide reference": {raw(data.GSM7BIT, 153, wide), data.ESME_RINVMSGLEN},
		"140 octets":                  {raw(data.UCS2, 140, nil), data.ESME_ROK},
		"142 octets":                  {raw(data.UCS2, 142, nil), data.ESME_RINVMSGLEN},
		"134 octets of a part":        {raw(data.UCS2, 134, part), data.ESME_ROK},
		"136 octets of a part":        {raw(data.UCS2, 136, part), data.ESME_RINVMSGLEN},
		"no recipient":                {message("", "x"), data.ESME_RINVDSTADR},
		"a word as recipient":         {message("MAKOLA", "x"), data.ESME_RINVDSTADR},
		"a long sender":               {from("ABCDEFGHIJKL"), data.ESME_RINVSRCADR},
		"the longest sender":          {from("ABCDEFGHIJK"), data.ESME_ROK},
		"a number as sender":          {from("233244123456"), data.ESME_ROK},
	} {
		if got, _ := l.submit(c.p); got != c.want {
			t.Errorf("%s: %x", name, got)
		}
	}
	// The centre itself cuts a text in message_payload into segments.
	p := message("233244000001", "")
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessagePayload, Data: bytes.Repeat([]byte{'b'}, 1000)})
	if status, _ := l.submit(p); status != data.ESME_ROK || len(s.s.Messages("233244000001")[0].Text) != 1000 {
		t.Errorf("%x, %v", status, s.s.Messages("233244000001"))
	}
}

func from(sender string) *pdu.SubmitSM {
	p := message("233244123456", "x")
	setAddress(&p.SourceAddr, sender)
	return p
}

// A receipt is sent only if the submit requested one.
func TestReceipt_onRequest(t *testing.T) {
	s, _ := newCentre(t, Options{})
	l := bound(t, s, pdu.Transceiver)
	s.Script("0244000002", sim.Plan{Then: sim.Failed, Reason: sim.NoWord})
	for _, c := range []struct {
		to    string
		wants byte
		word  string
	}{
		{"233240000001", 0, ""}, {"233240000001", 1, "DELIVRD"}, {"233240000001", 2, ""}, {"233240000001", 3, "DELIVRD"},
		{"233244000002", 0, ""}, {"233244000002", 1, "UNKNOWN"}, {"233244000002", 2, "UNKNOWN"}, {"233244000002", 3, ""},
	} {
		p := message(c.to, "x")
		p.RegisteredDelivery = c.wants
		_, id := l.submit(p)
		l.send(pdu.NewEnquireLink())
		got := ""
		answer := l.read()
		if d, ok := answer.(*pdu.DeliverSM); ok {
			got, _ = d.Message.GetMessage()
			l.answer(d, data.ESME_ROK)
			answer = l.read()
			if tlv := d.OptionalParameters[pdu.TagReceiptedMessageID]; tlv.String() != id || !strings.HasPrefix(got, "id:"+id+" ") {
				t.Errorf("%s, %q", id, got)
			}
		}
		if _, ok := answer.(*pdu.EnquireLinkResp); !ok {
			t.Fatalf("%+v", answer)
		}
		if !strings.Contains(got, c.word) || c.word == "" && got != "" {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func (l *line) answer(request pdu.PDU, status data.CommandStatusType) {
	l.t.Helper()
	a := pdu.NewDeliverSMResp().(*pdu.DeliverSMResp)
	a.CommandStatus, a.SequenceNumber = status, request.GetSequenceNumber()
	b := pdu.NewBuffer(nil)
	a.Marshal(b)
	l.write(b.Bytes()...)
}

// If the client refuses a receipt permanently, the receipt is dropped. If the client refuses it temporarily, it is
// sent again.
func TestReceipt_refusedByClient(t *testing.T) {
	s, c := newCentre(t, Options{})
	l := bound(t, s, pdu.Transceiver)
	l.submit(message("233240000001", "x"))
	l.answer(l.read(), data.ESME_RX_P_APPN)
	clocktest.Await(t, "the drop", func() bool { return s.Totals().Dropped == 1 })
	l.submit(message("233240000001", "y"))
	l.answer(l.read(), data.ESME_RX_T_APPN)
	clocktest.Await(t, "the refusal", func() bool { return s.Totals().Repeated == 1 && s.moments.planned() })
	c.Advance(retryReceipt)
	l.answer(l.read(), data.ESME_ROK)
	clocktest.Await(t, "the confirmation", func() bool { return s.Totals().Confirmed == 1 })
	if got := s.Totals(); got.Receipts != 3 {
		t.Errorf("%+v", got)
	}
}

// A client without any activity is disconnected.
func TestSession_silentClientEnds(t *testing.T) {
	s, c := newCentre(t, Options{EnquireEvery: time.Minute})
	l := bound(t, s, pdu.Transceiver)
	for range maxSilence {
		c.Advance(time.Minute)
		if p, ok := l.read().(*pdu.EnquireLink); !ok {
			t.Fatalf("%+v", p)
		}
	}
	c.Advance(time.Minute)
	if !l.closed() {
		t.Error("the connection is still there")
	}
}

// Parts of several messages with the same reference are joined, in any order and with repetitions, within bounded
// memory.
func TestText_joinsPartsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAssembly()
		n := rapid.IntRange(2, 6).Draw(t, "parts")
		var order []int
		for part := 1; part <= n; part++ {
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				order = append(order, part)
			}
		}
		last := rapid.IntRange(1, n).Draw(t, "last") // this part comes once, at the end
		rest := order[:0:0]
		for _, part := range rapid.Permutation(order).Draw(t, "order") {
			if part != last {
				rest = append(rest, part)
			}
		}
		for i, part := range append(rest, last) {
			whole := a.add("A", "1", joint{reference: 3, part: byte(part), parts: byte(n)}, plainText(fmt.Sprint(part)))
			if (whole != nil) != (i == len(rest)) {
				t.Fatalf("after %d of %v: %v", i, order, whole)
			}
			for j, c := range whole {
				if c.text() != fmt.Sprint(j+1) {
					t.Fatalf("%v", whole)
				}
			}
		}
		if len(a.open) != 0 {
			t.Fatal("something is left")
		}
	})
	a := newAssembly()
	a.add("A", "1", joint{reference: 1, part: 1, parts: 2}, plainText("old"))
	a.add("A", "1", joint{reference: 1, part: 1, parts: 2}, plainText("new"))
	if whole := a.add("A", "1", joint{reference: 1, part: 2, parts: 2}, plainText("x")); len(whole) != 2 || whole[0].text() != "new" {
		t.Errorf("a reference that came again: %v", whole)
	}
	for i := range 3 * maxOpen {
		a.add("A", fmt.Sprint(i), joint{part: 1, parts: 2}, plainText("x"))
	}
	if len(a.open) != maxOpen || a.add("A", fmt.Sprint(3*maxOpen-1), joint{part: 2, parts: 2}, plainText("y")) == nil {
		t.Errorf("%d are open", len(a.open))
	}
}

// The queue gives the same results as a slice.
func TestReceipts_queueMatchesSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := receiptQueue{limit: 1_000_000}
		var model []uint64
		next := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 80).Draw(t, "n"); rapid.SampledFrom([]string{"push", "pop", "unpop"}).Draw(t, "step") {
			case "push":
				for range n * 40 {
					next++
					q.push(receipt{id: next})
					model = append(model, next)
				}
			case "pop":
				for range min(n*30, len(model)) {
					if got := q.pop(); got.id != model[0] {
						t.Fatalf("%d, not %d", got.id, model[0])
					}
					model = model[1:]
				}
			case "unpop":
				owed := map[int32]receipt{}
				var ids []uint64
				for i := range n {
					next++
					owed[int32(i)] = receipt{id: next}
					ids = append(ids, next)
				}
				q.unpop(owed)
				model = append(ids, model...)
			}
			if q.len() != len(model) {
				t.Fatalf("%d, not %d", q.len(), len(model))
			}
		}
	})
	q := receiptQueue{limit: 3}
	if dropped := q.push(receipt{id: 1}, receipt{id: 2}, receipt{id: 3}, receipt{id: 4}, receipt{id: 5}); dropped != 2 || q.len() != 3 || q.pop().id != 3 {
		t.Errorf("%d dropped, %d left", dropped, q.len())
	}
}

// Texts in every alphabet are decoded. Texts that cannot be decoded are refused.
func TestText_readsEachAlphabet(t *testing.T) {
	for want, c := range map[string]content{
		"a€b":        {data.GSM7BIT, []byte{'a', 0x1b, 0x65, 'b'}},
		"\uFFFD":     {data.GSM7BIT, []byte{'a', 0x1b}},
		"é":          {data.LATIN1, []byte{0xe9}},
		"è":          {nil, []byte{0xe8}},
		"₵😀":         {data.UCS2, []byte{0x20, 0xb5, 0xd8, 0x3d, 0xde, 0x00}},
		"₵\uFFFD":    {data.UCS2, []byte{0x20, 0xb5, 0xd8, 0x3d}},
		"":           {data.GSM7BIT, nil},
		"ab\x00":     {data.BINARY8BIT1, []byte{'a', 'b', 0}},
		"plain text": plainText("plain text"),
	} {
		if got := c.text(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
