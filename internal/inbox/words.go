package inbox

import (
	"slices"
	"strings"
	"unicode"

	"github.com/makola/makola/internal/config"
)

// Word is the meaning of a text that keeps the list of numbers without campaigns.
type Word string

// The words.
const (
	Stop  Word = "stop"
	Start Word = "start"
)

// The usual words, as handsets and operators elsewhere use them.
var (
	stopWords  = []string{"stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout"}
	startWords = []string{"start", "unstop", "optin"}
)

// wordsOf returns the usual words and the configured ones, by their spelling.
func wordsOf(more config.OptOutWords) map[string]Word {
	words := map[string]Word{}
	for _, w := range slices.Concat(startWords, more.Start) {
		words[fold(w)] = Start
	}
	for _, w := range slices.Concat(stopWords, more.Stop) {
		words[fold(w)] = Stop
	}
	return words
}

// fold is a word without capitals and without punctuation.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, word)
}

// foldAll returns the words of a text, at most one more than most. The further word shows that the text has too many.
func foldAll(text string, most int) (words []string) {
	for field := range strings.FieldsSeq(text) {
		if word := fold(field); word != "" {
			words = append(words, word)
		}
		if len(words) > most {
			break
		}
	}
	return words
}

// wordOf reads a text that is a word alone, or a word and what it is about: a keyword, or all. A word within a
// sentence means nothing, because an automatic answer may quote ours.
func (s *Store) wordOf(text string) (word Word, about string) {
	words := foldAll(text, 2)
	if len(words) == 0 || len(words) > 2 {
		return "", ""
	}
	if len(words) == 2 && words[1] != "all" {
		about = words[1]
	}
	return s.words[words[0]], about
}
