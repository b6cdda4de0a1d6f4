package smpp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/makola/makola/internal/smstext"
)

// Command ids (section 5.1.2.1). The id of a response is the id of its request with the top bit set.
const (
	genericNack     uint32 = 0x80000000
	bindReceiver    uint32 = 0x00000001
	bindTransmitter uint32 = 0x00000002
	submitSM        uint32 = 0x00000004
	deliverSM       uint32 = 0x00000005
	unbind          uint32 = 0x00000006
	bindTransceiver uint32 = 0x00000009
	enquireLink     uint32 = 0x00000015
	answerBit       uint32 = 0x80000000
)

// Command statuses that the session handles individually (section 5.1.3).
const (
	statusOK         uint32 = 0x00000000
	statusInvalidCmd uint32 = 0x00000003
	statusSystem     uint32 = 0x00000008
	statusQueueFull  uint32 = 0x00000014
	statusThrottled  uint32 = 0x00000058
	statusTryLater   uint32 = 0x00000064 // ESME_RX_T_APPN: a temporary error, send again
	statusUnknown    uint32 = 0x000000ff // ESME_RUNKNOWNERR
)

// bindStatuses are the statuses of a refused bind.
var bindStatuses = map[uint32]string{
	0x00000001: "ESME_RINVMSGLEN: invalid message length", 0x00000002: "ESME_RINVCMDLEN: invalid command length",
	0x00000003: "ESME_RINVCMDID: invalid command", 0x00000004: "ESME_RINVBNDSTS: wrong bind status",
	0x00000005: "ESME_RALYBND: already bound", 0x00000008: "ESME_RSYSERR: system error", 0x0000000d: "ESME_RBINDFAIL: bind failed",
	0x0000000e: "ESME_RINVPASWD: invalid password", 0x0000000f: "ESME_RINVSYSID: invalid system id",
	0x00000014: "ESME_RMSGQFUL: queue full", 0x00000053: "ESME_RINVSYSTYP: invalid system type",
	0x00000058: "ESME_RTHROTTLED: throttled", 0x000000ff: "ESME_RUNKNOWNERR: unknown error",
}

// dataCoding has the values of section 5.2.19. 0 is the message centre's default alphabet, which is GSM 03.38 at
// operators.
var dataCoding = map[smstext.Encoding]byte{smstext.GSM7: 0, smstext.Latin1: 3, smstext.UCS2: 8}

// bindStatus returns a status with its name in the specification, if it has one.
func bindStatus(status uint32) string {
	if name := bindStatuses[status]; name != "" {
		return fmt.Sprintf("0x%08x, %s", status, name)
	}
	return fmt.Sprintf("0x%08x, which the specification does not name for a bind", status)
}

// Optional parameters (section 5.3.2).
const (
	tagReceiptedID  uint16 = 0x001e
	tagSARReference uint16 = 0x020c
	tagSARTotal     uint16 = 0x020e
	tagSARPart      uint16 = 0x020f
	tagPayload      uint16 = 0x0424
	tagMessageState uint16 = 0x0427
	tagNetworkError uint16 = 0x0423
)

const (
	headerBytes  = 16
	maxPDUBytes  = 64 << 10 // longer than any real PDU; more means a broken stream
	version34    = 0x34
	esmReceipt   = 0x04
	esmTypeMask  = 0x3c
	esmUDH       = 0x40
	alphanumeric = 5 // type of number of a sender ID
	intlNumber   = 1 // type of number and numbering plan of an MSISDN
)

// pdu is one protocol data unit: the fields of the header, and the body.
type pdu struct {
	id, status, sequence uint32
	body                 []byte
}

var errBrokenStream = errors.New("smpp: the peer's stream is broken")

// readPDU reads one unit. An impossible length means that the stream is broken and nothing after it can be read.
func readPDU(r io.Reader) (pdu, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return pdu{}, err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length < headerBytes || length > maxPDUBytes {
		return pdu{}, fmt.Errorf("%w: a PDU of %d octets", errBrokenStream, length)
	}
	p := pdu{
		id:       binary.BigEndian.Uint32(header[4:]),
		status:   binary.BigEndian.Uint32(header[8:]),
		sequence: binary.BigEndian.Uint32(header[12:]),
		body:     make([]byte, length-headerBytes),
	}
	_, err := io.ReadFull(r, p.body)
	return p, err
}

// appendTo appends the unit to the bytes of to.
func (p pdu) appendTo(to []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(headerBytes+len(p.body)))
	to = binary.BigEndian.AppendUint32(to, p.id)
	to = binary.BigEndian.AppendUint32(to, p.status)
	to = binary.BigEndian.AppendUint32(to, p.sequence)
	return append(to, p.body...)
}

// answer returns the empty response to a request.
func (p pdu) answer(status uint32) pdu {
	a := pdu{id: p.id | answerBit, status: status, sequence: p.sequence}
	if p.id == deliverSM {
		a.body = []byte{0} // message_id, unused and empty
	}
	return a
}

// cstring appends a text and its terminator. It cuts the text to the length of the field.
func cstring(to []byte, s string, limit int) []byte {
	s = s[:min(len(s), limit-1)]
	if i := bytes.IndexByte([]byte(s), 0); i >= 0 {
		s = s[:i]
	}
	return append(append(to, s...), 0)
}

// fields reads the fields of a body in order. After an error all further fields are empty.
type fields struct {
	rest  []byte
	fault bool
}

func (f *fields) cstring() string {
	i := bytes.IndexByte(f.rest, 0)
	if i < 0 {
		f.fault = true
		f.rest = nil
		return ""
	}
	s := string(f.rest[:i])
	f.rest = f.rest[i+1:]
	return s
}

func (f *fields) octet() byte {
	if len(f.rest) == 0 {
		f.fault = true
		return 0
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return b
}

func (f *fields) octets(n int) []byte {
	if n > len(f.rest) {
		f.fault = true
		n = len(f.rest)
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

// optional reads the parameters after the fixed fields. It skips a truncated parameter, because a receipt is usable
// without it.
func (f *fields) optional() map[uint16][]byte {
	found := map[uint16][]byte{}
	for len(f.rest) >= 4 {
		tag, length := binary.BigEndian.Uint16(f.rest), int(binary.BigEndian.Uint16(f.rest[2:]))
		if 4+length > len(f.rest) {
			break
		}
		found[tag] = f.rest[4 : 4+length]
		f.rest = f.rest[4+length:]
	}
	return found
}
