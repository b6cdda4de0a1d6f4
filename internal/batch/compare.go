package batch

import (
	"slices"
	"strings"
	"unicode"
)

// NameState is the result of comparing the registered name of a row with the name in the file. It is stored, so a
// value is never renamed.
type NameState string

// The states of names.
const (
	NameUnasked   NameState = ""
	NameSame      NameState = "same"
	NameNear      NameState = "near"
	NameDifferent NameState = "different"
	NameFound     NameState = "found"   // the file has no name, and a provider returned one
	NameUnknown   NameState = "unknown" // no provider knows the account, or no provider answered
	NameChanged   NameState = "changed" // the name changed between the request and its approval
)

// Scope is the part of a draft whose names are looked up. Stored; never renamed.
type Scope string

// The scopes.
const (
	ScopeNone  Scope = ""
	ScopeBanks Scope = "banks" // rows to bank accounts, which are never paid without a registered name
	ScopeAll   Scope = "all"
)

// titles are words in names that do not distinguish people.
var titles = []string{"MR", "MRS", "MS", "MISS", "DR", "REV", "PROF", "HON", "ALHAJI", "HAJIA", "NANA", "MADAM"}

func nameWords(name string) []string {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	if bare := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(titles, w) }); len(bare) > 0 {
		words = bare
	}
	slices.Sort(words)
	return words
}

// compareNames compares the name in a file with a registered name. Names with the same words in any order are the
// same. They are near if each word of the shorter name is a word of the other, its initial, or differs from it by one
// letter.
func compareNames(given, registered string) NameState {
	a, b := nameWords(given), nameWords(registered)
	switch {
	case registered == "":
		return NameUnknown
	case len(a) == 0:
		return NameFound
	case slices.Equal(a, b):
		return NameSame
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	whole := 0 // number of words that differ in at most one letter
	for _, word := range a {
		i := slices.IndexFunc(b, func(other string) bool { return word == other || oneLetter(word, other) })
		if i >= 0 {
			whole++
		} else if i = slices.IndexFunc(b, func(other string) bool { return isInitial(word, other) }); i < 0 {
			return NameDifferent
		}
		b = slices.Delete(slices.Clone(b), i, i+1)
	}
	if whole == 0 {
		return NameDifferent
	}
	return NameNear
}

func isInitial(a, b string) bool {
	x, y := []rune(a), []rune(b)
	return (len(x) == 1 || len(y) == 1) && x[0] == y[0]
}

// oneLetter reports whether two words of at least four letters differ by one letter that is changed, added or missing.
func oneLetter(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 4 || len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) == len(y) {
		return slices.Equal(x[min(i+1, len(x)):], y[min(i+1, len(y)):])
	}
	return slices.Equal(x[i:], y[i+1:])
}
