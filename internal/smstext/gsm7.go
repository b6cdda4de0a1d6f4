package smstext

// escape introduces a character of the extension table.
const escape = 0x1b

// The default alphabet of GSM 03.38, by septet. U+FFFF replaces the escape, because no decoded text contains
// it.
const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\uffffÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"

// The extension table: each costs two septets.
var extension = map[rune]byte{
	'\f': 0x0a, '^': 0x14, '{': 0x28, '}': 0x29, '\\': 0x2f, '[': 0x3c, '~': 0x3d, ']': 0x3e, '|': 0x40, '€': 0x65,
}

var (
	basicRunes  = []rune(basic)
	basicSeptet = septets(basicRunes)
)

func septets(runes []rune) map[rune]byte {
	m := make(map[rune]byte, len(runes))
	for i, r := range runes {
		m[r] = byte(i)
	}
	delete(m, '\uffff')
	return m
}

// appendGSM7 appends the septets of a character. It appends nothing if the alphabet lacks the character.
func appendGSM7(octets []byte, r rune) []byte {
	if s, ok := basicSeptet[r]; ok {
		return append(octets, s)
	}
	if s, ok := extension[r]; ok {
		return append(octets, escape, s)
	}
	return octets
}

func decodeGSM7(octets []byte) string {
	runes := make([]rune, 0, len(octets))
	for i := 0; i < len(octets); i++ {
		b := octets[i] & 0x7f
		if b != escape {
			runes = append(runes, basicRunes[b])
			continue
		}
		// An unknown extension is shown as the basic character, and an escape at the end as a space.
		i++
		if i == len(octets) {
			runes = append(runes, ' ')
			break
		}
		runes = append(runes, extended(octets[i]))
	}
	return string(runes)
}

func extended(septet byte) rune {
	for r, s := range extension {
		if s == septet {
			return r
		}
	}
	if septet&0x7f == escape {
		return ' '
	}
	return basicRunes[septet&0x7f]
}
