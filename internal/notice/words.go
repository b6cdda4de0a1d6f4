package notice

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/usertext"
)

// The limits of a message.
const (
	mostLines = 10 // of one notice
	mostLine  = 200
	mostName  = 40
	mostTitle = 120
	mostFacts = 20 // notices that one message lists
)

// Name quotes a name that a customer chose, on one line and with at most 40 characters.
func Name(text string) string {
	return `"` + strings.ReplaceAll(cut(flat(text), mostName), `"`, "'") + `"`
}

// digits matches a possible phone, account or card number. An amount has at most three digits between its separators.
var digits = regexp.MustCompile(`\d(?:[ \-]?\d){6,}`)

// uuids keeps ids out of the search for numbers.
var uuids = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// line returns a text as one line of a message, without complete numbers.
func line(text string) string { return masked(cut(flat(text), mostLine)) }

// masked hides all but the last three digits of complete numbers.
func masked(text string) string {
	var out strings.Builder
	for text != "" {
		at := uuids.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		out.WriteString(digits.ReplaceAllStringFunc(text[:at[0]], func(n string) string { return "..." + n[len(n)-3:] }))
		out.WriteString(text[at[0]:at[1]])
		text = text[at[1]:]
	}
	return out.String()
}

// flat returns a text on one line, with only visible characters.
func flat(text string) string {
	return strings.Join(strings.FieldsFunc(usertext.Visible(strings.ToValidUTF8(text, "")), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

// part has the notices of one event at one place in a message.
type part struct {
	event  Event
	place  string
	things int
	lines  []string
}

// title returns the title of a part.
func (p part) title() string {
	r := eventRules[p.event]
	switch {
	case p.things > 1 && r.many != "":
		return fmt.Sprintf(r.many, p.things)
	}
	return r.one
}

// letter is a message before it is stored.
type letter struct{ title, body string }

// compose writes a message of several parts in plain text. public is the URL of this server. If it is empty, the message has
// no links.
func compose(parts []part, names map[string]string, public string) letter {
	var b strings.Builder
	for n, p := range parts {
		if n == mostFacts {
			fmt.Fprintf(&b, "There are %d more notices. Sign in to see them.\n\n", len(parts)-n)
			break
		}
		b.WriteString(p.title())
		if p.place != roles.Installation {
			b.WriteString(" (account " + Name(names[p.place]) + ")")
		}
		b.WriteString("\n")
		for _, l := range p.lines[:min(len(p.lines), mostLines)] {
			b.WriteString("  - " + l + "\n")
		}
		if more := p.things - min(len(p.lines), mostLines); more > 0 && len(p.lines) > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
		if rule := eventRules[p.event]; public != "" && rule.path != "" {
			b.WriteString("  " + public + base(p.place) + rule.path + "\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("Nothing can be approved by a link: sign in to decide.\n")
	if public != "" {
		b.WriteString("Choose your notices: " + public + "/account/notices\n")
	}
	title := parts[0].title()
	if len(parts) > 1 {
		title = fmt.Sprintf("%s, and %d more", title, len(parts)-1)
	}
	return letter{"Makola: " + cut(title, mostTitle), b.String()}
}

// base returns the path prefix of a place's pages.
func base(place string) string {
	if place == roles.Installation {
		return "/ops"
	}
	return "/app/" + place
}
