// Package usertext is for the texts that people give to things: names, purposes, reasons. Such a text is shown and never
// computed with, so one that is too long is cut instead of refused; but it must be one that both database engines
// store and that no terminal obeys.
//
// Files: usertext.go (cut and stored), visible.go (characters that deceive a reader), code.go (codes that a person types).
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
