// Package apitest holds a running Makola to its own interface document. It reads the OpenAPI document and checks
// requests and answers against it, including undeclared members. It makes bad requests of every kind for each field
// of each endpoint, with the required answer. Only tests of package api and of package app use it.
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
	webhooks   map[string]*openapi3.PathItem
}

// Operation is one method of one path.
type Operation struct {
	ID, Method, Path string
	Fields           []Field // of the path, the query and the body
	BodyLimit        int64   // bytes; 0: the usual
	Rate             Rate
	op               *openapi3.Operation
}

// Rate is a limit of an operation's own; none when it is zero.
type Rate struct {
	Requests int64 `json:"requests"`
	Seconds  int64 `json:"window_s"`
	// OfKey is how many of them one key may make; 0: all.
	OfKey int64 `json:"of_key"`
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
func Load() (*Document, error) { return LoadText(openapi.Document) }

// LoadText is Load for the document that a server returned.
func LoadText(text []byte) (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
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
			o := Operation{ID: op.OperationID, Method: method, Path: path, Fields: fields(op), op: op}
			if err := errors.Join(again(op.Extensions["x-ratelimit"], &o.Rate), again(op.Extensions["x-body-limit"], &o.BodyLimit)); err != nil {
				return nil, fmt.Errorf("%s: %w", o.ID, err)
			}
			d.Operations = append(d.Operations, o)
		}
	}
	if err := again(doc.Extensions["x-webhooks"], &d.webhooks); err != nil {
		return nil, err
	}
	return d, d.resolveWebhooks()
}

// resolveWebhooks resolves the references of the webhooks' bodies, because the loader ignores those in an extension.
func (d *Document) resolveWebhooks() error {
	for kind, item := range d.webhooks {
		for _, media := range item.Post.RequestBody.Value.Content {
			if named := d.doc.Components.Schemas[strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")]; named != nil {
				media.Schema = named
			}
			if media.Schema.Value == nil {
				return fmt.Errorf("the webhook %s: no schema %s", kind, media.Schema.Ref)
			}
		}
	}
	return nil
}

// again decodes the content of an extension.
func again(extension, into any) error {
	if extension == nil {
		return nil
	}
	text, err := json.Marshal(extension)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// Limited reports whether the document lists 429 among an operation's answers.
func (o Operation) Limited() bool { return o.op.Responses.Status(http.StatusTooManyRequests) != nil }

// Example is the body of the operation's example, nil where it takes none.
func (o Operation) Example() ([]byte, error) {
	if o.op.RequestBody == nil {
		return nil, nil
	}
	return json.Marshal(o.op.RequestBody.Value.Content.Get("application/json").Example)
}

// Codes returns the codes of errors.
func (d *Document) Codes() []string {
	return words(d.doc.Components.Schemas["Error"].Value.Properties["code"].Value)
}

// Reasons returns the reasons of failed payments.
func (d *Document) Reasons() []string { return words(d.doc.Components.Schemas["Reason"].Value) }

func words(s *openapi3.Schema) []string {
	var all []string
	for _, v := range s.Enum {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// Webhooks returns the kinds of requests to a callback_url.
func (d *Document) Webhooks() []string { return slices.Sorted(maps.Keys(d.webhooks)) }

// CheckWebhook returns the differences between a webhook and each documented kind; nil when it matches one.
func (d *Document) CheckWebhook(header http.Header, body []byte) error {
	value, err := read(body)
	if err != nil {
		return err
	}
	var all []error
	for kind, item := range d.webhooks {
		var wrong []error
		for _, p := range item.Post.Parameters {
			if err := p.Value.Schema.Value.VisitJSON(header.Get(p.Value.Name)); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", p.Value.Name, err))
			}
		}
		schema := item.Post.RequestBody.Value.Content.Get(header.Get("Content-Type")).Schema.Value
		wrong = append(wrong, schema.VisitJSON(value, openapi3.MultiErrors()), undeclared("", schema, value))
		if err := errors.Join(wrong...); err != nil {
			all = append(all, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		return nil
	}
	return errors.Join(all...)
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

// CheckRequest returns the differences between a body and the document.
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

// CheckAnswer returns the differences between an answer and the document: a status that it does not list, a wrong
// type, or a missing or undeclared member.
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
	if response != nil {
		if err := o.checkHeaders(status, response.Value.Headers, header); err != nil {
			return err
		}
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

// limitHeaders lists headers that only some clients get, and that the document declares where they may appear.
var limitHeaders = []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "Retry-After", "Idempotent-Replayed"}

// checkHeaders returns undeclared and missing headers. An operation with a limit of its own sends the limit's headers
// with every answer that comes after the checks of key and size.
func (o Operation) checkHeaders(status int, declared openapi3.Headers, header http.Header) error {
	for _, name := range limitHeaders {
		if header.Get(name) != "" && declared[name] == nil {
			return fmt.Errorf("the document does not declare the header %s with %d", name, status)
		}
	}
	if o.Rate.Requests > 0 && status != http.StatusUnauthorized && status != http.StatusRequestEntityTooLarge {
		for _, name := range limitHeaders[:4] {
			if header.Get(name) == "" {
				return fmt.Errorf("the header %s is missing", name)
			}
		}
		// The header shows the limit with the fewest requests left: the tenant's, or its key's.
		is := func(requests int64) bool {
			return strings.HasSuffix(header.Get("RateLimit-Policy"), fmt.Sprintf(";q=%d;w=%d", requests, o.Rate.Seconds))
		}
		if !is(o.Rate.Requests) && (o.Rate.OfKey == 0 || !is(o.Rate.OfKey)) {
			return fmt.Errorf("the limit is %s, want %+v", header.Get("RateLimit-Policy"), o.Rate)
		}
	}
	if wait := status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable; wait && header.Get("Retry-After") == "" {
		return fmt.Errorf("Retry-After is missing")
	}
	return nil
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
			if same, ok := sameAs(s, name); ok {
				if member != v[same] {
					all = append(all, fmt.Errorf("%s.%s is not the same as %s", where, name, same))
				}
				continue
			}
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

// sameAs returns the member whose value a member repeats under another spelling.
// A document that declares both breaks generated clients.
func sameAs(s *openapi3.Schema, name string) (same string, ok bool) {
	all, _ := s.Extensions["x-same-as"].(map[string]any)
	same, ok = all[name].(string)
	return same, ok
}
