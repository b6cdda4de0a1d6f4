// Package openapi carries the interface of Makola as an OpenAPI 3.0.3
// document, written by hand. It is served as it stands, and it is the source
// of the bad-input suite and of the check that every scenario's request and
// answer passes. A test in package api holds the document and the route table
// to each other in both directions, so that neither can drift.
package openapi

import _ "embed"

// Document is the text of the document, JSON in UTF-8.
//
//go:embed openapi.json
var Document []byte
