// Package smstext cuts a text into the segments that a mobile operator sends and bills, and says what
// the contract charges for it. The two differ: the contract prices ceil(code points / 160) credits
// whatever the alphabet, an operator counts septets of the GSM 03.38 alphabet or UCS-2 units. A text
// that needs one character outside the alphabet (the cedi sign, an emoji) is sent as UCS-2, where a
// segment holds 70 units alone and 67 in a long message. No cut falls inside an escape sequence of the
// extension table or a surrogate pair. The package knows no protocol: a segment is octets without the
// header that joins the parts, which the SMPP session adds in the operator's way.
package smstext

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is the alphabet in which a text travels.
type Encoding string

// The encodings. Latin1 is used only where an operator asks for it.
const (
	GSM7   Encoding = "gsm7"
	Latin1 Encoding = "latin1"
	UCS2   Encoding = "ucs2"
)

// Sizes of a segment in units of its encoding: septets of GSM7, octets of Latin1, 16-bit units of UCS2.
const (
	gsm7Alone, gsm7Part     = 160, 153
	latin1Alone, latin1Part = 140, 134
	ucs2Alone, ucs2Part     = 70, 67
)

// MaxSegments is the most parts that one message may have: the header counts them in one octet.
const MaxSegments = 255

// creditCharacters is the contract's unit of price.
const creditCharacters = 160

// Credits is the contract's price of a text for one recipient: ceil(code points / 160), at least 1 for
// a text that is not empty.
func Credits(text string) int64 {
	n := int64(utf8.RuneCountInString(text))
	return (n + creditCharacters - 1) / creditCharacters
}

// Message is a text ready to be sent.
type Message struct {
	Encoding Encoding
	// Segments are the octets of each part: one octet a septet in GSM7 (unpacked, as operators take
	// it over SMPP), big-endian pairs in UCS2.
	Segments [][]byte
}

// Encode cuts a text in the smallest encoding that can carry it: GSM7, else UCS2. An empty text is one
// empty segment.
func Encode(text string) Message {
	if m, ok := EncodeAs(text, GSM7); ok {
		return m
	}
	m, _ := EncodeAs(text, UCS2)
	return m
}

// EncodeAs cuts a text in one encoding and says whether that encoding can carry it.
func EncodeAs(text string, e Encoding) (Message, bool) {
	units, width, ok := atoms(text, e)
	if !ok {
		return Message{}, false
	}
	alone, part := sizes(e)
	return Message{Encoding: e, Segments: cut(units, alone*width, part*width)}, true
}

// Decode gives the text of octets in an encoding, as a handset would show it.
func Decode(octets []byte, e Encoding) string {
	switch e {
	case GSM7:
		return decodeGSM7(octets)
	case Latin1:
		runes := make([]rune, len(octets))
		for i, b := range octets {
			runes[i] = rune(b)
		}
		return string(runes)
	default:
		units := make([]uint16, len(octets)/2)
		for i := range units {
			units[i] = uint16(octets[2*i])<<8 | uint16(octets[2*i+1])
		}
		return string(utf16.Decode(units))
	}
}

// Count gives the encoding and the number of segments of a text without keeping them.
func Count(text string) (Encoding, int) {
	m := Encode(text)
	return m.Encoding, len(m.Segments)
}

func sizes(e Encoding) (alone, part int) {
	switch e {
	case GSM7:
		return gsm7Alone, gsm7Part
	case Latin1:
		return latin1Alone, latin1Part
	default:
		return ucs2Alone, ucs2Part
	}
}

// atoms gives the octets that must stay together, one slice a character, and the octets of one unit.
func atoms(text string, e Encoding) (units [][]byte, width int, ok bool) {
	units = make([][]byte, 0, len(text))
	width = 1
	if e == UCS2 {
		width = 2
	}
	for _, r := range text {
		var atom []byte
		switch e {
		case GSM7:
			atom = gsm7(r)
		case Latin1:
			if r <= 0xff {
				atom = []byte{byte(r)}
			}
		default:
			for _, u := range utf16.AppendRune(nil, r) {
				atom = append(atom, byte(u>>8), byte(u))
			}
		}
		if atom == nil {
			return nil, 0, false
		}
		units = append(units, atom)
	}
	return units, width, true
}

// cut fills segments with whole atoms. Sizes are in octets.
func cut(units [][]byte, alone, part int) [][]byte {
	total := 0
	for _, u := range units {
		total += len(u)
	}
	size := part
	if total <= alone {
		size = alone
	}
	segments := [][]byte{make([]byte, 0, min(total, size))}
	for _, u := range units {
		last := &segments[len(segments)-1]
		if len(*last)+len(u) > size {
			segments = append(segments, make([]byte, 0, size))
			last = &segments[len(segments)-1]
		}
		*last = append(*last, u...)
	}
	return segments
}
