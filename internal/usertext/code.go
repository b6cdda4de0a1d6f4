package usertext

import (
	"strings"
	"unicode"
)

// Code normalizes a code that a person typed or pasted: without white space, dashes and invisible characters, in
// lower case. Messages and apps show codes in groups.
func Code(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.White_Space, unicode.Pd, unicode.Cf) || r == minus {
			return -1
		}
		return r
	}, s))
}

const minus = '\u2212' // Unicode's minus sign is a mathematical symbol, but people type it as a dash
