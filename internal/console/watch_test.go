package console

import (
	"testing"

	"github.com/makola/makola/internal/problem"
)

// A person downloads one file at a time from a server. Other people can download files at the same time.
func TestBusy_oneFileAtATime(t *testing.T) {
	var b busy
	if err := b.begin("ama"); err != nil {
		t.Fatal(err)
	}
	if err := b.begin("ama"); !problem.Is(err, problem.RateLimited) {
		t.Errorf("a second file: %v", err)
	}
	if err := b.begin("kofi"); err != nil {
		t.Error(err)
	}
	b.end("ama")
	if err := b.begin("ama"); err != nil {
		t.Error(err)
	}
}
