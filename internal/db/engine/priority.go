package engine

import "time"

// Priority orders transactions: it decides when one gets a connection, and how long it may take.
type Priority uint8

// The priorities.
const (
	PriorityMoney  Priority = iota // payments and messages under way, and questions about them
	PrioritySystem                 // what keeps a node alive
	PriorityBulk                   // what can wait
)

// BulkTurn is how often bulk work goes first where others wait too: once in so many turns.
const BulkTurn = 8

// Purpose is whose work a transaction is.
type Purpose struct {
	Priority Priority
	Tenant   string // of bulk work; empty: the installation's own
}

// Limits are the longest times of a transaction. Correctness does not depend on them: a transaction that is cut off
// is lost before COMMIT, or looked up after it.
type Limits struct {
	Acquire  time.Duration // the wait for a connection
	Exchange time.Duration // the wait for one answer of PostgreSQL, that to COMMIT included
	Whole    time.Duration // all tries together, COMMIT and the look for its rows aside
}

// Limits returns the longest times of a transaction with this purpose.
func (p Purpose) Limits() Limits {
	switch {
	case p.Priority == PrioritySystem:
		return Limits{Acquire: 2 * time.Second, Exchange: 3 * time.Second, Whole: 5 * time.Second}
	case p.Priority == PriorityBulk && p.Tenant == "":
		return Limits{Acquire: time.Minute, Exchange: time.Minute, Whole: 3 * time.Minute}
	case p.Priority == PriorityBulk:
		return Limits{Acquire: 5 * time.Second, Exchange: 12 * time.Second, Whole: 20 * time.Second}
	}
	return Limits{Acquire: 3 * time.Second, Exchange: 5 * time.Second, Whole: 8 * time.Second}
}
