package identity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"
)

// shortestName is the minimum length of a name that is searched in another text, in characters.
const shortestName = 3

// Named reports whether a free text may mean a person. That is so if the text contains the e-mail address, the part
// before the @, or the name, or is contained in one of them. Case, spaces, punctuation, invisible characters and
// look-alike letters are ignored. In doubt it returns true, because a match keeps people from approving their own
// payments.
func Named(text string, p Person) bool {
	seen := folded(text)
	if seen == "" {
		return false
	}
	if within(seen, folded(p.Email)) {
		return true
	}
	local, _, _ := strings.Cut(p.Email, "@") // the domain is ignored, because many people share it
	for _, name := range append(strings.Fields(p.Name), local, p.Name) {
		name = folded(name)
		if seen == name || within(seen, name) || within(name, seen) {
			return true
		}
	}
	return false
}

// within reports whether text contains a name that is long enough.
func within(text, name string) bool {
	return utf8.RuneCountInString(name) >= shortestName && strings.Contains(text, name)
}

// folded returns the letters and digits of a text in a form that is equal for texts that look alike. Look-alike
// letters (Unicode's confusables) become one letter, and accents are removed.
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
