package senderid

import (
	"slices"
	"strings"
	"unicode"
)

// reserved is a term that a sender ID may not contain: a network, mobile money and its brands, or an office of the
// state. It is in lower case; spaces and hyphens in it do not count.
type reserved struct {
	term string
	// alone refuses the term only as a whole word, because ordinary words contain it ("AT Home" is refused, "Data" is
	// not). Other terms are refused inside another word, too ("MTNcash").
	alone bool
}

var reservedTerms = []reserved{
	{term: "mtn"}, {term: "momo"}, {term: "telecel"}, {term: "vodafone"}, {term: "voda"}, {term: "vdf"},
	{term: "airteltigo"}, {term: "airtel"}, {term: "tigo"}, {term: "expresso"},
	{term: "atl", alone: true}, {term: "at", alone: true}, {term: "glo", alone: true},
	{term: "mobilemoney"}, {term: "mobile money"}, {term: "mobilemon"}, {term: "gmoney"}, {term: "g-money"}, {term: "zeepay"},
	{term: "vodacash"}, {term: "tcash"}, {term: "atmoney"}, {term: "airtelmoney"}, {term: "tigocash"},
	{term: "hubtel"}, {term: "paystack"}, {term: "ghipss"}, {term: "gipc"}, {term: "ecg", alone: true}, {term: "gra", alone: true},
	{term: "nca", alone: true}, {term: "bog", alone: true}, {term: "ssnit"}, {term: "nhis"}, {term: "police"},
	{term: "ghana card"}, {term: "ghanacard"}, {term: "makola"}, {term: "admin"}, {term: "otp", alone: true},
}

// lookalikes are characters that readers may confuse with a letter: "M7N", "M0M0", "TЕLECEL" with a Cyrillic Е.
var lookalikes = map[rune]rune{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i', '€': 'e', '+': 't',
	'а': 'a', 'в': 'b', 'е': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x',
	'α': 'a', 'β': 'b', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'μ': 'm', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'y', 'χ': 'x',
}

const (
	// longTerm is the length from which a reserved term is also searched across the parts of a name.
	longTerm = 4
	// clearTerm is the length from which a name with one wrong letter still resembles a reserved term.
	clearTerm = 6
)

// fold returns a name as a reader may see it: in lower case, with each look-alike replaced by its letter.
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

// sameShape also folds l and i, whose capital and small forms look alike. Only long terms are compared in this form,
// because for short ones it would refuse honest names.
func sameShape(s string) string {
	return strings.ReplaceAll(fold(s), "l", "i")
}

// forbiddenTerm finds the first reserved term in a name, as written or as a reader may see it.
func forbiddenTerm(name string) (string, bool) {
	for _, seen := range []string{strings.ToLower(name), fold(name)} {
		parts := strings.FieldsFunc(seen, separator)
		for _, r := range reservedTerms {
			if r.in(parts) {
				return r.term, true
			}
		}
	}
	return "", false
}

// in reports whether the parts of a name contain the reserved term. A long term is found across separators. A short
// one is found inside a part or made of whole parts ("M.T.N"), but not of fragments ("Farm TN").
func (r reserved) in(parts []string) bool {
	plain, joined := r.plain(), strings.Join(parts, "")
	switch {
	case r.alone:
		return joined == plain || slices.Contains(parts, plain)
	case len(plain) < longTerm:
		return madeOf(parts, plain) || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(part, plain) })
	}
	return strings.Contains(joined, plain) || strings.Contains(sameShape(joined), sameShape(plain))
}

func (r reserved) plain() string { return strings.Join(strings.FieldsFunc(r.term, separator), "") }

// madeOf reports whether some consecutive parts together are plain.
func madeOf(parts []string, plain string) bool {
	for i := range parts {
		rest := plain
		for _, part := range parts[i:] {
			var begins bool
			if rest, begins = strings.CutPrefix(rest, part); !begins {
				break
			}
			if rest == "" {
				return true
			}
		}
	}
	return false
}

// Near returns a reserved term that a name resembles without containing it, for the reviewer: "Telesel", "MMTTN",
// "Farm TN", "ATpay". It is empty for most names.
func Near(name string) string {
	if _, forbidden := forbiddenTerm(name); forbidden {
		return ""
	}
	joined := strings.Join(strings.FieldsFunc(fold(name), separator), "")
	once := string(slices.Compact([]rune(joined)))
	for _, r := range reservedTerms {
		switch plain := r.plain(); {
		case r.alone && inCapitals(name, strings.ToUpper(plain)),
			!r.alone && (strings.Contains(joined, plain) || strings.Contains(once, plain)),
			len(plain) >= clearTerm && almost(joined, plain):
			return r.term
		}
	}
	return ""
}

// inCapitals reports whether a name with small letters contains term in capitals. The capital that begins the next
// part may follow: "ATpay", "ATPay".
func inCapitals(name, term string) bool {
	if strings.ToUpper(name) == name {
		return false
	}
	for _, run := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsUpper(r) }) {
		if run == term || len(run) == len(term)+1 && strings.HasPrefix(run, term) {
			return true
		}
	}
	return false
}

// almost reports whether a part of text differs from term by at most one letter: a wrong letter, an extra one or a
// missing one.
func almost(text, term string) bool {
	// row[i] is the smallest edit distance between the first i letters of term and a part of text that ends here.
	row := make([]int, len(term)+1)
	for i := range row {
		row[i] = i
	}
	for _, c := range []byte(text) {
		diagonal := 0
		for i := range term {
			wrong := 1
			if c == term[i] {
				wrong = 0
			}
			diagonal, row[i+1] = row[i+1], min(diagonal+wrong, row[i]+1, row[i+1]+1)
		}
		if row[len(term)] <= 1 {
			return true
		}
	}
	return false
}

func separator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
