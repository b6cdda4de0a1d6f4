package batch

import (
	"slices"
	"strings"
	"unicode"

	"github.com/makola/makola/internal/route"
)

// banks are the banks that the payouts of an account reach.
type banks struct {
	list []route.Bank
	by   map[string]int // place in the list, by the plain name, the id and the sort code
}

func banksOf(list []route.Bank) banks {
	b := banks{list: list, by: map[string]int{}}
	for i, bank := range list {
		for _, text := range []string{bank.Name, bank.ID, bank.Code} {
			b.by[plainName(text)] = i
		}
	}
	return b
}

// plainName normalizes the name of a bank: "G.C.B. Bank" and "gcb  bank" become equal.
func plainName(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToUpper(r)
		case r == '.', r == '\'':
			return -1
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// find returns the bank that a text names exactly.
func (b banks) find(text string) (route.Bank, bool) {
	i, found := b.by[plainName(text)]
	if !found {
		return route.Bank{}, false
	}
	return b.list[i], true
}

// commonWords are words in the names of many banks, which do not distinguish them.
var commonWords = []string{"BANK", "GHANA", "GH", "LTD", "LIMITED", "PLC", "THE", "OF", "COMPANY"}

func tellingWords(text string) []string {
	return slices.DeleteFunc(strings.Fields(plainName(text)), func(word string) bool { return slices.Contains(commonWords, word) })
}

// propose returns the one bank whose name contains all distinguishing words of a text, or begins with the first of
// them. It is a proposal for a person and is never used by itself.
func (b banks) propose(text string) (route.Bank, bool) {
	words := tellingWords(text)
	if len(words) == 0 {
		return route.Bank{}, false
	}
	for _, fits := range []func([]string) bool{
		func(name []string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(name, w) })
		},
		func(name []string) bool {
			return len(name) > 0 && (strings.HasPrefix(name[0], words[0]) || strings.HasPrefix(words[0], name[0]))
		},
	} {
		var found []route.Bank
		for _, bank := range b.list {
			if fits(tellingWords(bank.Name)) {
				found = append(found, bank)
			}
		}
		if len(found) == 1 {
			return found[0], true
		}
	}
	return route.Bank{}, false
}
