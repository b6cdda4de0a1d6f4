package engine

import "time"

// Priority decides when a transaction gets a connection, and how long the transaction may take.
type Priority uint8

// The priorities.
const (
	PriorityMoney  Priority = iota // payments and messages in progress, and queries about them
	PrioritySystem                 // work that keeps a node running
	PriorityBulk                   // work that can wait
)

// BulkTurn: one of this number of turns goes to bulk work, even if other work waits.
const BulkTurn = 8

// Purpose is the priority of a transaction, and the tenant whose work it is.
type Purpose struct {
	Priority Priority
	Tenant   string // tenant of bulk work; empty: the installation
	Long     bool   // a migration, which may read and write whole tables
}

// Limits are the maximum times of a transaction. Correctness does not depend on them. A transaction that is
// interrupted before its COMMIT has no effect. After its COMMIT its rows are searched.
type Limits struct {
	Acquire  time.Duration // the wait for a connection
	Exchange time.Duration // the wait for one response of PostgreSQL, including the response to COMMIT
	Whole    time.Duration // all attempts together, without COMMIT and the check for its rows
}

// Limits returns the maximum times of a transaction with this purpose.
func (p Purpose) Limits() Limits {
	switch {
	case p.Long:
		return Limits{Acquire: time.Minute, Exchange: time.Hour, Whole: 2 * time.Hour}
	case p.Priority == PrioritySystem:
		return Limits{Acquire: 2 * time.Second, Exchange: 3 * time.Second, Whole: 5 * time.Second}
	case p.Priority == PriorityBulk && p.Tenant == "":
		return Limits{Acquire: time.Minute, Exchange: time.Minute, Whole: 3 * time.Minute}
	case p.Priority == PriorityBulk:
		return Limits{Acquire: 5 * time.Second, Exchange: 12 * time.Second, Whole: 20 * time.Second}
	}
	return Limits{Acquire: 3 * time.Second, Exchange: 5 * time.Second, Whole: 8 * time.Second}
}
