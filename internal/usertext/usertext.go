// Package usertext is for texts that people write: names, purposes, reasons. Such a text is shown and never computed
// with, so a long one is cut instead of refused. Both database engines must be able to store it, and no terminal may
// act on it.
//
// Files: usertext.go (cut and stored), visible.go (characters that deceive a reader), code.go (codes that a person
// types).
package usertext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut removes the space around a text and everything after a number of characters.
func Cut(s string, most int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most]))
}

// Storable reports whether a text is UTF-8 without control characters.
func Storable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
