package smstext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCredits_equalSegments(t *testing.T) {
	cases := []struct {
		name     string
		text     string
		credits  int64
		segments int
		encoding Encoding
	}{
		{"empty", "", 0, 1, GSM7},
		{"one", "a", 1, 1, GSM7},
		{"160 GSM-7", strings.Repeat("a", 160), 1, 1, GSM7},
		{"161 GSM-7", strings.Repeat("a", 161), 2, 2, GSM7},
		{"306 GSM-7", strings.Repeat("a", 306), 2, 2, GSM7},
		{"307 GSM-7", strings.Repeat("a", 307), 2, 3, GSM7},
		{"320 GSM-7", strings.Repeat("a", 320), 2, 3, GSM7},
		{"160 euro signs", strings.Repeat("€", 160), 1, 3, GSM7},
		{"70 UCS-2", strings.Repeat("ɛ", 70), 1, 1, UCS2},
		{"71 UCS-2", strings.Repeat("ɛ", 71), 1, 2, UCS2},
		{"160 UCS-2", strings.Repeat("ɛ", 160), 1, 3, UCS2},
		{"320 UCS-2", strings.Repeat("ɛ", 320), 2, 5, UCS2},
		{"a cedi sign among 160", "₵" + strings.Repeat("a", 159), 1, 3, UCS2},
		{"emoji at the cut", strings.Repeat("ɛ", 66) + "😀" + strings.Repeat("ɛ", 10), 1, 2, UCS2},
	}
	for _, c := range cases {
		encoding, segments := Count(c.text)
		if encoding != c.encoding || segments != c.segments || Credits(c.text) != c.credits {
			t.Errorf("%s: %s, %d segments, %d credits; want %s, %d, %d", c.name, encoding, segments, Credits(c.text), c.encoding, c.segments, c.credits)
		}
	}
}

func TestAlphabet_has128Characters(t *testing.T) {
	if len(basicRunes) != 128 {
		t.Fatalf("the basic alphabet has %d places", len(basicRunes))
	}
	if _, ok := EncodeAs("ɛ", GSM7); ok {
		t.Error("GSM-7 took a letter that it lacks")
	}
	if _, ok := EncodeAs("ɛ", Latin1); ok {
		t.Error("Latin-1 took a letter that it lacks")
	}
}

// Every text is decoded unchanged. No segment is too long, and none is cut inside a character.
func TestSegments_roundTrip(t *testing.T) {
	alphabet := []rune("ab @£é€{}[]~\\|^\n₵ɛɔ😀ü")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(alphabet), 0, 700, -1).Draw(t, "text")
		m := Encode(text)
		var back strings.Builder
		for _, s := range m.Segments {
			if len(s) > 160 || len(m.Segments) > 1 && m.Encoding == GSM7 && len(s) > 153 || m.Encoding == UCS2 && len(s) > 140 || len(m.Segments) > 1 && m.Encoding == UCS2 && len(s) > 134 {
				t.Fatalf("a %s segment has %d octets", m.Encoding, len(s))
			}
			part := Decode(s, m.Encoding)
			if strings.ContainsRune(part, utf8.RuneError) {
				t.Fatalf("a character was cut: %q", part)
			}
			back.WriteString(part)
		}
		if back.String() != text {
			t.Fatalf("%q came back as %q", text, back.String())
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("hello"), byte(0))
	f.Add([]byte{escape}, byte(0))
	f.Add([]byte{0xd8, 0x3d, 0xde}, byte(2))
	f.Fuzz(func(t *testing.T, octets []byte, e byte) {
		text := Decode(octets, []Encoding{GSM7, Latin1, UCS2}[e%3])
		if !utf8.ValidString(text) {
			t.Fatalf("not text: %q", text)
		}
	})
}
