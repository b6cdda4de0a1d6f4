package smpp

import (
	"unicode"

	"github.com/makola/makola/internal/smstext"
)

// delivery is the kind of content of a deliver_sm.
type delivery int

const (
	matchable  delivery = iota // a receipt with an id
	unreadable                 // a receipt without an id, or no valid deliver_sm
	incoming                   // a message from a handset
	notice                     // an intermediate notification, or an acknowledgement by a handset
)

// delivered is a parsed deliver_sm.
type delivered struct {
	from, to    string
	esm, coding byte
	text        []byte
	optional    map[uint16][]byte
	kind        delivery // matchable: it is a receipt, and its text is not parsed yet
}

// readDelivery reads a deliver_sm. A text counts as a receipt only when the operator marks it as one, because a handset
// can send any text.
func readDelivery(body []byte) (d delivered) {
	f := fields{rest: body}
	f.cstring() // service_type, which some operators make too long
	f.octets(2)
	d.from = f.cstring()
	f.octets(2)
	d.to = f.cstring()
	d.esm = f.octet()
	f.octets(2)
	f.cstring()
	f.cstring()
	f.octets(2)
	d.coding = f.octet()
	f.octet()
	d.text = f.octets(int(f.octet()))
	if f.fault && len(d.text) == 0 {
		d.kind = unreadable
		return d
	}
	d.optional = f.optional()
	if payload := d.optional[tagPayload]; len(d.text) == 0 && len(payload) > 0 {
		d.text = payload
	}
	switch {
	case d.esm&esmTypeMask == esmReceipt || d.optional[tagReceiptedID] != nil:
	case d.esm&esmTypeMask != 0:
		d.kind = notice
	default:
		d.kind = incoming
	}
	return d
}

func decodeText(octets []byte, coding byte) string {
	if coding == dataCoding[smstext.UCS2] {
		return smstext.Decode(octets, smstext.UCS2)
	}
	return smstext.Decode(octets, smstext.Latin1) // in every other coding, the keys and values are ASCII
}

// printable replaces a control character by a visible character, so that different ids stay different.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return r + '\u2400'
	}
	return r
}
