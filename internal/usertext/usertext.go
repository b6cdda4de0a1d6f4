// Package usertext is for the texts that people give to things: names, purposes, reasons. Such a text is shown and never
// computed with, so one that is too long is cut instead of refused; but it must be one that both database engines
// store and that no terminal obeys.
package usertext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut removes the space around a text and what is beyond so many characters.
func Cut(s string, most int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most]))
}

// Storable says that a text is UTF-8 without control characters.
func Storable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// IsControl reports whether a program that shows text would act on r instead of showing it, such as by writing what follows
// from right to left.
func IsControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Visible replaces the control characters of a text, other than its line ends and tabs: they would hide or turn around the
// text next to them.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
