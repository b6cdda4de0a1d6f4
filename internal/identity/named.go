package identity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"
)

// shortestName is the number of characters from which a name is looked for inside another text.
const shortestName = 3

// Named reports whether a free text may mean a person: it contains the e-mail address, the part before the @ or the
// name, or is contained in one. Case, spaces, punctuation, invisible characters and look-alike letters do not count.
// It errs towards true, because it keeps people from approving their own payments.
func Named(text string, p Person) bool {
	seen := folded(text)
	if seen == "" {
		return false
	}
	if within(seen, folded(p.Email)) {
		return true
	}
	local, _, _ := strings.Cut(p.Email, "@") // the text may be a part of it, but not of the domain, which all share
	for _, name := range append(strings.Fields(p.Name), local, p.Name) {
		name = folded(name)
		if seen == name || within(seen, name) || within(name, seen) {
			return true
		}
	}
	return false
}

// within reports whether a text holds a name that is long enough to mean something.
func within(text, name string) bool {
	return utf8.RuneCountInString(name) >= shortestName && strings.Contains(text, name)
}

// folded reduces a text to its letters and digits as a reader sees them: look-alikes of Unicode's confusables become one
// letter, accents go.
func folded(text string) string {
	text = strings.ToLower(norm.NFKC.String(strings.ToLower(text)))
	text = confusables.Skeleton(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKD.String(text))
}
