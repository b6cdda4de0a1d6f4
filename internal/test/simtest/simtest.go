// Package simtest holds the shared parts of the tests of simulated providers: a simulator with a manual clock, and
// the documented answers of the providers, to which the simulated ones are compared.
package simtest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/sim"
)

// Start is when the clock of a simulator in a test begins.
var Start = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// New returns a simulator with a clock that is moved by hand. It ends with the test.
func New(t testing.TB, o sim.Options, parts ...sim.Part) (*sim.Sim, *clock.Clock) {
	t.Helper()
	c := clock.NewManual(Start)
	o.Clock = c
	s, err := sim.New(o, parts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, c
}

// Sample is an answer as a provider documents it.
type Sample struct {
	Name, Call string
	Status     int
	Body       map[string]any
}

// Samples reads the documented answers of a provider, which are stored next to its adapter. They are the reference
// for both the adapter and the simulator.
func Samples(t *testing.T, adapter string) map[string]Sample {
	t.Helper()
	files, err := filepath.Glob("../../provider/" + adapter + "/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	all := map[string]Sample{}
	for _, file := range files {
		var list []Sample
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			all[s.Name] = s
		}
	}
	return all
}

// Shaped returns the places where a value has other members or types than the documented value. Null matches any type.
func Shaped(t *testing.T, at string, got, want any) {
	t.Helper()
	if got == nil || want == nil {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := object[name]; !ok {
				t.Errorf("%s has no %s", at, name)
			}
			Shaped(t, at+"."+name, object[name], want[name])
		}
		for name := range object {
			if _, ok := want[name]; !ok {
				t.Errorf("%s has %s, which is not documented", at, name)
			}
		}
	case []any:
		if len(want) == 0 {
			return
		}
		list, _ := got.([]any)
		if len(list) == 0 {
			t.Errorf("%s is empty", at)
		}
		for _, each := range list {
			Shaped(t, at+"[]", each, want[0])
		}
	default:
		if reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("%s is %T, documented as %T", at, got, want)
		}
	}
}
