package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"
)

// Job is one piece of work that is not finished.
type Job struct {
	ID   string // unique; made when empty. Callers that may run again make it beforehand
	Kind string // permanent: rows outlive programs
	// Subject is what Wake calls it by, such as a payment's id. ID is the Subject, or
	// begins with it and "/" and a number: so it is found in the table. Without a
	// Subject it is called by its ID.
	Subject string
	// Payload is the handler's own, versioned by it.
	Payload   json.RawMessage
	RunAt     time.Time // zero: at once
	Tries     int       // failures that were written so far
	LastError string
	// Adopted means that this job had another owner before, which may have begun it and may still be running it.
	Adopted bool
	// Fresh means that no node has begun this job: its row is as it was added. A job that ran and left the memory has
	// another time in its row, and a job with a new owner is adopted.
	Fresh bool
	// Memo is passed from the transaction that added the job on this node, and is not stored. It saves the handler a
	// query. It is nil for a job that was adopted or did not fit into memory.
	Memo any
	// Siblings is how many jobs of its kind and tenant were in this node's memory when it began.
	Siblings int
}

// Outcome is a handler's result for its job. If the handler's own transaction finished or postponed the job (Finish,
// Postpone), that counts and the outcome does not.
type Outcome struct {
	verb  verb
	after time.Duration
	err   error
	reset bool // retry: the failures begin anew
	plain bool // retry: an ordinary event, no failure
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

// Later runs the job again after d. Nothing is written: another owner would
// begin it at once.
func Later(d time.Duration) Outcome { return Outcome{verb: verbLater, after: max(0, d)} }

// Retry runs the job again after a pause that doubles from one second to five
// minutes, and writes down why. A job that fails too often becomes a dead
// letter (Handler.MaxTries).
func Retry(err error) Outcome { return Outcome{verb: verbRetry, after: -1, err: err} }

// RetryAfter is Retry with a pause of the handler's own.
func RetryAfter(d time.Duration, err error) Outcome {
	return Outcome{verb: verbRetry, after: max(0, d), err: err}
}

// Dead gives the job up. It stays as a dead letter, which an operator sees and
// can run again.
func Dead(err error) Outcome { return Outcome{verb: verbDead, err: err} }

// Pass gives the job to whichever node takes its kind (Handler.Takes), within
// about a second, or to the first that will. Its Memo is lost.
func Pass() Outcome { return Outcome{verb: verbPass} }

// Handler runs the jobs of one kind.
type Handler struct {
	Kind     string
	Workers  int // handlers of this kind that run at once on a node; default 8
	MaxTries int // failures after which a job becomes a dead letter; 0: never
	// Key sorts jobs into lines that take turns, so that a long line does not
	// hold up a short one. It is asked when a job comes and after each of its
	// runs, and must not block. nil: one line.
	Key func(Job) string
	// PerKey is how many jobs of one key may run at once, at least one. nil: as
	// many as there are workers. It is asked often and must not block.
	PerKey func(key string) int
	// Tenant returns the tenant of a job. Tenants take turns within a line. It is called when a job arrives and must
	// not block. nil means that all jobs belong to one tenant.
	Tenant func(Job) string
	// PerTurn is the number of a tenant's jobs, at least one, that may run at once in the line of a key. It leaves
	// places to other tenants. nil means PerKey. It is called often and must not block.
	PerTurn func(tenant, key string) int
	// Enter and Leave let the handler's package assign its workers by its own rules. Enter requests a place before a
	// job of a tenant begins in the line of a key. If it returns false, the tenant's jobs there wait until Leave
	// offers them. Leave is called when such a job has ended, or did not begin, and offers the tenants that may enter
	// now. offer reports whether a job can use the place at once. Calls are one at a time and must not block. nil
	// means that there is always a place.
	Enter func(tenant, key string) bool
	Leave func(tenant, key string, offer func(tenant, key string) (begins bool))
	// Takes reports whether this node can run such jobs at the moment, for work that needs a lease of one node
	// (Hold). While it returns false, jobs added here are for another node and none are adopted. nil means always. It
	// is called often and must not block.
	Takes func() bool
	// Left is called for each job that leaves this node's memory unfinished, because there is no room or another
	// epoch owns it. The handler drops its own data about the job. It must not block. It may be nil.
	Left func(Job)
	// Run does the work. ctx ends only when the node stops and the time for
	// stopping is over.
	Run func(ctx context.Context, job Job) Outcome
}

// Options shape a Queue. Zero values take the defaults named here.
type Options struct {
	Node      string        // name of this node among those on one database, without "/"
	Shared    bool          // another process may have the same name; else a lease that is left belongs to a process that is gone
	LeaseFor  time.Duration // silence after which others take the jobs of this node; default 9 s
	Heartbeat time.Duration // how often the lease is renewed; default 2 s
	MemoryMax int           // jobs in memory; default 100,000
}

// The pauses of Retry, before jitter.
const (
	pauseMin = time.Second
	pauseMax = 5 * time.Minute
)

// Backoff returns the pause before the next try of a job that has failed tries times: from one second, doubling to
// five minutes, with a fifth of jitter either way. The jitter is computed from the id, so that a simulation is
// repeatable.
func Backoff(id string, tries int) time.Duration {
	pause := pauseMax
	if tries < 9 {
		pause = min(pauseMax, pauseMin<<max(0, tries))
	}
	return Jitter(id, tries, pause)
}

// Jitter moves a pause by up to a fifth either way, by a hash of id and n.
func Jitter(id string, n int, pause time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", id, n)
	part := int64(h.Sum64()%401) - 200 // thousandths
	return pause + time.Duration(int64(pause)/1000*part)
}
