package smsc

import (
	"bytes"
	"sync"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
)

// content is the text of one segment as it was sent.
type content struct {
	coding data.Encoding // nil: unknown, shown as Latin-1
	octets []byte
}

// text decodes a segment by itself, as a handset does that shows each part on arrival. It does not repair a character
// that the sender divided between two segments.
func (c content) text() string {
	coding := c.coding
	if coding == nil || coding == data.BINARY8BIT1 || coding == data.BINARY8BIT2 {
		coding = data.LATIN1
	}
	text, err := coding.Decode(c.octets)
	if err != nil {
		return "\uFFFD"
	}
	return text
}

// The capacity of one radio message, including the header that links parts.
const (
	radioOctets  = 140
	radioSeptets = 160
)

// fits reports whether a segment fits in one radio message. With GSM 7-bit, each octet is one septet. header is the
// length of the linking header in octets.
func (c content) fits(header int) bool {
	if c.coding == data.GSM7BIT || c.coding == data.ASCII {
		return len(c.octets)+(header*8+6)/7 <= radioSeptets
	}
	return len(c.octets)+header <= radioOctets
}

// joint identifies the part of a long message to which a segment belongs.
type joint struct {
	reference   uint16
	part, parts byte
	header      int // octets of its header in the radio message
}

// concatenationBytes is the length of the linking header, including its length octet.
const concatenationBytes = 6

// jointOf reads the header or the SAR parameters of a segment. A segment without them is part 1 of 1.
func jointOf(p *pdu.SubmitSM) joint {
	header := p.Message.UDH()
	if ie, ok := header.FindInfoElement(0x00); ok && len(ie.Data) == 3 {
		return joint{uint16(ie.Data[0]), ie.Data[2], ie.Data[1], header.UDHL()}.checked()
	}
	if ie, ok := header.FindInfoElement(0x08); ok && len(ie.Data) == 4 {
		return joint{uint16(ie.Data[0])<<8 | uint16(ie.Data[1]), ie.Data[3], ie.Data[2], header.UDHL()}.checked()
	}
	reference := p.OptionalParameters[pdu.TagSarMsgRefNum].Data
	total, number := p.OptionalParameters[pdu.TagSarTotalSegments].Data, p.OptionalParameters[pdu.TagSarSegmentSeqnum].Data
	if len(reference) == 2 && len(total) == 1 && len(number) == 1 {
		return joint{uint16(reference[0])<<8 | uint16(reference[1]), number[0], total[0], concatenationBytes}.checked()
	}
	return joint{part: 1, parts: 1, header: max(header.UDHL(), 0)}
}

// checked returns part 1 of 1 for an impossible part.
func (j joint) checked() joint {
	if j.part == 0 || j.part > j.parts {
		return joint{part: 1, parts: 1, header: j.header}
	}
	return j
}

// maxOpen is the maximum number of long messages that wait for further parts.
const maxOpen = 10_000

// assembly joins the parts of long messages.
type assembly struct {
	mu    sync.Mutex
	open  map[longKey]*longMessage
	order []opened // oldest first, including complete ones
}

type opened struct {
	key longKey
	m   *longMessage
}

type longKey struct {
	from, to  string
	reference uint16
	parts     byte
}

type longMessage struct {
	parts   []content
	missing int
}

func newAssembly() *assembly { return &assembly{open: map[longKey]*longMessage{}} }

// add stores a part and returns the parts of the whole message if none is missing. A part with the same text as
// before is a repetition. With another text it begins a new message that happens to have the same reference.
func (a *assembly) add(from, to string, j joint, c content) (whole []content) {
	if j.parts == 1 {
		return []content{c}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := longKey{from, to, j.reference, j.parts}
	m := a.open[key]
	if m != nil {
		before := m.parts[j.part-1].octets
		if before != nil && bytes.Equal(before, c.octets) {
			return nil
		}
		if before != nil {
			m = nil
		}
	}
	if m == nil {
		m = &longMessage{parts: make([]content, j.parts), missing: int(j.parts)}
		a.open[key] = m
		a.order = append(a.order, opened{key, m})
		a.forgetLocked()
	}
	m.parts[j.part-1] = c
	if m.missing--; m.missing > 0 {
		return nil
	}
	delete(a.open, key)
	whole, m.parts = m.parts, nil
	return whole
}

// forgetLocked drops the oldest messages whose other parts never came.
func (a *assembly) forgetLocked() {
	for len(a.order) > 2*maxOpen || len(a.open) > maxOpen {
		if first := a.order[0]; a.open[first.key] == first.m {
			delete(a.open, first.key)
		}
		a.order = a.order[1:]
	}
}
