package guides

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed reference.html
var referenceText string

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
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]*parameter
	}
}

// operation is one endpoint.
type operation struct {
	ID                   string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Parameters           []*parameter
	RequestBody          *struct {
		Content map[string]struct {
			Schema  *schema
			Example json.RawMessage
		}
	}
	Responses members[json.RawMessage]

	// The fields below are not in the document.
	Method, Path string      `json:"-"`
	Example      string      `json:"-"` // of the body, indented
	Fields       []field     `json:"-"` // of the body
	Inputs       []parameter `json:"-"` // of the path and the query
	Statuses     []status    `json:"-"`
}

// parameter is a parameter of the path, the query or a header.
type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               any
}

// schema is as much of a schema as a row of a table shows.
type schema struct {
	Ref               string `json:"$ref"`
	Type, Description string
	Enum              []any
	Default           any
	Required          []string
	Properties        members[*schema]
	Items             *schema
	AllOf, OneOf      []*schema
}

// field is a row of the table of a body.
type field struct {
	Name, Type, Text string
	Required         bool
}

type status struct {
	Code, Text string
}

// group is the endpoints of one tag.
type group struct {
	Name, Description string
	Operations        []operation
}

// Anchor is the id of the group's heading: an endpoint may have the name of its group.
func (g group) Anchor() string { return "endpoints-" + strings.ReplaceAll(g.Name, " ", "-") }

// reference adds the page of the interface.
func (r *renderer) reference(title string) error {
	var d document
	if err := json.Unmarshal(r.values.Document, &d); err != nil {
		return fmt.Errorf("guides: the OpenAPI document: %w", err)
	}
	groups := make([]group, len(d.Tags))
	at := map[string]int{}
	for i, t := range d.Tags {
		groups[i], at[t.Name] = group{Name: t.Name, Description: t.Description}, i
	}
	for _, path := range d.Paths {
		for _, method := range path.Value {
			o := method.Value
			o.Method, o.Path = strings.ToUpper(method.Name), path.Name
			d.complete(&o)
			for _, tag := range o.Tags {
				g := &groups[at[tag]]
				g.Operations = append(g.Operations, o)
			}
		}
	}
	page, err := template.New("reference").Funcs(template.FuncMap{"prose": r.prose}).Parse(referenceText)
	if err != nil {
		return fmt.Errorf("guides: the reference: %w", err)
	}
	var body bytes.Buffer
	if err := page.Execute(&body, groups); err != nil {
		return fmt.Errorf("guides: the reference: %w", err)
	}
	return r.lay("reference", title, http.StatusOK, template.HTML(body.String())) // made by html/template
}

// prose renders a description, which is Markdown.
func (r *renderer) prose(text string) (template.HTML, error) {
	var out bytes.Buffer
	err := r.markdown.Convert([]byte(text), &out)
	return template.HTML(out.String()), err // made of our own document; Markdown drops HTML
}

// complete fills in the derived values of an operation for the page.
func (d *document) complete(o *operation) {
	for _, p := range o.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok && d.Components.Parameters[name] != nil {
			p = d.Components.Parameters[name]
		}
		if p.In == "path" || p.In == "query" {
			shown := *p
			shown.Schema = d.resolve(p.Schema)
			if shown.Description == "" {
				shown.Description = shown.Schema.Description
			}
			o.Inputs = append(o.Inputs, shown)
		}
	}
	for _, r := range o.Responses {
		text := r.Name
		if code, err := json.Number(r.Name).Int64(); err == nil {
			text = http.StatusText(int(code))
		}
		o.Statuses = append(o.Statuses, status{r.Name, text})
	}
	if o.RequestBody == nil {
		return
	}
	content := o.RequestBody.Content["application/json"]
	var example bytes.Buffer
	if json.Indent(&example, content.Example, "", "  ") == nil {
		o.Example = example.String()
	}
	s := d.resolve(content.Schema)
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	for _, p := range s.Properties {
		o.Fields = append(o.Fields, field{p.Name, d.kind(p.Value), d.about(p.Value), required[p.Name]})
	}
}

// resolve follows references; a missing one is an empty schema.
func (d *document) resolve(s *schema) *schema {
	for range 8 { // a chain that is longer leads round
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
	switch {
	case len(s.OneOf) > 0:
		var all []string
		for _, one := range s.OneOf {
			all = append(all, d.kind(one))
		}
		return strings.Join(all, " or ")
	case s.Type == "array":
		return "list of " + d.kind(s.Items)
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// about describes a field: its description, its allowed values, and its default.
func (d *document) about(s *schema) string {
	s = d.resolve(s)
	var parts []string
	if s.Description != "" {
		parts = append(parts, s.Description)
	}
	if len(s.Enum) > 0 {
		var words []string
		for _, w := range s.Enum {
			words = append(words, fmt.Sprint(w))
		}
		parts = append(parts, "One of "+strings.Join(words, ", ")+".")
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("Default: %v.", s.Default))
	}
	return strings.Join(parts, " ")
}
