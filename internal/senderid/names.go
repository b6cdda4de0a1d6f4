package senderid

import (
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/problem"
)

// MaxName is the maximum length of a sender ID in characters, which the header of a message limits.
const MaxName = 11

// CheckName refuses a name that no operator would carry, or that contains a reserved word.
func CheckName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxName {
		return problem.Field("name", "must have 1 to 11 characters")
	}
	letter := false
	for _, r := range name {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		letter = letter || isLetter
		if !isLetter && (r < '0' || r > '9') && !strings.ContainsRune(" .-&", r) {
			// A name with look-alike letters of another alphabet is refused with the reserved word that it imitates,
			// if there is one.
			if word, bad := forbiddenTerm(name); bad {
				return forbiddenName(word)
			}
			return problem.Field("name", "may have letters, digits, spaces and . - & only")
		}
	}
	if !letter {
		return problem.Field("name", "must have at least one letter")
	}
	if word, bad := forbiddenTerm(name); bad {
		return forbiddenName(word)
	}
	return nil
}

// forbiddenName ends with the lower-case reserved word, which clients read.
func forbiddenName(word string) error {
	message := "The name contains a forbidden word: " + word
	return &problem.Error{Kind: problem.Invalid, Code: "forbidden_word", Message: message, Fields: map[string][]string{"name": {message}}}
}
