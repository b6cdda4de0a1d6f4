package usertext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsControl reports whether a terminal or a browser would act on r instead of printing it, such as a bidi override.
func IsControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// IsInvisible reports whether a reader cannot see r: zero-width and formatting characters, variation selectors, fillers, and
// separators of lines. Spaces are not invisible.
func IsInvisible(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return false
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // for example the Arabic number sign
		return false
	}
	return r == brailleBlank || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

const (
	brailleBlank = '\u2800' // a braille character without dots
	joiner       = '\u200d'
	asText       = '\ufe0e' // the symbol before it is shown as text
	asEmoji      = '\ufe0f'
	keycap       = '\u20e3'
)

// Visible replaces control characters, other than line ends and tabs, and invisible characters: they would hide,
// split or reverse the text next to them. Characters inside an emoji stay.
func Visible(text string) string {
	deceives := func(r rune) bool { return r != '\n' && r != '\t' && (IsControl(r) || IsInvisible(r)) }
	if !strings.ContainsFunc(text, deceives) {
		return text
	}
	var out strings.Builder
	before := rune(0)
	for at, r := range text {
		if deceives(r) && !inEmoji(before, r, text[at+utf8.RuneLen(r):]) {
			r = unicode.ReplacementChar
		}
		out.WriteRune(r)
		before = r
	}
	return out.String()
}

// inEmoji reports whether r makes one emoji of the characters around it.
func inEmoji(before, r rune, rest string) bool {
	after, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case joiner:
		return isEmoji(before) && isEmoji(after)
	case asText, asEmoji:
		return isEmoji(before) && before != asText && before != asEmoji || after == keycap
	}
	return false
}

// isEmoji reports whether r may be part of an emoji: a symbol, a tone of skin, or a selector after either.
func isEmoji(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm) || r >= 0x1f3fb && r <= 0x1f3ff || r == asEmoji
}

// alphabets are the scripts whose letters look like those of another one.
var alphabets = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic}

// Honest reports whether a reader can distinguish a name from similar ones. It is UTF-8 without control and invisible
// characters, and no word mixes alphabets with similar letters, such as a Cyrillic letter in a Latin name.
func Honest(name string) bool {
	if !utf8.ValidString(name) || Visible(name) != name || strings.ContainsAny(name, "\n\t") {
		return false
	}
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		used := 0
		for _, alphabet := range alphabets {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(alphabet, r) }) {
				used++
			}
		}
		if used > 1 {
			return false
		}
	}
	return true
}
