package smpp

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/linxGnu/gosmpp/data"
	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

// deliverBody is the body of a deliver_sm.
func deliverBody(from, to string, esm, coding byte, text string, more ...byte) []byte {
	b := append([]byte("\x00\x01\x01"), from...)
	b = append(append(b, "\x00\x01\x01"...), to...)
	b = append(b, 0, esm, 0, 0, 0, 0, 0, 0, coding, 0, byte(len(text)))
	return append(append(b, text...), more...)
}

func TestIncoming_allShapes(t *testing.T) {
	tlv := func(tag uint16, value ...byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, tag)
		return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
	}
	sar := func(reference uint16, parts, part byte) []byte {
		b := tlv(tagSARReference, byte(reference>>8), byte(reference))
		return append(append(b, tlv(tagSARTotal, parts)...), tlv(tagSARPart, part)...)
	}
	const ama, code = "233241234567", "1400"
	one := provider.Incoming{From: ama, To: code, Encoding: smstext.GSM7, Octets: []byte("hello"), Part: 1, Parts: 1}
	with := func(change func(*provider.Incoming)) provider.Incoming {
		m := one
		change(&m)
		return m
	}
	joined := with(func(m *provider.Incoming) { m.Reference, m.Parts, m.Part = 7, 3, 2 })
	for name, each := range map[string]struct {
		body []byte
		want provider.Incoming
	}{
		"plain":               {deliverBody(ama, code, 0, 0, "hello"), one},
		"header of 8 bits":    {deliverBody(ama, code, esmUDH, 0, "\x05\x00\x03\x07\x03\x02hello"), joined},
		"header of 16 bits":   {deliverBody(ama, code, esmUDH, 0, "\x06\x08\x04\x00\x07\x03\x02hello"), joined},
		"a port before it":    {deliverBody(ama, code, esmUDH, 0, "\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x07\x03\x02hello"), joined},
		"SAR":                 {deliverBody(ama, code, 0, 0, "hello", sar(7, 3, 2)...), joined},
		"part 0":              {deliverBody(ama, code, esmUDH, 0, "\x05\x00\x03\x07\x03\x00hello"), one},
		"part 4 of 3":         {deliverBody(ama, code, 0, 0, "hello", sar(7, 3, 4)...), one},
		"no parts":            {deliverBody(ama, code, 0, 0, "hello", sar(7, 0, 0)...), one},
		"a header cut short":  {deliverBody(ama, code, esmUDH, 0, "\x7fhello"), with(func(m *provider.Incoming) { m.Octets = []byte("\x7fhello") })},
		"an element too long": {deliverBody(ama, code, esmUDH, 0, "\x02\x00\x09hello"), one},
		"payload":             {deliverBody(ama, code, 0, 0, "", tlv(tagPayload, []byte("hello")...)...), one},
		"UCS-2":               {deliverBody(ama, code, 0, 8, "\x20\xb5"), with(func(m *provider.Incoming) { m.Encoding, m.Octets = smstext.UCS2, []byte("\x20\xb5") })},
		"class 0":             {deliverBody(ama, code, 0, 0xf0, "hello"), one},
		"class 0 of 8 bits":   {deliverBody(ama, code, 0, 0xf5, "hello"), with(func(m *provider.Incoming) { m.Encoding = smstext.Binary })},
		"UCS-2 of class 0":    {deliverBody(ama, code, 0, 0x18, "hi"), with(func(m *provider.Incoming) { m.Encoding, m.Octets = smstext.UCS2, []byte("hi") })},
		"ASCII":               {deliverBody(ama, code, 0, 1, "hello"), with(func(m *provider.Incoming) { m.Encoding = smstext.Latin1 })},
		"binary":              {deliverBody(ama, code, 0, 4, "hello"), with(func(m *provider.Incoming) { m.Encoding = smstext.Binary })},
		"a long address":      {deliverBody(strings.Repeat("9", 60), "a\x01b", 0, 0, "hello"), with(func(m *provider.Incoming) { m.From, m.To = strings.Repeat("9", longestAddress), "a\u2401b" })},
	} {
		d := readDelivery(each.body)
		if got := parseIncoming(d); d.kind != incoming || got.From != each.want.From || got.To != each.want.To || got.Encoding != each.want.Encoding ||
			string(got.Octets) != string(each.want.Octets) || got.Part != each.want.Part || got.Parts != each.want.Parts || got.Reference != each.want.Reference {
			t.Errorf("%s: kind %d\n%+v, want\n%+v", name, d.kind, got, each.want)
		}
	}
}

// A text is acknowledged after it is stored. A refused text arrives again in another session.
func TestIncoming_acknowledgedAfterStore(t *testing.T) {
	sc := newCentre(t, nil)
	got := make(chan provider.Incoming, 9)
	tries := 0
	c, _ := serve(t, Options{Binds: []Bind{sc.bind()}, Clock: clock.Real(), Log: slog.New(slog.DiscardHandler),
		Receipt: func(context.Context, provider.Receipt) func() error { return func() error { return nil } },
		Incoming: func(_ context.Context, m provider.Incoming) func() error {
			got <- m
			return func() error {
				if tries++; tries == 1 {
					return errors.New("the database is away")
				}
				return nil
			}
		}})
	ready(t, c)
	l := sc.first()
	l.send(deliver(5, "233241234567", "hello", 0))
	if a := sc.nextAck(); a.sequence != 5 || a.status != data.ESME_RX_T_APPN {
		t.Errorf("%+v", a)
	}
	l.send(deliver(6, "233241234567", "hello", 0))
	if a := sc.nextAck(); a.sequence != 6 || a.status != data.ESME_ROK {
		t.Errorf("%+v", a)
	}
	one, two := <-got, <-got
	if one.From != "233241234567" || one.To != "Kejetia" || string(one.Octets) != "hello" || one.Session == two.Session || one.Sequence != 5 || two.Sequence != 6 {
		t.Errorf("%+v, then %+v", one, two)
	}
	// An acknowledgement by a handset is no text, and is acknowledged.
	l.send(deliver(7, "233241234567", "read", 0x08, gosmpp.Field{Tag: gosmpp.TagUserMessageReference, Data: []byte{0, 1}}))
	if a := sc.nextAck(); a.sequence != 7 || a.status != data.ESME_ROK || len(got) != 0 {
		t.Errorf("%+v, and %d texts", a, len(got))
	}
}

// FuzzParseIncoming checks that no body of a deliver_sm breaks the parser, and that the number of a part is within the number
// of parts.
func FuzzParseIncoming(f *testing.F) {
	f.Add(deliverBody("233241234567", "1400", esmUDH, 0, "\x05\x00\x03\x07\x03\x02hello"))
	f.Add(deliverBody("233241234567", "1400", esmUDH, 8, "\x06\x08\x04\x00\x07\xff\xff"))
	f.Add(deliverBody("", "", esmUDH, 0xf5, "\xff\x00\x03"))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := readDelivery(body)
		if d.kind != incoming {
			return
		}
		if m := parseIncoming(d); m.Part < 1 || m.Part > m.Parts || m.Parts > 255 || m.Reference > 0xffff || len(m.Octets) > len(body) || len([]rune(m.From)) > longestAddress {
			t.Fatalf("%q is read as %+v", body, m)
		}
	})
}
