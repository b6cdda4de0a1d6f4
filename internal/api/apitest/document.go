// Package apitest holds a running Makola to its own interface document. It
// reads the OpenAPI document, checks that a request and its answer are what the
// document says (members that it does not declare included), and makes every
// bad request that can be thought of for each field of each endpoint, with what
// the answer must be. Tests of package api and of package app use it; nothing
// else does.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/makola/makola/openapi"
)

// Document is the OpenAPI document, loaded and valid.
type Document struct {
	doc        *openapi3.T
	Operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	ID, Method, Path string
	Fields           []Field // of the path, the query and the body
	op               *openapi3.Operation
}

// Field is one input of an operation.
type Field struct {
	Name     string
	In       string // path, query, header or body
	Kind     string // x-kind of its schema
	Required bool
	Minimum  string // x-minimum of amounts, minimum of numbers
	Maximum  string
	MaxLen   uint64 // 0: none
	Enum     []string
}

// Load reads the document and refuses one that is not valid OpenAPI.
func Load() (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return nil, err
	}
	d := &Document{doc: doc}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			op := item.Operations()[method]
			d.Operations = append(d.Operations, Operation{ID: op.OperationID, Method: method, Path: path, Fields: fields(op), op: op})
		}
	}
	return d, nil
}

// Operation finds an operation by its id.
func (d *Document) Operation(id string) (Operation, bool) {
	i := slices.IndexFunc(d.Operations, func(o Operation) bool { return o.ID == id })
	if i < 0 {
		return Operation{}, false
	}
	return d.Operations[i], true
}

// Match finds the operation of a request by method and escaped path.
func (d *Document) Match(method, path string) (Operation, bool) {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best, found := Operation{}, false
next:
	for _, o := range d.Operations {
		want := strings.Split(o.Path, "/")
		if o.Method != method || len(want) != len(segments) {
			continue
		}
		for i := range want {
			if !strings.HasPrefix(want[i], "{") && want[i] != segments[i] {
				continue next
			}
		}
		best, found = o, true
		if !strings.Contains(o.Path, "{") {
			break
		}
	}
	return best, found
}

func fields(op *openapi3.Operation) []Field {
	var all []Field
	for _, p := range op.Parameters {
		all = append(all, field(p.Value.Name, p.Value.In, p.Value.Required, p.Value.Schema.Value))
	}
	if op.RequestBody == nil {
		return all
	}
	schema := op.RequestBody.Value.Content.Get("application/json").Schema.Value
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		all = append(all, field(name, "body", slices.Contains(schema.Required, name), schema.Properties[name].Value))
	}
	return all
}

func field(name, in string, required bool, s *openapi3.Schema) Field {
	f := Field{Name: name, In: in, Required: required, Kind: extension(s, "x-kind"), Minimum: extension(s, "x-minimum"), Maximum: extension(s, "x-maximum")}
	if s.Min != nil {
		f.Minimum = strconv.FormatFloat(*s.Min, 'f', -1, 64)
	}
	if s.Max != nil {
		f.Maximum = strconv.FormatFloat(*s.Max, 'f', -1, 64)
	}
	if s.MaxLength != nil {
		f.MaxLen = *s.MaxLength
	}
	for _, v := range s.Enum {
		f.Enum = append(f.Enum, fmt.Sprint(v))
	}
	return f
}

func extension(s *openapi3.Schema, name string) string {
	text, _ := s.Extensions[name].(string)
	return text
}

// CheckRequest says how a body differs from what the document asks for.
func (d *Document) CheckRequest(o Operation, body []byte) error {
	if o.op.RequestBody == nil {
		return nil
	}
	value, err := read(body)
	if err != nil {
		return err
	}
	schema := o.op.RequestBody.Value.Content.Get("application/json").Schema.Value
	return schema.VisitJSON(value, openapi3.VisitAsRequest(), openapi3.MultiErrors())
}

// CheckAnswer says how an answer differs from what the document promises: a
// status that it does not list, a wrong type, a member that is missing or that
// it does not declare.
func (d *Document) CheckAnswer(o Operation, status int, header http.Header, body []byte) error {
	response := o.op.Responses.Status(status)
	if response == nil && status != http.StatusMethodNotAllowed {
		return fmt.Errorf("the document lists no status %d for %s %s", status, o.Method, o.Path)
	}
	if got := header.Get("Content-Type"); got != "application/json" {
		return fmt.Errorf("Content-Type is %q", got)
	}
	if header.Get("X-Request-Id") == "" || header.Get("Cache-Control") != "no-store" {
		return fmt.Errorf("the headers lack X-Request-Id or Cache-Control: %v", header)
	}
	value, err := read(body)
	if err != nil {
		return err
	}
	schema := d.doc.Components.Schemas["Error"].Value
	if response != nil {
		schema = response.Value.Content.Get("application/json").Schema.Value
	}
	if err := schema.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.MultiErrors()); err != nil {
		return err
	}
	return undeclared("", schema, value)
}

func read(body []byte) (value any, err error) {
	if !json.Valid(body) {
		return nil, fmt.Errorf("this is no JSON: %.200q", body)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	return value, decoder.Decode(&value)
}

// undeclared finds members of an answer that the document does not know.
func undeclared(where string, s *openapi3.Schema, value any) error {
	var all []error
	switch v := value.(type) {
	case map[string]any:
		if len(s.Properties) == 0 {
			return nil // any object
		}
		for name, member := range v {
			property := s.Properties[name]
			if property == nil {
				all = append(all, fmt.Errorf("the document does not declare %s.%s", where, name))
				continue
			}
			all = append(all, undeclared(where+"."+name, property.Value, member))
		}
	case []any:
		if s.Items == nil {
			return nil
		}
		for i, item := range v {
			all = append(all, undeclared(fmt.Sprintf("%s[%d]", where, i), s.Items.Value, item))
		}
	}
	return errors.Join(all...)
}
