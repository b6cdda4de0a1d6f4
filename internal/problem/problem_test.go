package problem

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestFrom_findsTheWrappedError(t *testing.T) {
	inner := New(NotFound, "payment_not_found", "Payment not found")
	wrapped := fmt.Errorf("status: %w", inner)
	if got := From(wrapped); got != inner {
		t.Fatalf("From gave %v, want the error inside", got)
	}
	if !Is(wrapped, NotFound) || Is(wrapped, Invalid) || Is(io.EOF, NotFound) || Is(nil, NotFound) {
		t.Fatal("Is does not tell the kinds apart")
	}
	if From(nil) != nil {
		t.Fatal("From(nil) is not nil")
	}
}

func TestFrom_hidesUnknownErrors(t *testing.T) {
	got := From(errors.New("dial tcp 10.0.0.3: refused"))
	if got.Kind != Internal || got.Message != "Something went wrong" {
		t.Fatalf("got %+v", got)
	}
	if got.Cause == nil || got.Error() != "Something went wrong: dial tcp 10.0.0.3: refused" {
		t.Fatalf("the log line is %q", got.Error())
	}
}

func TestWrap_keepsTheCause(t *testing.T) {
	if !errors.Is(Wrap(io.EOF, Unavailable, "down", "Try again"), io.EOF) {
		t.Fatal("the cause is lost")
	}
}

func TestFields_listsAll(t *testing.T) {
	var f Fields
	if f.Err() != nil {
		t.Fatal("an empty collector made an error")
	}
	f.Add("network", "is required")
	f.Add("amount", "is required")
	f.Add("amount", "is required")
	if !f.Merge(fmt.Errorf("x: %w", Field("name", "is too long"))) || f.Merge(io.EOF) {
		t.Fatal("Merge does not know fields from other errors")
	}
	e := From(f.Err())
	if e.Kind != Invalid || e.Code != CodeInvalidFields {
		t.Fatalf("got %+v", e)
	}
	if len(e.Fields["amount"]) != 1 || len(e.Fields["network"]) != 1 || !f.Has("name") || f.Has("phone") {
		t.Fatalf("fields are %v", e.Fields)
	}
	if want := "The given data was invalid: amount, name, network"; e.Message != want {
		t.Fatalf("message %q, want %q", e.Message, want)
	}
	if want := "The amount field is required"; Field("amount", "is required").Message != want {
		t.Fatalf("message of one field: %q", Field("amount", "is required").Message)
	}
}
