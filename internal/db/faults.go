package db

import (
	"fmt"
	"sync"

	"github.com/makola/makola/internal/db/engine"
)

// A Boundary is a place where the connection to the database can break.
type Boundary int

// The boundaries.
const (
	BoundaryExchange Boundary = iota // statements are sent before the end of the transaction
	BoundaryCommit                   // the deferred writes and COMMIT are sent
)

// A Fault is what happens at a boundary.
type Fault int

// The faults.
const (
	FaultNone     Fault = iota
	FaultBefore         // the connection is lost before the server receives the statements
	FaultAfter          // the server executes the statements, and its response is lost
	FaultConflict       // the server returns a conflict
)

func (f Fault) err() error {
	if f == FaultConflict {
		return fmt.Errorf("%w: injected", engine.ErrConflict)
	}
	return fmt.Errorf("%w: injected", engine.ErrLost)
}

// Faults breaks the connection on purpose, for tests. Every transaction passes its boundaries through it. A nil
// Faults breaks nothing.
type Faults struct {
	// Looks is the number of lost connections after which the search for the rows of an ambiguous COMMIT ends. Zero
	// means that lookTime alone ends it. It must be set before the database is opened.
	Looks int

	mu        sync.Mutex
	exchanges int
	commits   int
	decide    func(Boundary) Fault
	planned   map[Boundary]map[int]Fault
}

// Decide calls fn at every boundary, from one goroutine at a time. A nil fn ends that.
func (f *Faults) Decide(fn func(Boundary) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = fn
}

// At plans a fault for the nth time that a boundary is passed, counted from now. 1 is the next time.
func (f *Faults) At(b Boundary, nth int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.planned == nil {
		f.planned = map[Boundary]map[int]Fault{BoundaryExchange: {}, BoundaryCommit: {}}
	}
	f.planned[b][f.passedLocked(b)+nth] = fault
}

// Exchanges returns the number of round trips to the engine since the start, including commits.
func (f *Faults) Exchanges() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exchanges + f.commits
}

func (f *Faults) passedLocked(b Boundary) int {
	if b == BoundaryCommit {
		return f.commits
	}
	return f.exchanges
}

func (f *Faults) next(b Boundary) Fault {
	if f == nil {
		return FaultNone
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b == BoundaryCommit {
		f.commits++
	} else {
		f.exchanges++
	}
	if fault, planned := f.planned[b][f.passedLocked(b)]; planned {
		delete(f.planned[b], f.passedLocked(b))
		return fault
	}
	if f.decide != nil {
		return f.decide(b)
	}
	return FaultNone
}

// endsLook reports whether tests end a search for the rows of an ambiguous COMMIT after so many lost connections.
func (f *Faults) endsLook(lost int) bool { return f != nil && f.Looks > 0 && lost >= f.Looks }
