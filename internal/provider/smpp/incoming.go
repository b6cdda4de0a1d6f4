package smpp

import (
	"encoding/binary"
	"strings"

	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

// Information elements of a user data header (3GPP TS 23.040, section 9.2.3.24).
const (
	elementConcat8  = 0x00 // reference of one octet, parts, part
	elementConcat16 = 0x08 // reference of two octets, parts, part
)

// longestAddress is the number of octets of an address that are kept. It is SMPP's maximum length (section
// 5.2.8).
const longestAddress = 21

// parseIncoming reads a text from a handset. The text may be one of several parts, joined by a user data header
// or by the SAR parameters. If the header is truncated or its part number is invalid, the text counts as
// complete.
func parseIncoming(d delivered) provider.Incoming {
	m := provider.Incoming{From: address(d.from), To: address(d.to), Encoding: encodingOf(d.coding), Octets: d.text, Part: 1, Parts: 1}
	if d.esm&esmUDH != 0 {
		m.Octets = readHeader(&m, d.text)
		return m
	}
	reference, parts, part := d.optional[tagSARReference], d.optional[tagSARTotal], d.optional[tagSARPart]
	if len(reference) == 2 && len(parts) == 1 && len(part) == 1 {
		join(&m, int(binary.BigEndian.Uint16(reference)), parts[0], part[0])
	}
	return m
}

// readHeader reads the user data header before a text and returns the octets after the header.
func readHeader(m *provider.Incoming, text []byte) []byte {
	if len(text) == 0 || 1+int(text[0]) > len(text) {
		return text
	}
	header, rest := text[1:1+int(text[0])], text[1+int(text[0]):]
	for len(header) >= 2 && 2+int(header[1]) <= len(header) {
		element, value := header[0], header[2:2+int(header[1])]
		switch {
		case element == elementConcat8 && len(value) == 3:
			join(m, int(value[0]), value[1], value[2])
		case element == elementConcat16 && len(value) == 4:
			join(m, int(binary.BigEndian.Uint16(value)), value[2], value[3])
		}
		header = header[2+len(value):]
	}
	return rest
}

// join marks m as one of several parts.
func join(m *provider.Incoming, reference int, parts, part byte) {
	if part >= 1 && part <= parts && parts > 1 {
		m.Reference, m.Parts, m.Part = reference, int(parts), int(part)
	}
}

// encodingOf returns the encoding of a data_coding (section 5.2.19). If any of the four high bits is set, the groups
// of 3GPP TS 23.038 apply. Encodings that no handset in Ghana sends are Binary.
func encodingOf(coding byte) smstext.Encoding {
	switch group := coding >> 4; {
	case coding == 0:
		return smstext.GSM7
	case coding == 1 || coding == 3: // ASCII is a part of Latin-1
		return smstext.Latin1
	case coding == 8 || group == 0xe:
		return smstext.UCS2
	case group == 0xc || group == 0xd || group == 0xf && coding&4 == 0:
		return smstext.GSM7
	case group >= 1 && group <= 3: // the general group, without compression
		return []smstext.Encoding{smstext.GSM7, smstext.Binary, smstext.UCS2, smstext.Binary}[coding>>2&3]
	}
	return smstext.Binary
}

// address returns an address in stored form.
func address(octets string) string {
	return strings.TrimSpace(strings.Map(printable, decodeText([]byte(octets[:min(len(octets), longestAddress)]), 0)))
}
