package console

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// busy has the people who are exporting a file from this node. Each exports one at a time.
type busy struct {
	mu     sync.Mutex
	people map[string]bool
}

// begin returns an error for a person whose export is running.
func (b *busy) begin(person string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.people[person] {
		return problem.New(problem.RateLimited, "export_running", "Another export of yours is running. Try again when it has finished.")
	}
	if b.people == nil {
		b.people = map[string]bool{}
	}
	b.people[person] = true
	return nil
}

func (b *busy) end(person string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.people, person)
}

// viewings remembers recent audit entries of this node, to save a query for each page.
type viewings struct {
	mu sync.Mutex
	at map[string]time.Time
}

// maxViewings is the maximum number of entries. At this number all are dropped, which costs one query each.
const maxViewings = 10_000

// first reports whether a key is the first of its kind in a period.
func (w *viewings) first(key string, period time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, there := w.at[key]; there && at.Equal(period) {
		return false
	}
	if w.at == nil || len(w.at) >= maxViewings {
		w.at = map[string]time.Time{}
	}
	w.at[key] = period
	return true
}

func (w *viewings) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.at, key)
}
