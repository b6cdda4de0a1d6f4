package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"
)

// Job is one piece of unfinished work.
type Job struct {
	ID   string // unique; generated if empty. A caller whose transaction may run again must set it
	Kind string // never changes, because rows outlive programs
	// Subject is the name that Wake uses for the job, such as a payment's id. ID must be the Subject, or the Subject
	// followed by "/" and a number, so that the table can be searched for it. Without a Subject, Wake uses the ID.
	Subject string
	// Payload is the handler's data. The handler versions it.
	Payload   json.RawMessage
	RunAt     time.Time // zero: at once
	Tries     int       // failures that were written so far
	LastError string
	// Adopted means that the job had another owner before. That owner may have begun the job and may still be running
	// it.
	Adopted bool
	// Fresh means that no node has begun the job. The row is then unchanged since it was added. A job that ran and
	// left the memory has another time in its row, and a job with a new owner is Adopted.
	Fresh bool
	// Memo is passed to the handler from the transaction that added the job on this node. It is not stored. It saves
	// the handler a query. It is nil for a job that was adopted or did not fit into memory.
	Memo any
	// Siblings is the number of jobs of the same kind and tenant in this node's memory when the job began.
	Siblings int
}

// Outcome is a handler's result for its job. It is ignored if a transaction of the handler has already finished or
// postponed the job (Finish, Postpone).
type Outcome struct {
	verb  verb
	after time.Duration
	err   error
	reset bool // retry: the count of failures starts again
	plain bool // retry: an ordinary repetition, not a failure
}

type verb uint8

const (
	verbDone verb = iota
	verbLater
	verbRetry
	verbDead
	verbPass
)

// Done ends the job.
func Done() Outcome { return Outcome{verb: verbDone} }

// Later runs the job again after d. It stores nothing, so a node that adopts the job begins it at once.
func Later(d time.Duration) Outcome { return Outcome{verb: verbLater, after: max(0, d)} }

// Retry runs the job again after a pause that doubles from one second to five minutes. It stores the error. A job
// that fails too often becomes a dead letter (Handler.MaxTries).
func Retry(err error) Outcome { return Outcome{verb: verbRetry, after: -1, err: err} }

// RetryAfter is Retry with a pause that the handler chooses.
func RetryAfter(d time.Duration, err error) Outcome {
	return Outcome{verb: verbRetry, after: max(0, d), err: err}
}

// Dead ends the attempts to run the job. The job stays as a dead letter, which an operator can see and run again.
func Dead(err error) Outcome { return Outcome{verb: verbDead, err: err} }

// Pass gives the job to a node that takes its kind (Handler.Takes). Such a node finds it within about a second. The
// Memo is lost.
func Pass() Outcome { return Outcome{verb: verbPass} }

// Handler runs the jobs of one kind.
type Handler struct {
	Kind     string
	Workers  int // maximum number of handlers of this kind that run at once on a node; default 8
	MaxTries int // failures after which a job becomes a dead letter; 0: never
	// Key returns the line of a job. The lines of a kind take turns, so that a long line does not delay a short one.
	// Key is called when a job arrives and after each of its runs, and must not block. If it is nil, there is one
	// line.
	Key func(Job) string
	// PerKey returns how many jobs of one key may run at once, at least one. If it is nil, the limit is Workers.
	// PerKey is called often and must not block.
	PerKey func(key string) int
	// Tenant returns the tenant of a job. Tenants take turns within a line. It is called when a job arrives and must
	// not block. If it is nil, all jobs belong to one tenant.
	Tenant func(Job) string
	// PerTurn returns how many jobs of a tenant may run at once in the line of a key, at least one. The limit leaves
	// places to other tenants. If PerTurn is nil, PerKey is the limit. PerTurn is called often and must not block.
	PerTurn func(tenant, key string) int
	// Enter and Leave let the handler's package assign its workers by its own rules. Enter requests a place before a
	// job of a tenant begins in the line of a key. If it returns false, the tenant's jobs there wait until Leave
	// offers them. Leave is called when such a job has ended or did not begin. It calls offer for the tenants that
	// may enter now. offer reports whether a job can use the place at once. Enter and Leave are called one at a time
	// and must not block. If both are nil, there is always a place.
	Enter func(tenant, key string) bool
	Leave func(tenant, key string, offer func(tenant, key string) (begins bool))
	// Takes reports whether this node can run such jobs at the moment. It is for work that needs a named lease
	// (Hold). While it returns false, this node adopts no such jobs, and jobs added here are left to another node. If
	// it is nil, the node always runs them. Takes is called often and must not block.
	Takes func() bool
	// Left is called for each job that leaves this node's memory before it is finished. The memory has no room for
	// the job, or another epoch owns it. The handler then deletes its own data about the job. Left must not block.
	// It may be nil.
	Left func(Job)
	// Run does the work. ctx ends only when the node stops and the time for running jobs is over.
	Run func(ctx context.Context, job Job) Outcome
}

// Options configure a Queue. Zero values select the defaults given here.
type Options struct {
	Node      string        // name of this node among those on one database, without "/"
	Shared    bool          // another process may have the same name; otherwise a remaining lease belongs to an ended process
	LeaseFor  time.Duration // time without a heartbeat after which other nodes adopt the jobs of this node; default 9 s
	Heartbeat time.Duration // how often the lease is renewed; default 2 s
	MemoryMax int           // jobs in memory; default 100,000
}

// The pauses of Retry, before jitter.
const (
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
)

// Backoff returns the pause before the next attempt of a job that has failed tries times. It doubles from one second
// to five minutes, with a jitter of up to a fifth either way. The jitter is computed from the id, so that a
// simulation is repeatable.
func Backoff(id string, tries int) time.Duration {
	pause := pauseMax
	if tries < 9 {
		pause = min(pauseMax, pauseMin<<max(0, tries))
	}
	return Jitter(id, tries, pause)
}

// Jitter changes a pause by up to a fifth either way, by a hash of id and n.
func Jitter(id string, n int, pause time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", id, n)
	part := int64(h.Sum64()%401) - 200 // thousandths
	return pause + time.Duration(int64(pause)/1000*part)
}
