package messaging

import (
	"slices"
	"strings"
	"unicode"
)

// A reserved word may not be in a sender ID: networks, mobile money and its brands, and what pretends to be
// the state. It is in lower case; spaces and hyphens in it do not count.
type reserved struct {
	word string
	// alone: only as a word by itself, because ordinary words hold it ("AT Home" is refused, "Data" is
	// not). Any other is refused inside another word, too ("MTNcash").
	alone bool
}

var reservedWords = []reserved{
	{word: "mtn"}, {word: "momo"}, {word: "telecel"}, {word: "vodafone"}, {word: "voda"}, {word: "vdf"},
	{word: "airteltigo"}, {word: "airtel"}, {word: "tigo"}, {word: "expresso"},
	{word: "atl", alone: true}, {word: "at", alone: true}, {word: "glo", alone: true},
	{word: "mobilemoney"}, {word: "mobile money"}, {word: "mobilemon"}, {word: "gmoney"}, {word: "g-money"}, {word: "zeepay"},
	{word: "vodacash"}, {word: "tcash"}, {word: "atmoney"}, {word: "airtelmoney"}, {word: "tigocash"},
	{word: "hubtel"}, {word: "paystack"}, {word: "ghipss"}, {word: "gipc"}, {word: "ecg", alone: true}, {word: "gra", alone: true},
	{word: "nca", alone: true}, {word: "bog", alone: true}, {word: "ssnit"}, {word: "nhis"}, {word: "police"},
	{word: "ghana card"}, {word: "ghanacard"}, {word: "makola"}, {word: "admin"}, {word: "otp", alone: true},
}

// lookalikes folds characters that are drawn to be read as another: "M7N", "M0M0", "TЕLECEL".
var lookalikes = map[rune]rune{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i', '€': 'e', '+': 't',
	'а': 'a', 'в': 'b', 'е': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x',
	'α': 'a', 'β': 'b', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'μ': 'm', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'y', 'χ': 'x',
}

// The letters from which a word is long enough to be found across the words of a name, and to be missed by
// one letter and still be meant.
const (
	longWord  = 4
	clearWord = 6
)

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

// forbiddenWord finds the first reserved word of a name. Both the name as written and the name as it looks
// are held against the list.
func forbiddenWord(name string) (string, bool) {
	for _, seen := range []string{strings.ToLower(name), fold(name)} {
		words := strings.FieldsFunc(seen, separator)
		for _, r := range reservedWords {
			if r.in(words) {
				return r.word, true
			}
		}
	}
	return "", false
}

// in says whether the words of a name hold a reserved one. Separators hide none that is long; a short one is
// found where it is made of whole words ("M.T.N"), because of names like "Farm TN".
func (r reserved) in(words []string) bool {
	plain, joined := r.plain(), strings.Join(words, "")
	switch {
	case r.alone:
		return joined == plain || slices.Contains(words, plain)
	case len(plain) < longWord:
		return madeOf(words, plain) || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, plain) })
	}
	return strings.Contains(joined, plain) || strings.Contains(sameShape(joined), sameShape(plain))
}

func (r reserved) plain() string { return strings.Join(strings.FieldsFunc(r.word, separator), "") }

// madeOf says whether some words one after the other are plain.
func madeOf(words []string, plain string) bool {
	for i := range words {
		rest := plain
		for _, word := range words[i:] {
			var begins bool
			if rest, begins = strings.CutPrefix(rest, word); !begins {
				break
			}
			if rest == "" {
				return true
			}
		}
	}
	return false
}

// Near finds a reserved word that a name comes near without holding it, for whoever reviews it: "Telesel",
// "MMTTN", "Farm TN", "ATpay". It is empty for most names.
func Near(name string) string {
	if _, forbidden := forbiddenWord(name); forbidden {
		return ""
	}
	joined := strings.Join(strings.FieldsFunc(fold(name), separator), "")
	once := string(slices.Compact([]rune(joined)))
	for _, r := range reservedWords {
		switch plain := r.plain(); {
		case r.alone && inCapitals(name, strings.ToUpper(plain)),
			!r.alone && (strings.Contains(joined, plain) || strings.Contains(once, plain)),
			len(plain) >= clearWord && almost(joined, plain):
			return r.word
		}
	}
	return ""
}

// inCapitals says whether a name that is not all in capitals has word as a run of them, which the capital of
// the next word may follow: "ATpay", "ATPay".
func inCapitals(name, word string) bool {
	if strings.ToUpper(name) == name {
		return false
	}
	for _, run := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsUpper(r) }) {
		if run == word || len(run) == len(word)+1 && strings.HasPrefix(run, word) {
			return true
		}
	}
	return false
}

// almost says whether a part of text is word but for one letter: another, one too many or one too few.
func almost(text, word string) bool {
	// row[i] is how many letters of the first i of word are wrong, at best, in a part that ends here.
	row := make([]int, len(word)+1)
	for i := range row {
		row[i] = i
	}
	for _, c := range []byte(text) {
		diagonal := 0
		for i := range word {
			wrong := 1
			if c == word[i] {
				wrong = 0
			}
			diagonal, row[i+1] = row[i+1], min(diagonal+wrong, row[i]+1, row[i+1]+1)
		}
		if row[len(word)] <= 1 {
			return true
		}
	}
	return false
}

func separator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
