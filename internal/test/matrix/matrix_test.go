package matrix

import (
	"fmt"
	"slices"
	"testing"
)

// In the gate a matrix tests many early boundaries and some of all later parts, and every value is used. A complete matrix leaves
// nothing out.
func TestMatrix_someOrAll(t *testing.T) {
	for _, each := range []struct {
		variable, places, values string
	}{
		{"", "[0 1 2 3 5 7 10 14 19 26 35]", "[[a b] [c a] [b c]]"},
		{"1", fmt.Sprint(upTo(40)), "[[a b c] [a b c] [a b c]]"},
	} {
		t.Setenv(Variable, each.variable)
		var places []int
		for nth := 0; nth < 40; nth = Next(nth) {
			places = append(places, nth)
		}
		turns, values := TurnsOf(map[string]string{"1": "a", "2": "b", "3": "c"}), [][]string{}
		for range 3 {
			values = append(values, turns.Some(2))
		}
		if fmt.Sprint(places) != each.places || fmt.Sprint(values) != each.values {
			t.Errorf("with %q: %v, %v", each.variable, places, values)
		}
	}
	if all := TurnsOf(map[int]int{1: 1}).Some(5); !slices.Equal(all, []int{1}) {
		t.Errorf("of one value: %v", all)
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
