package console

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// busy are the people who take a file from this node at this moment: one at a time.
type busy struct {
	mu     sync.Mutex
	people map[string]bool
}

// begin refuses a person who takes a file already.
func (b *busy) begin(person string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.people[person] {
		return problem.New(problem.RateLimited, "export_running", "You are taking another file already. Wait until it has arrived, and try again.")
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

// viewings remembers what this node wrote down already, so that not every page costs a look.
type viewings struct {
	mu sync.Mutex
	at map[string]time.Time
}

// maxViewings are remembered; all are forgotten together, which costs a look each.
const maxViewings = 10_000

// first says whether a key comes for the first time in a period.
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
