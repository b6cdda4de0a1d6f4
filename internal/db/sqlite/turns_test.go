package sqlite

import (
	"slices"
	"testing"

	"github.com/makola/makola/internal/db/engine"
)

// SQLite's writer prefers payments, and serves bulk work every eighth time. Tenants take turns.
func TestWriter_sharesTurns(t *testing.T) {
	w := &writer{}
	c := &connection{}
	if first, _ := w.take(engine.Purpose{}); first != nil {
		t.Fatal("a writer without a connection gave one")
	}
	w.line = nil
	names := map[chan *connection]string{}
	wait := func(name string, p engine.Purpose) {
		_, turn := w.take(p)
		names[turn] = name
	}
	for range 2 {
		wait("a", engine.Purpose{Priority: engine.PriorityBulk, Tenant: "a"})
	}
	wait("b", engine.Purpose{Priority: engine.PriorityBulk, Tenant: "b"})
	for range 9 {
		wait("money", engine.Purpose{})
	}
	wait("system", engine.Purpose{Priority: engine.PrioritySystem})
	var order []string
	for w.next(c) {
		for turn, name := range names {
			select {
			case <-turn:
				order = append(order, name)
			default:
			}
		}
	}
	want := []string{"system", "money", "money", "money", "money", "money", "money", "a", "money", "money", "money", "b", "a"}
	if !slices.Equal(order, want) {
		t.Errorf("turns: %v, want %v", order, want)
	}
}
