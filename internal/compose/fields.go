package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// field is a name in braces, with an optional text for recipients without a value: {first_name|friend}. Braces around anything
// else are text. Braces inside an inserted value are not parsed.
var field = regexp.MustCompile(`\{+\s*([\p{L}][\p{L}\p{N}_ ]{0,39})\s*(\|[^{}]*)?\}+`)

// message is a text divided at its fields.
type message struct {
	texts  []string // one more than fields
	fields []filling
}

// filling is a field of a text.
type filling struct {
	column   int
	instead  string // for recipients without a value
	optional bool
}

// parse divides a text at its fields, which must be among the names.
func parse(text string, names []string) (m message, err error) {
	from := 0
	for _, at := range field.FindAllStringSubmatchIndex(text, -1) {
		whole, name := text[at[0]:at[1]], fieldName(text[at[2]:at[3]])
		if strings.HasPrefix(whole, "{{") || strings.HasSuffix(whole, "}}") {
			return m, problem.Field("message", fmt.Sprintf("has %s: write a field with one brace on each side, such as {%s}", whole, name))
		}
		f := filling{column: slices.Index(names, name)}
		if f.column < 0 {
			return m, problem.Field("message", fmt.Sprintf("has the field {%s}, which no recipient has. %s", name, listed(names)))
		}
		if at[4] >= 0 {
			f.instead, f.optional = text[at[4]+1:at[5]], true
		}
		m.texts, m.fields = append(m.texts, text[from:at[0]]), append(m.fields, f)
		from = at[1]
	}
	m.texts = append(m.texts, text[from:])
	return m, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "Only recipients from contact groups and files have fields"
	}
	return "The fields are {" + strings.Join(names, "}, {") + "}"
}

// fieldName returns the name of a field from a heading or a text: "First Name" is first_name.
func fieldName(text string) string { return strings.ReplaceAll(sheet.Heading(text), " ", "_") }

// fill returns the text with the values of a recipient. whole is false if a field has no value and no text for that case.
func (m message) fill(values []string) (text string, whole bool) {
	if len(m.fields) == 0 {
		return m.texts[0], true
	}
	var b strings.Builder
	for i, f := range m.fields {
		value := ""
		if f.column < len(values) {
			value = values[f.column]
		}
		if value == "" {
			if !f.optional {
				return "", false
			}
			value = f.instead
		}
		b.WriteString(m.texts[i])
		b.WriteString(value)
	}
	b.WriteString(m.texts[len(m.fields)])
	return b.String(), true
}
