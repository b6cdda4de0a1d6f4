package senderid

import (
	"slices"
	"strings"
	"unicode"
)

// reserved is a word that may not be in a sender ID: a network, mobile money and its brands, or an office of the state.
// It is in lower case; spaces and hyphens in it do not count.
type reserved struct {
	word string
	// alone says that the word is refused only by itself, because ordinary words hold it ("AT Home" is refused, "Data"
	// is not). Any other is refused inside another word, too ("MTNcash").
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

// lookalikes are characters that readers take for a letter: "M7N", "M0M0", "TЕLECEL" with a Cyrillic Е.
var lookalikes = map[rune]rune{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i', '€': 'e', '+': 't',
	'а': 'a', 'в': 'b', 'е': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x',
	'α': 'a', 'β': 'b', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'μ': 'm', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'y', 'χ': 'x',
}

const (
	// longWord is the length from which a reserved word is also looked for across the words of a name.
	longWord = 4
	// clearWord is the length from which a name with one wrong letter still comes near a reserved word.
	clearWord = 6
)

// fold writes a name as a reader may take it: in lower case, each look-alike as the letter that it is taken for.
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

// sameShape folds l and i as well, whose capital and small forms look alike. Only long words are compared in this form:
// for short ones it would refuse honest names.
func sameShape(s string) string {
	return strings.ReplaceAll(fold(s), "l", "i")
}

// forbiddenWord finds the first reserved word of a name, in the name as it is written or as it looks.
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

// in says whether the words of a name hold the reserved one. A long one is found across separators. A short one is found
// inside a word or made of whole words ("M.T.N"), but not of parts of them ("Farm TN").
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

// madeOf says whether some consecutive words together are plain.
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

// Near gives a reserved word that a name comes near without holding it, for the reviewer: "Telesel", "MMTTN", "Farm TN",
// "ATpay". It is empty for most names.
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

// inCapitals says whether a name that is not all in capitals has word as a run of capitals, with or without the capital
// of the next word: "ATpay", "ATPay".
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

// almost says whether a part of text differs from word in at most one letter: another, one too many or one too few.
func almost(text, word string) bool {
	// row[i] is the smallest edit distance between the first i letters of word and a part of text that ends here.
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
