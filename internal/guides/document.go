package guides

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// members are the members of a JSON object in the order in which they are written.
type members[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads an object member by member.
func (m *members[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want an object, not %v: %w", t, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var one member[T]
		one.Name, _ = name.(string)
		if err := d.Decode(&one.Value); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		*m = append(*m, one)
	}
	return nil
}

// document is the part of an OpenAPI document that the page shows.
type document struct {
	Tags []struct {
		Name, Description string
	}
	Paths      members[members[operation]]
	Webhooks   members[members[operation]] `json:"x-webhooks"`
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]*parameter
	}
}

// content is a JSON body with its schema.
type content struct {
	Content map[string]struct {
		Schema  *schema
		Example json.RawMessage
	}
}

// operation is one endpoint, or one webhook.
type operation struct {
	ID                   string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Parameters           []*parameter
	RequestBody          *content
	Responses            members[content]

	// The fields below are not in the document.
	Method, Path string      `json:"-"`
	Example      string      `json:"-"` // example of the body, indented
	Fields       []field     `json:"-"` // of the body
	Inputs       []parameter `json:"-"` // of the path, the query and, for a webhook, the header
	Statuses     []status    `json:"-"`
	Answer       []field     `json:"-"` // of the body of the first 2xx status
	Samples      []sample    `json:"-"`
}

// parameter is a parameter of the path, the query or a header.
type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               any
}

// schema is the part of a schema that a row of a table shows.
type schema struct {
	Ref                       string `json:"$ref"`
	Type, Format, Description string
	Nullable                  bool
	Enum                      []any
	Default                   any
	Required                  []string
	Properties                members[*schema]
	Items                     *schema
	AllOf, OneOf              []*schema
	MinLength, MaxLength      *int
	MinItems, MaxItems        *int
	Minimum, Maximum          *json.Number
	KindMinimum               string `json:"x-minimum"`
	KindMaximum               string `json:"x-maximum"`
}

// field is a row of the table of a body. A member of a nested object has a dotted name, and a member of a list's items
// has "[]" after the list's name.
type field struct {
	Name, Type, Text string
	Required         bool
}

type status struct {
	Code, Text string
}

// nested is the maximum number of levels of objects in a table.
const nested = 4

// complete fills in the derived values of an operation for the page.
func (d *document) complete(o *operation, in ...string) {
	for _, p := range o.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok && d.Components.Parameters[name] != nil {
			p = d.Components.Parameters[name]
		}
		if slices.Contains(in, p.In) {
			shown := *p
			shown.Schema = d.resolve(p.Schema)
			if shown.Description == "" {
				shown.Description = shown.Schema.Description
			}
			shown.Description = sentences(shown.Description, limits(shown.Schema))
			o.Inputs = append(o.Inputs, shown)
		}
	}
	for _, r := range o.Responses {
		text := r.Name
		if code, err := json.Number(r.Name).Int64(); err == nil {
			text = http.StatusText(int(code))
		}
		o.Statuses = append(o.Statuses, status{r.Name, text})
		if body := r.Value.Content["application/json"].Schema; body != nil && strings.HasPrefix(r.Name, "2") && o.Answer == nil {
			o.Answer = d.fields("", body, nested)
		}
	}
	if o.RequestBody == nil {
		return
	}
	body := o.RequestBody.Content["application/json"]
	var example bytes.Buffer
	if json.Indent(&example, body.Example, "", "  ") == nil {
		o.Example = example.String()
	}
	o.Fields = d.fields("", body.Schema, nested)
}

// fields lists the members of an object and of the objects inside it, to a depth of levels.
func (d *document) fields(prefix string, s *schema, levels int) []field {
	s = d.resolve(s)
	if s.Type == "array" {
		return d.fields(strings.TrimSuffix(prefix, ".")+"[].", s.Items, levels)
	}
	var rows []field
	for _, part := range s.AllOf {
		rows = append(rows, d.fields(prefix, part, levels)...)
	}
	for _, p := range s.Properties {
		rows = append(rows, field{prefix + p.Name, d.kind(p.Value), d.about(p.Value), slices.Contains(s.Required, p.Name)})
		if levels > 1 {
			rows = append(rows, d.fields(prefix+p.Name+".", p.Value, levels-1)...)
		}
	}
	return rows
}

// resolve follows references. For a missing target it returns an empty schema.
func (d *document) resolve(s *schema) *schema {
	for range 8 { // a longer chain is a cycle
		if s == nil {
			break
		}
		name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/")
		if !ok {
			return s
		}
		s = d.Components.Schemas[name]
	}
	return &schema{}
}

// kind names the type of a field.
func (d *document) kind(s *schema) string {
	s = d.resolve(s)
	kind := s.Type
	switch {
	case len(s.OneOf) > 0:
		var all []string
		for _, one := range s.OneOf {
			all = append(all, d.kind(one))
		}
		kind = strings.Join(all, " or ")
	case s.Type == "array":
		kind = "list of " + d.kind(s.Items)
	case s.Type == "":
		return "any"
	case s.Format == "uuid", s.Format == "date-time":
		kind += " (" + s.Format + ")"
	}
	if s.Nullable {
		kind += " or null"
	}
	return kind
}

// about describes a field: its description, its limits, its allowed values, and its default.
func (d *document) about(s *schema) string {
	s = d.resolve(s)
	text := sentences(s.Description, limits(s))
	if s.Type == "array" {
		text = sentences(text, limits(d.resolve(s.Items)))
	}
	var words []string
	for _, w := range s.Enum {
		if w != nil {
			words = append(words, fmt.Sprintf("`%v`", w))
		}
	}
	switch len(words) {
	case 0:
	case 1:
		text = sentences(text, "Always "+words[0]+".")
	default:
		text = sentences(text, "One of "+strings.Join(words, ", ")+".")
	}
	if s.Default != nil {
		text = sentences(text, fmt.Sprintf("Default: `%v`.", s.Default))
	}
	return text
}

// limits describes the smallest and the largest length, count or value that a schema allows.
func limits(s *schema) string {
	var parts []string
	between := func(least, most *int, unit string) {
		switch {
		case least != nil && most != nil && *least > 1:
			parts = append(parts, fmt.Sprintf("%d to %d %s.", *least, *most, unit))
		case most != nil:
			parts = append(parts, fmt.Sprintf("At most %d %s.", *most, unit))
		case least != nil && *least > 1:
			parts = append(parts, fmt.Sprintf("At least %d %s.", *least, unit))
		}
	}
	between(s.MinLength, s.MaxLength, "characters")
	between(s.MinItems, s.MaxItems, "items")
	switch {
	case s.KindMinimum != "":
	case s.Minimum != nil && s.Maximum != nil:
		parts = append(parts, fmt.Sprintf("%s to %s.", s.Minimum, s.Maximum))
	case s.Minimum != nil && s.Minimum.String() != "0":
		parts = append(parts, fmt.Sprintf("At least %s.", s.Minimum))
	case s.Maximum != nil:
		parts = append(parts, fmt.Sprintf("At most %s.", s.Maximum))
	}
	return strings.Join(parts, " ")
}

// sentences joins texts with a space, and ends each with a full stop.
func sentences(texts ...string) string {
	var all []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			if !strings.HasSuffix(t, ".") {
				t += "."
			}
			all = append(all, t)
		}
	}
	return strings.Join(all, " ")
}
