// Package smstext cuts a text into the segments that a mobile operator sends and bills, and returns the contract's
// charge for it. The two differ: the contract prices ceil(code points / 160) credits for any alphabet. An operator
// counts septets of the GSM 03.38 alphabet or UCS-2 units.
//
// A text that needs one character outside the alphabet (the cedi sign, an emoji) is sent as UCS-2. A segment then
// holds 70 units, or 67 in a long message. No cut falls inside an escape sequence of the extension table or a
// surrogate pair. The package knows no protocol: a segment is octets without the header that joins the parts, which
// the SMPP session adds.
package smstext

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is the alphabet in which a text travels.
type Encoding string

// The encodings. Latin1 is used only where an operator asks for it. Binary is incoming data that is not text.
const (
	GSM7   Encoding = "gsm7"
	Latin1 Encoding = "latin1"
	UCS2   Encoding = "ucs2"
	Binary Encoding = "binary"
)

// Sizes of a segment in units of its encoding: septets of GSM7, octets of Latin1, 16-bit units of UCS2.
const (
	gsm7Alone, gsm7Part     = 160, 153
	latin1Alone, latin1Part = 140, 134
	ucs2Alone, ucs2Part     = 70, 67
)

// MaxSegments is the maximum number of parts of a message, because the header counts them in one octet.
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
	// Segments are the octets of each part. GSM7 has one octet for each septet (unpacked, as SMPP requires),
	// and UCS2 has big-endian pairs.
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

// EncodeAs cuts a text in one encoding and reports whether that encoding can carry it.
func EncodeAs(text string, e Encoding) (Message, bool) {
	octets := make([]byte, 0, len(text)+len(text)/2)
	for _, r := range text {
		before := len(octets)
		if octets = appendCharacter(octets, r, e); len(octets) == before {
			return Message{}, false
		}
	}
	alone, part := sizes(e)
	if len(octets) <= alone {
		return Message{Encoding: e, Segments: [][]byte{octets}}, true
	}
	return Message{Encoding: e, Segments: cut(text, octets, e, part)}, true
}

// Decode returns the text of octets in an encoding, as a handset would show it.
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

// sizes are those of a segment in octets.
func sizes(e Encoding) (alone, part int) {
	switch e {
	case GSM7:
		return gsm7Alone, gsm7Part
	case Latin1:
		return latin1Alone, latin1Part
	default:
		return 2 * ucs2Alone, 2 * ucs2Part
	}
}

// appendCharacter appends the octets of a character. They must not be split across two segments. It appends nothing
// if the encoding lacks the character.
func appendCharacter(octets []byte, r rune, e Encoding) []byte {
	switch e {
	case GSM7:
		return appendGSM7(octets, r)
	case Latin1:
		if r <= 0xff {
			octets = append(octets, byte(r))
		}
	default:
		var units [2]uint16
		for _, u := range utf16.AppendRune(units[:0], r) {
			octets = append(octets, byte(u>>8), byte(u))
		}
	}
	return octets
}

// cut divides the octets of a text into segments of limited size, between its characters.
func cut(text string, octets []byte, e Encoding, size int) [][]byte {
	var segments [][]byte
	var scratch [4]byte
	from, to := 0, 0
	for _, r := range text {
		n := len(appendCharacter(scratch[:0], r, e))
		if to+n-from > size {
			segments = append(segments, octets[from:to:to])
			from = to
		}
		to += n
	}
	return append(segments, octets[from:to:to])
}
