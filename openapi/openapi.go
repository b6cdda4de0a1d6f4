// Package openapi carries the interface of Makola as an OpenAPI 3.0.3 document, written by hand. Servers return it
// unchanged, except for the address of the server and the ids of the demo account in its examples. The bad-input suite is
// made from it, and every request and answer of a scenario is checked against it. A test in package api compares the
// document with the table of routes in both directions.
package openapi

import (
	"bytes"
	_ "embed"
)

// Document is the text of the document, JSON in UTF-8.
//
//go:embed openapi.json
var Document []byte

// Placeholders in the document for the values that each installation has of its own.
const (
	server = `"servers": [{"url": "/"}]`
	sender = "11111111-1111-4111-8111-111111111111"
	group  = "22222222-2222-4222-8222-222222222222"
)

// For gives the document of the server at url, which needs no quoting in JSON. Its
// examples have the given sender ID and contact group; an empty one leaves them.
func For(url, senderID, groupID string) []byte {
	text := bytes.Replace(Document, []byte(server), []byte(`"servers": [{"url": "`+url+`"}]`), 1)
	for example, id := range map[string]string{sender: senderID, group: groupID} {
		if id != "" {
			text = bytes.ReplaceAll(text, []byte(example), []byte(id))
		}
	}
	return text
}
