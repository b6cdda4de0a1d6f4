package batch

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/problem"
)

// uploads bounds the files that are read at once: one of an account, and two on a node.
type uploads struct {
	mu     sync.Mutex
	active map[string]bool
}

const uploadsAtOnce = 2

func (u *uploads) enter(tenant string) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.active[tenant] || len(u.active) >= uploadsAtOnce {
		e := problem.New(problem.InProgress, "upload_in_progress", "Another file is being read: try again in a moment")
		e.RetryAfter = 5 * time.Second
		return nil, e
	}
	if u.active == nil {
		u.active = map[string]bool{}
	}
	u.active[tenant] = true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.active, tenant)
	}, nil
}
