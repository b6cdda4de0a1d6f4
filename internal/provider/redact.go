package provider

import (
	"regexp"
	"slices"
	"strings"
)

// Providers use many names for the same data. A member is therefore recognized by parts of its name, in lower case
// and without separators.
var (
	// personal has parts of names whose values never appear in a log: credentials and personal data.
	personal = []string{"name", "email", "mail", "token", "secret", "password", "passwd", "passcode", "apikey", "authorization", "credential", "signature",
		"birth", "address", "accountnumber", "accountno", "cardnumber", "idnumber", "nationalid"}
	// short has complete names of personal data. Inside longer names, these words often mean something else.
	short = []string{"sub", "pin", "otp", "dob", "iban", "key", "auth"}
	// things has complete names that contain "name" but are not about a person.
	things = []string{"bankname", "networkname", "servicename", "productname", "channelname", "hostname", "currencyname", "eventname", "tokentype"}
	// labels has members that describe the content of the member "value" in the same object.
	labels = []string{"display", "label", "field"}
)

const hidden = "***"

var (
	inQuery = regexp.MustCompile(`([?&;\s]|^)([A-Za-z][A-Za-z0-9_.%\[\]-]{0,40})=([^&;\s"<>\\*][^&;\s"<>\\]*)`)
	// These match a member of a JSON text inside a JSON string.
	escapedText   = regexp.MustCompile(`\\+"([A-Za-z][A-Za-z0-9_. -]{0,40})\\+"\s*:\s*\\+"([^"\\*][^"\\]*)`)
	escapedNumber = regexp.MustCompile(`\\+"([A-Za-z][A-Za-z0-9_. -]{0,40})\\+"\s*:\s*([0-9][0-9.]*)`)
	inElement     = regexp.MustCompile(`<([A-Za-z][A-Za-z0-9_.:-]{0,40})>([^<>"*][^<>"]*)`)
	asEmail       = regexp.MustCompile(`[A-Za-z0-9._%+-]+(@|%40)[A-Za-z0-9.-]+\.[A-Za-z]{2,}`)
	asToken       = regexp.MustCompile(`\b([Bb]earer|BEARER|[Bb]asic|BASIC)\s+[A-Za-z0-9._~+/=-]{6,}`)
	// asCallback matches a path of CallbackPath, also in the escapes of JSON and of query strings.
	asCallback = regexp.MustCompile(`(callbacks(?:\\?/|%2[Ff])[A-Za-z0-9_-]+(?:\\?/|%2[Ff]))[A-Za-z0-9_-]+`)
	asJWT      = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]+){1,2}`)
)

// Redact returns a body or URL without its personal data, for a log. It replaces names, e-mail addresses, tokens and
// other personal data by "***", under every member name that providers use. It also hides the token of our own
// callback path. Phone numbers keep their first three and last four digits.
func Redact(s string) string {
	s = maskMembers(s)
	// The patterns are slow, and most texts contain nothing that they could match.
	if strings.Contains(s, `\"`) {
		s = maskPairs(maskPairs(s, escapedText, 1), escapedNumber, 1)
	}
	if strings.IndexByte(s, '=') >= 0 {
		s = maskPairs(s, inQuery, 2)
	}
	if strings.IndexByte(s, '<') >= 0 {
		s = maskPairs(s, inElement, 1)
	}
	if strings.Contains(s, "earer") || strings.Contains(s, "asic") || strings.Contains(s, "EARER") || strings.Contains(s, "ASIC") {
		s = asToken.ReplaceAllString(s, "${1} "+hidden)
	}
	if strings.Contains(s, "eyJ") {
		s = asJWT.ReplaceAllString(s, hidden)
	}
	if strings.Contains(s, "callbacks") {
		s = asCallback.ReplaceAllString(s, "${1}"+hidden)
	}
	if strings.IndexByte(s, '@') >= 0 || strings.Contains(s, "%40") {
		s = asEmail.ReplaceAllString(s, hidden)
	}
	return maskNumbers(s)
}

// isPersonal reports whether values under this name are hidden.
func isPersonal(name string) bool {
	if len(name) > 64 {
		return false
	}
	if name = strings.ToLower(name); strings.ContainsAny(name, "_- .") {
		name = strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(name)
	}
	if slices.Contains(short, name) {
		return true
	}
	return !slices.Contains(things, name) && slices.ContainsFunc(personal, func(word string) bool { return strings.Contains(name, word) })
}

// maskPairs hides the last group of each match if the group before it is a personal name.
func maskPairs(s string, pattern *regexp.Regexp, name int) string {
	var out strings.Builder
	last := 0
	for _, at := range pattern.FindAllStringSubmatchIndex(s, -1) {
		value := 2 * (name + 1)
		if !isPersonal(s[at[2*name]:at[2*name+1]]) {
			continue
		}
		out.WriteString(s[last:at[value]])
		out.WriteString(hidden)
		last = at[value+1]
	}
	return out.String() + s[last:]
}

// level is an object or a list that contains the current position of a scan.
type level struct {
	hides bool // the whole object or list is hidden
	next  bool // the member "value"
}

// maskMembers hides the values of personal members in a JSON text, including nested ones. The text need not be valid
// JSON, because a log should show incomplete responses.
func maskMembers(s string) string {
	var out strings.Builder
	levels, last := []level{{}}, 0
	name, hides := "", false // of the member whose value follows
	blank := func(from, to int) {
		out.WriteString(s[last:from])
		out.WriteString(hidden)
		last = to
	}
	for i := 0; i < len(s); i++ {
		here := &levels[len(levels)-1]
		switch c := s[i]; {
		case c == '{' || c == '[':
			levels = append(levels, level{hides: hides || here.hides})
			name, hides = "", false
		case (c == '}' || c == ']') && len(levels) > 1:
			levels = levels[:len(levels)-1]
			name, hides = "", false
		case c == ',':
			name, hides = "", false
		case c == '"':
			end := stringEnd(s, i)
			text := s[i+1 : min(end, len(s))]
			if colon := skipSpace(s, end+1); colon < len(s) && s[colon] == ':' {
				name = text
				hides = isPersonal(text) || here.next && strings.EqualFold(name, "value")
				i = colon
				continue
			}
			if hides || here.hides {
				blank(i+1, min(end, len(s)))
			} else if slices.ContainsFunc(labels, func(label string) bool { return strings.EqualFold(label, name) }) {
				here.next = isPersonal(text)
			}
			i = end
		case (hides || here.hides) && (c >= '0' && c <= '9'):
			end := i
			for end < len(s) && strings.IndexByte("0123456789.eE+-", s[end]) >= 0 {
				end++
			}
			blank(i, end)
			i = end - 1
		}
	}
	return out.String() + s[min(last, len(s)):]
}

// stringEnd returns the position of the quote that ends a string, or the end of the text.
func stringEnd(s string, open int) int {
	for i := open + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s)
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// mostGroups is the maximum number of groups of digits in a phone number.
const mostGroups = 6

// maskNumbers hides the middle of texts that may be Ghanaian numbers: 233 or 0 and nine digits, or the nine digits of
// a mobile number. The digits may be separated by spaces, hyphens, dots and brackets.
func maskNumbers(s string) string {
	var out []byte
	groups := digitGroups(s)
	for i := 0; i < len(groups); i++ {
		for j := min(i+mostGroups, len(groups)) - 1; j >= i; j-- {
			if !joined(groups[i:j+1]) || !isNumber(s, groups[i:j+1]) {
				continue
			}
			if out == nil {
				out = []byte(s)
			}
			hideMiddle(out, groups[i:j+1])
			i = j
			break
		}
	}
	if out == nil {
		return s
	}
	return string(out)
}

// group is a run of digits. joins is set if only a separator stands between it and the next group.
type group struct {
	from, to int
	joins    bool
}

// joined reports whether only separators stand between all groups of a list.
func joined(list []group) bool {
	return !slices.ContainsFunc(list[:len(list)-1], func(g group) bool { return !g.joins })
}

func digitGroups(s string) []group {
	var all []group
	for i := 0; i < len(s); {
		if s[i] == '%' && i+2 < len(s) { // digits of a URL escape are not part of a number
			i += 3
			continue
		}
		if s[i] < '0' || s[i] > '9' {
			i++
			continue
		}
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		all = append(all, group{from: from, to: i})
	}
	for i := range len(all) - 1 {
		switch between := s[all[i].to:all[i+1].from]; between {
		case " ", "-", ".", "(", ")", ") ", " (", "%20", "+":
			all[i].joins = true
		}
	}
	return all
}

// isNumber reports whether groups of digits form a whole phone number.
func isNumber(s string, list []group) bool {
	from, to := list[0].from, list[len(list)-1].to
	escaped := from > 2 && s[from-3] == '%'
	if from > 0 && isWord(s[from-1]) && !escaped || to < len(s) && isWord(s[to]) {
		return false
	}
	digits := ""
	for _, g := range list {
		if digits += s[g.from:g.to]; len(digits) > 13 {
			return false
		}
	}
	switch len(digits) {
	case 9:
		return mobile(digits)
	case 10:
		return digits[0] == '0'
	case 12:
		return strings.HasPrefix(digits, "233")
	case 13: // +233 (0) 24 ...
		return strings.HasPrefix(digits, "2330")
	}
	return false
}

// mobile reports whether nine digits begin like the number of a mobile network.
func mobile(digits string) bool {
	return digits[0] == '2' && strings.IndexByte("03456789", digits[1]) >= 0 || digits[0] == '5' && strings.IndexByte("0345679", digits[1]) >= 0
}

// hideMiddle hides all digits except the first three and the last four.
func hideMiddle(out []byte, list []group) {
	total, at := 0, 0
	for _, g := range list {
		total += g.to - g.from
	}
	for _, g := range list {
		for i := g.from; i < g.to; i++ {
			if at >= 3 && at < total-4 {
				out[i] = '*'
			}
			at++
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || c == '*' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
