package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"golang.org/x/text/secure/precis"
)

// easy lists texts that attackers guess first.
var easy = []string{"makola", "password", "passwort", "123456", "qwerty", "asdfgh", "abcdef", "letmein", "iloveyou", "welcome", "admin"}

// estimated is the number of characters that the estimator reads. Its time grows fast with the length, and further
// characters do not make a password weaker.
const estimated = 40

// leastScore is the minimum score of a password by the estimator, from 0 to 4. 3 means at least 100 million guesses.
const leastScore = 3

// checkPassword returns an error for a password that is easy to guess. words are words around the person, such as the
// company's name. The length is checked first, because it limits the time of the estimator.
func checkPassword(password string, words []string) error {
	var bad problem.Fields
	text, err := precis.OpaqueString.String(password)
	n := utf8.RuneCountInString(text)
	switch {
	case len(password) > 4*MaxPassword || err == nil && (n < MinPassword || n > MaxPassword):
		bad.Add("password", fmt.Sprintf("must have %d to %d characters", MinPassword, MaxPassword))
	case err != nil:
		bad.Add("password", fmt.Sprintf("must have %d to %d letters, digits, signs and spaces; leave out control and invisible characters", MinPassword, MaxPassword))
	case guessable(text, words):
		bad.Add("password", "is too easy to guess: use four or more words that do not belong together, without your name, e-mail address or company")
	}
	return bad.Err()
}

// guessable reports whether a password has too low a score, or few characters in addition to known words.
func guessable(password string, words []string) bool {
	left := strings.ToLower(password)
	for _, word := range slices.Concat(words, easy) {
		if len(word) > 3 {
			left = strings.ReplaceAll(left, word, "")
		}
	}
	start := []rune(password)
	start = start[:min(len(start), estimated)]
	return utf8.RuneCountInString(left) < 8 || distinct(left) < 5 || zxcvbn.PasswordStrength(string(start), words).Score < leastScore
}

// maxWords is the maximum number of words with which a password is compared.
const maxWords = 50

const selectCompanies = `SELECT t.name FROM memberships m JOIN tenants t ON t.id = m.tenant WHERE m.person = $1 ORDER BY t.id LIMIT 20`

// wordsAround returns words with which somebody may guess a person's password, in lower case. They are parts of the
// e-mail address, of the name, and of the names of the person's companies.
func (i *Identity) wordsAround(ctx context.Context, p Person) (words []string, err error) {
	var companies []string
	err = i.db.Read(ctx, func(tx *db.Tx) (err error) {
		companies, err = tx.Texts(selectCompanies, p.ID)
		return err
	})
	local, _, _ := strings.Cut(p.Email, "@")
	words = append(words, strings.ToLower(local))
	for _, text := range append([]string{p.Email, p.Name}, companies...) {
		parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		words = append(words, strings.Join(parts, ""))
		words = append(words, parts...)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < shortestName })
	return words[:min(len(words), maxWords)], err
}

func distinct(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}
