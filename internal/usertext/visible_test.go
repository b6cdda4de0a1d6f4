package usertext

import (
	"testing"
	"unicode"
)

// Characters that a reader cannot see, or that reverse text, become visible. Emoji, letters and spaces stay.
func TestVisible_replacesDeceptive(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Ama Ɔkyerɛ ₵5\n\tline": "Ama Ɔkyerɛ ₵5\n\tline", "a\u00a0b\u3000c": "a\u00a0b\u3000c",
		"a\u200bb": "a\ufffdb", "\ufeffa": "\ufffda", "a\u00adb": "a\ufffdb", "a\u2060b\u2064": "a\ufffdb\ufffd", "a\u200cb\u200d": "a\ufffdb\ufffd",
		"a\u202eb\u2066\u200f": "a\ufffdb\ufffd\ufffd", "a\u0085b\u009b": "a\ufffdb\ufffd", "a\x00b\rc": "a\ufffdb\ufffdc",
		"a\u2028b\u2029": "a\ufffdb\ufffd", "\u115f\u3164\uffa0\u2800\u034f\u180e": "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd",
		"a\ufe0fb": "a\ufffdb", "a\U000e0061\U000e0100": "a\ufffd\ufffd",
		"👩\u200d👧 ❤\ufe0f\u200d🔥 👍🏾\u200d 1\ufe0f\u20e3 ©\ufe0e": "👩\u200d👧 ❤\ufe0f\u200d🔥 👍🏾\ufffd 1\ufe0f\u20e3 ©\ufe0e",
		"😀\ufe0f\ufe0f": "😀\ufe0f\ufffd", "\u0600١": "\u0600١",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
}

// Every formatting character of Unicode without a glyph is invisible. No letter, digit or space is.
func TestIsInvisible_overUnicode(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		format := unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		if format && !IsInvisible(r) {
			t.Errorf("%U is visible", r)
		}
		plain := unicode.In(r, unicode.L, unicode.Nd, unicode.Zs) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
		if plain && IsInvisible(r) {
			t.Errorf("%U is invisible", r)
		}
	}
}

// A name that looks like another one is refused.
func TestHonest_refusesLookAlikes(t *testing.T) {
	for name, want := range map[string]bool{
		"Ama Owusu": true, "Ɔkyerɛ Ŋmai-Ƒoli": true, "O\u2019Neill & Sons (3) ₵": true, "Иван Петров": true, "Shop 👩\u200d👧": true, "Kofi Иван": true,
		"\u0410ma": false, "Kwam\u0435": false, "K\u03bfjo": false, "Ama\u200b": false, "A\u202ema": false, "Ama\nOwusu": false, "Ama\u0085": false, "\xff": false, "Ama\u00ad": false,
	} {
		if got := Honest(name); got != want {
			t.Errorf("%+q: %v", name, got)
		}
	}
}
