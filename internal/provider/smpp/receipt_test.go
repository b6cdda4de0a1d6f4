package smpp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/usertext"
)

func TestReceipt_beforeItsAnswer(t *testing.T) {
	sc := newCentre(t, nil)
	got := make(receipts, 9)
	c, _ := run(t, got.store, sc.bind())
	ready(t, c)
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		l.report(77, m.DestAddr.Address(), "id:early sub:001 dlvrd:001 submit date:2611221200 done date:2611221201 stat:DELIVRD err:000 text:Hello")
		go func() {
			if a := sc.nextAck(); a.sequence != 77 || a.status != data.ESME_ROK {
				t.Errorf("acknowledged as %+v", a)
			}
			l.accept(m, "early")
		}()
	})
	if o := hand(t, c, segment("hello")); o.UpstreamID != "early" {
		t.Errorf("%+v", o)
	}
	if r := got.next(t); r.UpstreamID != "early" || r.State != provider.Delivered || r.To != "233241234567" || r.Code != "000" || time.Since(r.At) > patience {
		t.Errorf("%+v", r)
	}
}

func TestID_formsAgree(t *testing.T) {
	for _, each := range []struct {
		submit, receipt IDForm
		answer, report  string
	}{
		{IDText, IDText, "Ab-1", "ab-1"},
		{IDHex, IDDecimal, "1F4", "500"},
		{IDHex, IDDecimal, "0x01f4", "0000000500"},
		{IDDecimal, IDHex, "500", "000001F4"},
		{IDHex, IDHex, "01F4", "1f4"},
		{IDHex, IDDecimal, "no number", "NO NUMBER"},
		{IDDecimal, IDDecimal, "123456789012345678901234567890", "0123456789012345678901234567890"},
	} {
		sc := newCentre(t, nil)
		b := sc.bind()
		b.SubmitIDs, b.ReceiptIDs = each.submit, each.receipt
		got := make(receipts, 9)
		c, _ := run(t, got.store, b)
		ready(t, c)
		sc.script(func(l *line, m *gosmpp.SubmitSM) {
			l.accept(m, each.answer)
			l.report(1, "233241234567", "stat:DELIVRD", gosmpp.Field{Tag: gosmpp.TagReceiptedMessageID, Data: append([]byte(each.report), 0)})
		})
		o := hand(t, c, segment("hello"))
		if r := got.next(t); r.UpstreamID != o.UpstreamID {
			t.Errorf("%s answers %q and reports %q: %q and %q", each.submit, each.answer, each.report, o.UpstreamID, r.UpstreamID)
		}
	}
}

func TestReceipt_acknowledgedAfterStore(t *testing.T) {
	sc := newCentre(t, nil)
	stored, goOn := make(chan struct{}, 9), make(chan struct{})
	var mu sync.Mutex
	tries := 0
	c, _ := run(t, func(context.Context, provider.Receipt) error {
		mu.Lock()
		tries++
		first := tries == 1
		mu.Unlock()
		if first {
			return errors.New("the database is away")
		}
		stored <- struct{}{}
		<-goOn
		return nil
	}, sc.bind())
	ready(t, c)
	l := sc.first()
	l.report(1, "233241234567", "id:a stat:DELIVRD")
	if a := sc.nextAck(); a.status != data.ESME_RX_T_APPN {
		t.Errorf("a receipt that was not stored is acknowledged as %v", a.status)
	}
	l.report(2, "233241234567", "id:a stat:DELIVRD")
	<-stored
	select {
	case a := <-sc.acks:
		t.Errorf("acknowledged before it was stored: %+v", a)
	default:
	}
	close(goOn)
	if a := sc.nextAck(); a.sequence != 2 || a.status != data.ESME_ROK {
		t.Errorf("%+v", a)
	}
}

func TestReceipts_storedTogether(t *testing.T) {
	const together = 50
	sc := newCentre(t, nil)
	inside, goOn := make(chan struct{}, together), make(chan struct{})
	c, _ := run(t, func(context.Context, provider.Receipt) error {
		inside <- struct{}{}
		<-goOn // none ends before all have begun, as in a group commit
		return nil
	}, sc.bind())
	ready(t, c)
	for i := range int32(together) {
		sc.first().report(i+1, "233241234567", fmt.Sprintf("id:%d stat:DELIVRD", i))
	}
	for range together {
		select {
		case <-inside:
		case <-time.After(patience):
			t.Fatal("receipts wait for one another")
		}
	}
	// Submits continue meanwhile.
	if o := hand(t, c, segment("hello")); o.Class != provider.Accepted {
		t.Errorf("%+v", o)
	}
	close(goOn)
	seen := map[int32]bool{}
	for range together {
		seen[sc.nextAck().sequence] = true
	}
	if len(seen) != together {
		t.Errorf("%d of %d acknowledged", len(seen), together)
	}
}

// The receipts of a connection are queued in the order in which they arrived.
func TestReceipts_keepTheirOrder(t *testing.T) {
	const many = 300
	sc := newCentre(t, nil)
	var mu sync.Mutex
	var queued []string
	c, _ := serve(t, Options{Binds: []Bind{sc.bind()}, Clock: clock.Real(), Log: slog.New(slog.DiscardHandler),
		Receipt: func(_ context.Context, r provider.Receipt) func() error {
			mu.Lock()
			defer mu.Unlock()
			queued = append(queued, r.UpstreamID)
			return func() error { return nil }
		}})
	ready(t, c)
	want := make([]string, many)
	for i := range int32(many) {
		want[i] = fmt.Sprint(i)
		sc.first().report(i+1, "233241234567", fmt.Sprintf("id:%d stat:DELIVRD", i))
	}
	for range many {
		sc.nextAck()
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(queued, want) {
		t.Errorf("queued in the order %v", queued)
	}
}

// Message centres write the fields of a receipt in many ways.
func TestReceiptFields_everySpelling(t *testing.T) {
	for _, c := range []struct{ text, id, stat, err string }{
		{"id:7 sub:001 dlvrd:001 submit date:2611221200 done date:2611221201 stat:DELIVRD err:000 text:Hello", "7", "DELIVRD", "000"},
		{"id: 7 sub: 001 dlvrd: 001 submit date: 2611221200 done date: 2611221201 stat: DELIVRD err: 000 text: Hello", "7", "DELIVRD", "000"},
		{"id : 7 sub : 001 submit date : 2611221200 stat : DELIVRD err : 000 text : id : 8 stat : UNDELIV", "7", "DELIVRD", "000"},
		{"id :7 stat :DELIVRD err :000", "7", "DELIVRD", "000"},
		{"ID:7\tSTAT:\tDELIVRD\r\nERR:\t000 TEXT: stat:UNDELIV", "7", "DELIVRD", "000"},
		{"  id:   7   stat:   DELIVRD  ", "7", "DELIVRD", ""},
		{"MsgID: 7 Status: DELIVRD Error: 000", "7", "DELIVRD", "000"},
		{"message_id:7 state:DELIVRD", "7", "DELIVRD", ""},
		{"id: stat: err:", "", "", ""},
		{"id: stat: DELIVRD", "", "DELIVRD", ""},
		{"id: 7 stat: done date: 2611221201 err: 005", "7", "", "005"},
		{"id:7 stat:DELIVRD err: submit date:2611221200", "7", "DELIVRD", ""},
		{"id: stat : DELIVRD", "", "DELIVRD", ""},
		{"id: a:b stat:DELIVRD", "a:b", "DELIVRD", ""},
		{"id:a:b stat:DELIVRD", "a:b", "DELIVRD", ""},
		{"id:7 id:8 stat:DELIVRD stat:UNDELIV", "7", "DELIVRD", ""},
		{"id:7 stat:DELIVRD err:000text:stat:UNDELIV", "7", "DELIVRD", "000"},
		{"id: id stat:DELIVRD", "id", "DELIVRD", ""},
		{"no receipt at all", "", "", ""},
		{": : :", "", "", ""},
	} {
		words := receiptWords(c.text)
		if words["id"] != c.id || words["stat"] != c.stat || words["err"] != c.err {
			t.Errorf("%q is read as %q", c.text, words)
		}
	}
}

func TestReceipt_notFromHandset(t *testing.T) {
	sc := newCentre(t, nil)
	got := make(receipts, 9)
	c, _ := run(t, got.store, sc.bind())
	ready(t, c)
	sc.first().send(deliver(5, "233241234567", "id:m1 stat:DELIVRD", 0)) // anybody can write this text in a message
	if a := sc.nextAck(); a.sequence != 5 || a.status != data.ESME_ROK {
		t.Errorf("%+v", a)
	}
	if len(got) != 0 {
		t.Errorf("a text from a handset counts as %+v", <-got)
	}
}

func TestSession_malformedPDUs(t *testing.T) {
	unit := func(id, status, sequence uint32, body string) []byte {
		return pdu{id: id, status: status, sequence: sequence, body: []byte(body)}.appendTo(nil)
	}
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, each := range map[string]struct {
		octets []byte
		after  string // what the centre sees afterwards
	}{
		"a deliver_sm of nothing":      {unit(deliverSM, 0, 9, ""), "ack"},
		"a deliver_sm cut short":       {unit(deliverSM, 0, 9, "\x00\x01\x01233241234567\x00\x01\x01Keje"), "ack"},
		"a receipt without an id":      {unit(deliverSM, 0, 9, "\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x0cstat:DELIVRD"), "ack"},
		"an unknown command":           {unit(0x00000abc, 0, 9, "what"), "nack"},
		"an answer to nothing":         {unit(submitSM|answerBit, 0, 12345, "x\x00"), "works"},
		"a nack of nothing":            {unit(genericNack, 3, 0, ""), "works"},
		"an answer without its id":     {unit(submitSM|answerBit, 0, 4711, ""), "works"},
		"a length of 5":                {append(length(5), make([]byte, 12)...), "closed"},
		"a length of 2 gigabytes":      {append(length(1<<31), make([]byte, 12)...), "closed"},
		"a unit that ends in between":  {append(length(100), make([]byte, 12)...), "cut"},
		"another protocol's greeting":  {[]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "closed"},
		"a request for a sign of life": {unit(enquireLink, 0, 9, ""), "enquire answered"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCentre(t, nil)
			c, _ := run(t, make(receipts, 9).store, sc.bind())
			ready(t, c)
			l := sc.first()
			l.raw(each.octets)
			switch each.after {
			case "ack":
				if a := sc.nextAck(); a.sequence != 9 {
					t.Errorf("%+v", a)
				}
			case "cut":
				_ = l.Close()
				sc.wait("closed")
			case "works":
			default:
				sc.wait(each.after)
			}
			for { // on the same connection or a new one
				if o := hand(t, c, segment("hello")); o.Class == provider.Accepted {
					break
				}
			}
		})
	}
}

func TestSubmit_answerWithoutID(t *testing.T) {
	sc := newCentre(t, nil)
	c, _ := run(t, make(receipts, 9).store, sc.bind())
	ready(t, c)
	for _, body := range []string{"", "\x00", "no end"} {
		sc.script(func(l *line, m *gosmpp.SubmitSM) {
			l.raw(pdu{id: submitSM | answerBit, sequence: uint32(m.SequenceNumber), body: []byte(body)}.appendTo(nil))
		})
		if o := hand(t, c, segment("hello")); o.Class != provider.Accepted || o.UpstreamID != "" {
			t.Errorf("an answer of %q: %+v", body, o)
		}
	}
	sc.script(func(l *line, m *gosmpp.SubmitSM) {
		l.raw(pdu{id: genericNack, status: 3, sequence: uint32(m.SequenceNumber)}.appendTo(nil))
	})
	if o := hand(t, c, segment("hello")); o.Class != provider.Rejected {
		t.Errorf("a nack: %+v", o)
	}
}

// An id may have octets that are not text. It is stored, and its receipt finds it. Earlier, such an id made a whole
// step fail on PostgreSQL.
func TestID_anyOctets(t *testing.T) {
	head := "\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00"
	seen := map[string]string{}
	for name, id := range map[string]string{
		"no UTF-8":             strings.Repeat("\xff", 22),
		"half a letter":        "a\xc3",
		"letters of UTF-8":     "é\u0345ɛ",
		"cut in a letter":      "a" + strings.Repeat("é", 31) + "x",
		"longer than is kept":  strings.Repeat("\xe9", 64),
		"control octets":       "a\x01\x7f\x1bb",
		"other control octets": "a\x02\x7f\x1bb",
		"controls of Latin-1":  "\x80\x85\x9f",
		"an unbroken space":    "a\xa0b",
		"capitals of Latin-1":  "\xc9\xd8",
	} {
		answer := submitOutcome(pdu{id: submitSM | answerBit, body: append([]byte(id), 0)}, Bind{}.withDefaults()).UpstreamID
		if answer == "" || !usertext.Storable(answer) || len(answer) > longestID {
			t.Errorf("%s: the answer's id is %q", name, answer)
		}
		if other, twice := seen[answer]; twice {
			t.Errorf("%s and %s are one: %q", name, other, answer)
		}
		seen[answer] = name
		tlv := append([]byte(head+"\x00\x00\x1e\x00"), byte(len(id)+1))
		text := "id:" + id + " stat:DELIVRD"
		for _, body := range []string{string(tlv) + id + "\x00", head + string(rune(len(text))) + text} {
			if r, kind := parseReceipt(readDelivery([]byte(body)), Bind{}.withDefaults(), noon); kind != matchable || r.UpstreamID != answer {
				t.Errorf("%s: the answer's id is %q and the receipt's %q", name, answer, r.UpstreamID)
			}
		}
	}
}

func TestReceipt_allShapes(t *testing.T) {
	body := func(from, to string, esm, coding byte, text []byte, more ...byte) []byte {
		b := append([]byte("a service type that is far too long\x00\x01\x01"), from...)
		b = append(append(b, 0, 1, 1), to...)
		b = append(b, 0, esm, 0, 0)
		b = append(b, "odd date\x00\x00\x00\x00"...)
		return append(append(append(b, coding, 0, byte(len(text))), text...), more...)
	}
	tlv := func(tag uint16, value ...byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, tag)
		return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
	}
	ucs2 := smstext.Message{}
	ucs2, _ = smstext.EncodeAs("id:u1 stat:UNDELIV err:0A1", smstext.UCS2)
	longer, _ := smstext.EncodeAs("id:u2 "+strings.Repeat("Ⱥ", 50)+"Text: id:u3", smstext.UCS2) // Ⱥ needs more octets in lower case
	for name, each := range map[string]struct {
		body []byte
		want provider.Receipt
		kind delivery
	}{
		"plain":           {body("233241234567", "K", 4, 0, []byte("id:7 sub:001 dlvrd:001 submit date:x done date:y stat:DELIVRD err:000 Text:Hello")), provider.Receipt{UpstreamID: "7", State: provider.Delivered, Code: "000", To: "233241234567"}, matchable},
		"capitals":        {body("+233241234567", "K", 4, 0, []byte("ID:AB7 STAT:Delivrd ERR:001")), provider.Receipt{UpstreamID: "ab7", State: provider.Delivered, Code: "001", To: "233241234567"}, matchable},
		"spaces":          {body("233241234567", "K", 4, 0, []byte("id: 7 sub: 001 stat: Undeliverable err: 012 text: x")), provider.Receipt{UpstreamID: "7", State: provider.DeliveryFailed, Code: "012", To: "233241234567"}, matchable},
		"a lying text":    {body("233241234567", "K", 4, 0, []byte("id:7 stat:UNDELIV text: id:8 stat:DELIVRD")), provider.Receipt{UpstreamID: "7", State: provider.DeliveryFailed, To: "233241234567"}, matchable},
		"turned round":    {body("Kejetia", "233241234567", 4, 0, []byte("id:7 stat:REJECTD")), provider.Receipt{UpstreamID: "7", State: provider.DeliveryRejected, To: "233241234567"}, matchable},
		"no number":       {body("", "", 4, 0, []byte("id:7 stat:ENROUTE")), provider.Receipt{UpstreamID: "7", State: provider.DeliveryPending}, matchable},
		"parameters":      {body("233241234567", "K", 0, 0, nil, append(tlv(0x1e, 'z', '9', 0), append(tlv(0x427, 5), tlv(0x423, 3, 1, 2)...)...)...), provider.Receipt{UpstreamID: "z9", State: provider.DeliveryFailed, Code: "258", To: "233241234567"}, matchable},
		"octets behind":   {body("233241234567", "K", 0, 0, nil, append(tlv(0x1e, 'z', '9', 0, 'x', 0), tlv(0x427, 2)...)...), provider.Receipt{UpstreamID: "z9", State: provider.Delivered, To: "233241234567"}, matchable},
		"a NUL in a text": {body("233241234567", "K", 4, 0, []byte("id:7\x00x stat:DELIVRD")), provider.Receipt{UpstreamID: "7", State: provider.Delivered, To: "233241234567"}, matchable},
		"only a NUL":      {body("233241234567", "K", 4, 0, []byte("id:\x007 stat:DELIVRD")), provider.Receipt{}, unreadable},
		"payload":         {body("233241234567", "K", 4, 0, nil, tlv(0x424, []byte("id:7 stat:EXPIRED")...)...), provider.Receipt{UpstreamID: "7", State: provider.DeliveryExpired, To: "233241234567"}, matchable},
		"two octets":      {body("233241234567", "K", 4, 8, ucs2.Segments[0]), provider.Receipt{UpstreamID: "u1", State: provider.DeliveryFailed, Code: "0A1", To: "233241234567"}, matchable},
		"longer in lower": {body("233241234567", "K", 4, 8, longer.Segments[0]), provider.Receipt{UpstreamID: "u2", State: provider.DeliveryUnknown, To: "233241234567"}, matchable},
		"unknown word":    {body("233241234567", "K", 4, 0, []byte("id:7 stat:WHATEVER")), provider.Receipt{UpstreamID: "7", State: provider.DeliveryUnknown, To: "233241234567"}, matchable},
		"odd parameter":   {body("233241234567", "K", 4, 0, []byte("id:7 stat:DELIVRD"), 0x04, 0x27, 0xff, 0xff, 1), provider.Receipt{UpstreamID: "7", State: provider.Delivered, To: "233241234567"}, matchable},
		"intermediate":    {body("233241234567", "K", 0x20, 0, []byte("id:7 stat:ENROUTE")), provider.Receipt{}, notice},
		"from a handset":  {body("233241234567", "K", 0, 0, []byte("id:7 stat:DELIVRD")), provider.Receipt{}, incoming},
		"without an id":   {body("233241234567", "K", 4, 0, []byte("stat:DELIVRD")), provider.Receipt{}, unreadable},
		"nothing":         {nil, provider.Receipt{}, unreadable},
		"an id of spaces": {body("233241234567", "K", 4, 0, []byte("id: stat:DELIVRD")), provider.Receipt{}, unreadable},
	} {
		got, kind := parseReceipt(readDelivery(each.body), Bind{}.withDefaults(), noon)
		if kind != each.kind {
			t.Errorf("%s: kind %d, expected %d; %+v", name, kind, each.kind, got)
			continue
		}
		each.want.At = noon
		if kind == matchable && got != each.want {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, each.want)
		}
	}
}
