package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Generated clients compile only under these conditions: no schema has two properties that become one identifier, every schema with
// properties has a name, and every operation has its own id. Everything in the document has a description, because people read it.
func TestDocument_isFitForGenerators(t *testing.T) {
	var d map[string]any
	if err := json.Unmarshal(Document, &d); err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults(d) {
		t.Error(fault)
	}
}

// The rules find each fault that has broken a generated client.
func TestDocument_rulesFindFaults(t *testing.T) {
	for want, text := range map[string]string{
		"/a.get: operationId get is missing or used twice":  `{"paths": {"/a": {"get": {"description": "x"}}}}`,
		"/b.get: operationId x is missing or used twice":    `{"paths": {"/a": {"get": {"operationId": "x", "description": "x"}}, "/b": {"get": {"operationId": "x", "description": "x"}}}}`,
		"/a.get: no description":                            `{"paths": {"/a": {"get": {"operationId": "x"}}}}`,
		"p.post: operationId post is missing or used twice": `{"x-webhooks": {"p": {"post": {"description": "x"}}}}`,
		"/a.get.parameters.q: no description":               `{"paths": {"/a": {"get": {"operationId": "x", "description": "x", "parameters": [{"name": "q"}]}}}}`,
		"Status: no description":                            `{"components": {"parameters": {"Status": {"name": "status"}}}}`,
		"A: no description":                                 `{"components": {"schemas": {"A": {"type": "string"}}}}`,
		"A.x: no description":                               `{"components": {"schemas": {"A": {"description": "x", "properties": {"x": {"type": "string"}}}}}}`,
		"A: campaignId and campaign_id become one identifier": `{"components": {"schemas": {"A": {"description": "x", "properties": {
			"campaignId": {"description": "x"}, "campaign_id": {"description": "x"}}}}}}`,
		"A and a become one identifier":           `{"components": {"schemas": {"A": {"description": "x"}, "a": {"description": "x"}}}}`,
		"A.x: an object without a name":           `{"components": {"schemas": {"A": {"description": "x", "properties": {"x": {"description": "x", "properties": {}}}}}}}`,
		"A.items: an object without a name":       `{"components": {"schemas": {"A": {"description": "x", "items": {"properties": {}}}}}}`,
		"x.requestBody: an object without a name": `{"paths": {"/a": {"post": {"operationId": "x", "description": "x", "requestBody": {"content": {"application/json": {"schema": {"properties": {}}}}}}}}}`,
		"x.200: an object without a name":         `{"paths": {"/a": {"get": {"operationId": "x", "description": "x", "responses": {"200": {"content": {"application/json": {"schema": {"properties": {}}}}}}}}}}`,
	} {
		var d map[string]any
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(want, err)
		}
		if got := faults(d); !slices.Equal(got, []string{want}) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

type finder struct {
	ids map[string]bool
	all []string
}

// faults returns the faults that would disturb a generator or a reader.
func faults(d map[string]any) []string {
	f := &finder{ids: map[string]bool{}}
	for _, section := range []string{"paths", "x-webhooks"} {
		for path, item := range sorted(d[section]) {
			for method, operation := range sorted(item) {
				f.operation(path+"."+method, method, object(operation))
			}
		}
	}
	components := object(d["components"])
	f.distinct("", components["schemas"])
	for name, schema := range sorted(components["schemas"]) {
		f.described(name, object(schema))
		f.inside(name, object(schema))
	}
	for name, p := range sorted(components["parameters"]) {
		f.described(name, object(p))
	}
	for name, r := range sorted(components["responses"]) {
		f.content(name, object(r))
	}
	return f.all
}

func (f *finder) operation(where, method string, o map[string]any) {
	id, _ := o["operationId"].(string)
	if id == "" {
		f.add("%s: operationId %s is missing or used twice", where, method)
	} else if f.ids[id] {
		f.add("%s: operationId %s is missing or used twice", where, id)
	}
	f.ids[id] = true
	f.described(where, o)
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		f.described(fmt.Sprintf("%s.parameters.%v", where, object(p)["name"]), object(p))
	}
	f.content(id+".requestBody", object(o["requestBody"]))
	for status, r := range sorted(o["responses"]) {
		f.content(id+"."+status, object(r))
	}
}

func (f *finder) content(where string, body map[string]any) {
	for _, c := range sorted(body["content"]) {
		f.unnamed(where, object(object(c)["schema"]))
	}
}

// inside checks the parts of a named schema.
func (f *finder) inside(where string, s map[string]any) {
	f.distinct(where+": ", s["properties"])
	for name, p := range sorted(s["properties"]) {
		f.described(where+"."+name, object(p))
		f.unnamed(where+"."+name, object(p))
	}
	f.unnamed(where+".items", object(s["items"]))
}

func (f *finder) unnamed(where string, s map[string]any) {
	if _, is := s["properties"]; is {
		f.add("%s: an object without a name", where)
		return
	}
	if items := object(s["items"]); len(items) > 0 {
		f.unnamed(where+".items", items)
	}
}

// distinct finds names that differ only in case and underscores.
func (f *finder) distinct(where string, named any) {
	before := map[string]string{}
	for name := range sorted(named) {
		folded := strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
		if other := before[folded]; other != "" {
			f.add("%s%s and %s become one identifier", where, other, name)
		}
		before[folded] = name
	}
}

// described finds parts without a description. A reference has the description of its target.
func (f *finder) described(where string, m map[string]any) {
	text, _ := m["description"].(string)
	if _, refers := m["$ref"]; !refers && strings.TrimSpace(text) == "" {
		f.add("%s: no description", where)
	}
}

func (f *finder) add(format string, args ...any) { f.all = append(f.all, fmt.Sprintf(format, args...)) }

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// sorted yields the members of an object in the order of their names.
func sorted(v any) func(yield func(string, any) bool) {
	m := object(v)
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
