// Package matrix reduces long matrices of tests to some cases of each kind for the gate. Examples are every fault at every
// boundary, and every bad value for every field. make deep runs the complete matrices. gate_test.go requires that make deep runs
// every test that uses this package.
package matrix

import (
	"cmp"
	"maps"
	"os"
	"slices"
)

// If Variable is set, every matrix is complete.
const Variable = "MAKOLA_TEST_DEEP"

// Whole reports whether matrices are complete.
func Whole() bool { return os.Getenv(Variable) != "" }

// Next returns the next boundary to test after the nth. In complete matrices it is the following boundary. Otherwise the distance
// grows, so that a run of 40 boundaries is tested at 9 of them.
func Next(nth int) int {
	if Whole() {
		return nth + 1
	}
	return nth + 1 + nth/3
}

// Turns returns the values of one side of a matrix in rotation.
type Turns[K cmp.Ordered, V any] struct {
	values map[K]V
	keys   []K
	next   int
}

// TurnsOf makes turns of values, in the order of their keys.
func TurnsOf[K cmp.Ordered, V any](values map[K]V) *Turns[K, V] {
	return &Turns[K, V]{values: values, keys: slices.Sorted(maps.Keys(values))}
}

// Some returns the next n values, or all values in a complete matrix.
func (t *Turns[K, V]) Some(n int) []V {
	if n >= len(t.keys) || Whole() {
		n = len(t.keys)
	}
	some := make([]V, 0, n)
	for range n {
		some = append(some, t.values[t.keys[t.next%len(t.keys)]])
		t.next++
	}
	return some
}
