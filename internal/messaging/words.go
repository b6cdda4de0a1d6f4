package messaging

import (
	"slices"
	"strings"
	"unicode"
)

// forbidden are the words that a sender ID may not contain: networks, mobile money and its brands, and
// what pretends to be the state. It is data, in lower case without spaces. A word of up to three
// letters must match a whole word of the name ("AT Home" is refused, "Data" is not), a longer one is
// refused anywhere.
var forbidden = []string{
	"mtn", "momo", "telecel", "vodafone", "voda", "vdf", "airteltigo", "airtel", "tigo", "atl", "at", "glo", "expresso",
	"mobilemoney", "mobile money", "mobilemon", "gmoney", "g-money", "zeepay", "vodacash", "tcash", "atmoney", "airtelmoney", "tigocash",
	"hubtel", "paystack", "ghipss", "gipc", "ecg", "gra", "nca", "bog", "ssnit", "nhis", "police", "ghana card", "ghanacard",
	"makola", "admin", "otp",
}

// lookalikes folds characters that are drawn to be read as another: "M7N", "M0M0", "TЕLECEL".
var lookalikes = map[rune]rune{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i', '€': 'e', '+': 't',
	'а': 'a', 'в': 'b', 'е': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x',
	'α': 'a', 'β': 'b', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'μ': 'm', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'y', 'χ': 'x',
}

// longWord is the length from which a forbidden word is refused inside another.
const longWord = 4

// fold writes a name as its reader may take it: lower case, look-alikes as what they look like.
func fold(name string) string {
	var folded strings.Builder
	for _, r := range name {
		r = unicode.ToLower(r)
		if as, ok := lookalikes[r]; ok {
			r = as
		}
		folded.WriteRune(r)
	}
	return folded.String()
}

// sameShape folds the letters that no reader tells apart in capitals or small; long words are compared
// so. For short ones it would refuse honest names.
func sameShape(s string) string {
	return strings.ReplaceAll(fold(s), "l", "i")
}

// forbiddenWord finds the first forbidden word of a name. Both the name as written and the name as it
// looks are held against the list; separators do not hide a word.
func forbiddenWord(name string) (string, bool) {
	for _, seen := range []string{strings.ToLower(name), fold(name)} {
		words := strings.FieldsFunc(seen, separator)
		joined := strings.Join(words, "")
		for _, word := range forbidden {
			plain := strings.Join(strings.FieldsFunc(word, separator), "")
			long := len(plain) >= longWord
			switch {
			case long && (strings.Contains(joined, plain) || strings.Contains(sameShape(joined), sameShape(plain))),
				!long && (joined == plain || slices.Contains(words, plain)):
				return word, true
			}
		}
	}
	return "", false
}

func separator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
