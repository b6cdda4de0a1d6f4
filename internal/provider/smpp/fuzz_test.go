package smpp

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/usertext"
)

// FuzzReadPDU checks that the reader returns an error for any bad stream and never panics. It never allocates more than the
// maximum length of a unit. A unit that was read is written back unchanged.
func FuzzReadPDU(f *testing.F) {
	f.Add(pdu{id: submitSM | answerBit, sequence: 7, body: []byte("id\x00")}.appendTo(nil))
	f.Add(pdu{id: enquireLink, sequence: 1}.appendTo(nil))
	f.Add([]byte{0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			before := len(stream) - r.Len()
			p, err := readPDU(r)
			if err != nil {
				return
			}
			read := stream[before : len(stream)-r.Len()]
			if len(read) > maxPDUBytes || !bytes.Equal(p.appendTo(nil), read) {
				t.Fatalf("%x is read as %+v", read, p)
			}
		}
	})
}

// FuzzParseReceipt checks that the parser accepts any body of a deliver_sm without a panic, and that every receipt
// that it finds can be stored.
func FuzzParseReceipt(f *testing.F) {
	f.Add([]byte("\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x11id:7 stat:DELIVRD"), byte(0))
	f.Add([]byte("\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x08\x00\x04\x00i\x00d"), byte(1))
	f.Add([]byte("\x00\x01\x01x\x00\x01\x01K\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x1e\x00\x03ab\x00"), byte(2))
	f.Add([]byte("\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x15id : 7 stat : DELIVRD"), byte(1))
	longer := bytes.Repeat([]byte{0x02, 0x3a}, 60) // Ⱥ needs more octets in lower case
	longer = append(longer, "\x00t\x00e\x00x\x00t\x00:"...)
	f.Add(append([]byte("\x00\x01\x01233241234567\x00\x01\x01K\x00\x04\x00\x00\x00\x00\x00\x00\x08\x00\x82"), longer...), byte(0))
	f.Fuzz(func(t *testing.T, body []byte, form byte) {
		b := Bind{ReceiptIDs: []IDForm{IDText, IDHex, IDDecimal}[form%3]}
		r, kind := parseReceipt(readDelivery(body), b, noon)
		if kind != matchable {
			return
		}
		if r.UpstreamID == "" || !usertext.Storable(r.UpstreamID) || len(r.UpstreamID) > 128 || len([]rune(r.Code)) > 200 {
			t.Fatalf("%q is read as %+v", body, r)
		}
		if r.To != "" {
			if again, err := msisdn.Parse(string(r.To)); err != nil || again != r.To {
				t.Fatalf("%q is of the number %q", body, r.To)
			}
		}
	})
}

// FuzzReceiptSpelling checks that white space around the colons and the case of the keys do not change a receipt.
// Neither does the text of the message.
func FuzzReceiptSpelling(f *testing.F) {
	f.Add("7", "DELIVRD", "000", "id:8 stat:UNDELIV", uint32(0))
	f.Add("MC-1a2b", "UNDELIV", "", "Hello", uint32(0x1234abcd))
	f.Add("a:b", "done", "x", " : text : id : ", uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, id, stat, code, text string, style uint32) {
		for _, value := range []string{id, stat, code} {
			name, _, _ := strings.Cut(strings.ToLower(value), ":")
			if strings.ContainsAny(value, " \t\n\v\f\r") || strings.HasPrefix(value, ":") || receiptKeys[name] != "" || indexFold(value, "text") >= 0 {
				return // the text would be a field itself
			}
		}
		field := func(key, value string) string {
			spaces := []string{"", " ", "\t", "  "}
			before, behind := spaces[style&3], spaces[style>>2&3]
			if style>>4&1 == 1 {
				key = strings.ToUpper(key)
			}
			style = style>>5 | style<<27
			if value == "" {
				return key + ":"
			}
			return key + before + ":" + behind + value
		}
		words := receiptWords(field("id", id) + " " + field("sub", "001") + "\t" + field("submit date", "2611221200") + " " +
			field("stat", stat) + " " + field("err", code) + "  " + field("text", text))
		if words["id"] != id || words["stat"] != stat || words["err"] != code {
			t.Fatalf("%q, %q, %q are read as %q", id, stat, code, words)
		}
	})
}

// FuzzSubmitBody checks that the other codec reads every submit that the client writes, with the same content.
func FuzzSubmitBody(f *testing.F) {
	f.Add("Kejetia", "hello", true)
	f.Add("233302123456", "ɛyɛ €[]", false)
	f.Add("a\x00b", "a text that is so long that it needs more than one part: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true)
	f.Fuzz(func(t *testing.T, from, text string, udh bool) {
		b := Bind{Concatenation: SAR}
		if udh {
			b.Concatenation = UDH
		}
		m := smstext.Encode(text)
		if len(m.Segments) > 10 {
			return
		}
		for i, octets := range m.Segments {
			s := provider.Segment{From: from, To: "233241234567", Encoding: m.Encoding, Octets: octets, Part: i + 1, Parts: len(m.Segments), Group: 99}
			unit := pdu{id: submitSM, sequence: 1, body: submitBody(b, s)}.appendTo(nil)
			read, err := gosmpp.Parse(bytes.NewReader(unit))
			if err != nil {
				t.Fatalf("part %d of %q from %q: %v", i+1, text, from, err)
			}
			got, ok := read.(*gosmpp.SubmitSM)
			if !ok {
				t.Fatalf("read as %T", read)
			}
			if back, err := got.Message.GetMessageData(); err != nil || !bytes.Equal(back, octets) || got.DestAddr.Address() != "233241234567" {
				t.Fatalf("part %d of %q from %q is read as %x, %v", i+1, text, from, back, errors.Join(err))
			}
		}
	})
}
