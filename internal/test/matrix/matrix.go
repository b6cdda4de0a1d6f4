// Package matrix cuts long matrices of tests (every fault at every boundary, every bad value for every field) for the gate to some
// cases of each kind. make deep runs them whole, and gate_test.go requires that it runs every test that uses this package.
package matrix

import (
	"cmp"
	"maps"
	"os"
	"slices"
)

// Variable makes every matrix whole where it is set.
const Variable = "MAKOLA_TEST_DEEP"

// Whole reports whether matrices are whole.
func Whole() bool { return os.Getenv(Variable) != "" }

// Next gives the place to break off at after the nth: each one where matrices are whole, else ever further apart, so that a run of
// 40 boundaries is broken off at 9 of them.
func Next(nth int) int {
	if Whole() {
		return nth + 1
	}
	return nth + 1 + nth/3
}

// Turns gives out the values of one side of a matrix in turn.
type Turns[K cmp.Ordered, V any] struct {
	values map[K]V
	keys   []K
	next   int
}

// TurnsOf makes turns of values, in the order of their keys.
func TurnsOf[K cmp.Ordered, V any](values map[K]V) *Turns[K, V] {
	return &Turns[K, V]{values: values, keys: slices.Sorted(maps.Keys(values))}
}

// Some gives the next n values, or all of them where matrices are whole.
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
