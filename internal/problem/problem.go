// Package problem is the one error type that crosses package borders. A domain package that refuses a request returns
// an *Error. Its kind does not depend on a transport, and it wraps the cause if there is one. The transports (JSON,
// command line, console) map the kind to their own status and log the error once, at the edge. Nothing in between
// logs it. A provider's response is a value (package provider) and never an Error. Otherwise code that refunds on any
// error could be written by accident.
package problem

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Kind classifies an error. A transport maps each kind to exactly one of its statuses.
type Kind string

// The kinds, with the HTTP status that the JSON transport gives each.
const (
	Malformed           Kind = "malformed"            // 400: the request could not be read
	Unauthenticated     Kind = "unauthenticated"      // 401
	Forbidden           Kind = "forbidden"            // 403
	NotFound            Kind = "not_found"            // 404
	Invalid             Kind = "invalid"              // 422: fields
	Duplicate           Kind = "duplicate"            // 422: a reference that was used before
	InsufficientFunds   Kind = "insufficient_funds"   // 400
	InsufficientCredits Kind = "insufficient_credits" // 402
	Refused             Kind = "refused"              // 400: the provider refused it, and the money is back
	InProgress          Kind = "in_progress"          // 409
	Gone                Kind = "gone"                 // 410
	TooLarge            Kind = "too_large"            // 413
	RateLimited         Kind = "rate_limited"         // 429
	Internal            Kind = "internal"             // 500
	Unavailable         Kind = "unavailable"          // 503
)

// Error is a refusal. Message is shown to people. Cause is only for the log.
type Error struct {
	Kind       Kind
	Code       string              // stable word for programs, such as "collections_disabled"
	Message    string              // shown to the caller
	Fields     map[string][]string // the texts of each bad field, Kind Invalid only
	Data       any                 // the data member of the answer, such as the existing row of a duplicate
	RetryAfter time.Duration       // when positive, how long the caller should wait
	Cause      error
}

// CodeInvalidFields is the code of every error that lists fields.
const CodeInvalidFields = "invalid_fields"

// Error renders the message, the bad fields and the cause, for a log line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Message == "" {
		b.WriteString(string(e.Kind))
	}
	for _, name := range e.FieldNames() {
		b.WriteString(" [" + name + ": " + strings.Join(e.Fields[name], ", ") + "]")
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// FieldNames gives the names of the bad fields in order.
func (e *Error) FieldNames() []string {
	names := make([]string, 0, len(e.Fields))
	for name := range e.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New makes a refusal without a cause.
func New(k Kind, code, message string) *Error {
	return &Error{Kind: k, Code: code, Message: message}
}

// Wrap makes a refusal that was caused by err.
func Wrap(err error, k Kind, code, message string) *Error {
	return &Error{Kind: k, Code: code, Message: message, Cause: err}
}

// Field makes the refusal of one field. text follows "The ... field", without a
// full stop, as in every message of the interface.
func Field(field, text string) *Error {
	return invalid(map[string][]string{field: {text}})
}

// From finds the *Error in err. Any other error becomes Internal, with err as its cause and no part of it in the
// message. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Code: "internal_error", Message: "Something went wrong", Cause: err}
}

// Is reports whether err is, or wraps, an Error of kind k.
func Is(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}

// Fields collects the texts of bad fields, so that one answer names all of them. The zero value is ready.
type Fields struct {
	texts map[string][]string
}

// Add records that a field is bad and why. The same text twice counts once.
func (f *Fields) Add(field, text string) {
	if f.texts == nil {
		f.texts = map[string][]string{}
	}
	if !slices.Contains(f.texts[field], text) {
		f.texts[field] = append(f.texts[field], text)
	}
}

// Merge adds every field of err, if err lists fields, and reports whether it did.
func (f *Fields) Merge(err error) bool {
	var e *Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return false
	}
	for _, name := range e.FieldNames() {
		for _, text := range e.Fields[name] {
			f.Add(name, text)
		}
	}
	return true
}

// Has reports whether a field was recorded as bad.
func (f *Fields) Has(field string) bool { return len(f.texts[field]) > 0 }

// Err returns nil if no field is bad.
func (f *Fields) Err() error {
	if len(f.texts) == 0 {
		return nil
	}
	return invalid(f.texts)
}

// invalid makes the error of bad fields. The message names them, because some
// clients show nothing else.
func invalid(fields map[string][]string) *Error {
	e := &Error{Kind: Invalid, Code: CodeInvalidFields, Fields: fields}
	names := e.FieldNames()
	e.Message = "The " + names[0] + " field " + fields[names[0]][0]
	if len(names) > 1 {
		e.Message = "The given data was invalid: " + strings.Join(names, ", ")
	}
	return e
}
