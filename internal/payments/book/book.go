// Package book is where payments are written down: their rows, the ledger's
// transfers with them, the counters of the histories, the customer's events and
// the job of each open payment. It is the only writer of all that. A payment is
// accepted in one database transaction and settled in one more; the states, the
// arrows between them and the transfers that each arrow makes are one table, in
// states.go, which this code runs on and the documents are printed from. The book
// calls no provider, and does not know what is under way: package payments does,
// above it, and hears of what was committed through Hooks.
//
// Files, from a request down to a row:
//
//	book.go, reader.go          the book with its hooks, and what only reads it
//	payment.go, states.go       one payment, and the table of its states
//	acceptance.go               a request to accept a payment, judged under the locks
//	repeated_requests.go        what a repeated request is answered
//	spending.go                 what a key may spend in a day
//	settle.go                   final states, marks of attempts and contradictions
//	contradictions.go           words of providers against their own final words
//	batch.go, write_lanes.go    one transaction for many payments, and the lanes that gather them
//	read_lane.go                the statement that reads the rows of many runs
//	payment_row.go, ids.go      reading and writing one row; ids of our own
//	open_job.go                 the job of an open payment
//	rechecks.go                 final payments that are to be asked about again
//	find.go, history.go, latest_payments.go, search.go, payee.go, unknown.go
//	                            reading, for clients and for operators
//	erasure.go                  a person's number and name, found and erased
//	check.go                    whether the book agrees with the ledger
//	counts.go                   what a node counts of its commits
package book

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps is what a Book stands on.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Jobs     *jobs.Queue
	Webhooks *webhook.Webhooks
	Watch    *recovery.Watch // nil: not watched (commands, tests)
	Clock    *clock.Clock
}

// Hooks are what the owner of a Book does beside its transactions. All of them are
// needed.
type Hooks struct {
	// Answering says whether the request that made a payment may still wait for its
	// answer. It is asked inside transactions.
	Answering func(Payment) bool
	// Track gives the memory (jobs.Job.Memo) of a payment that opens without a request
	// of its own: the top-up of a collection that has succeeded. It is asked inside
	// transactions, which may run again.
	Track func(Payment) any
	// Opened hears of an open payment with its memory after the COMMIT, before
	// the payment's job can run from memory.
	Opened func(memo any, pay Payment)
	// Closed hears after the COMMIT that the payment with this id is final.
	Closed func(id string)
}

// Book is the one writer of payments: it accepts, marks and settles them. It is
// safe for concurrent use.
type Book struct {
	*Reader
	jobs     *jobs.Queue
	webhooks *webhook.Webhooks
	tenants  *tenant.Store
	watch    *recovery.Watch
	hooks    Hooks
	lanes    lanes
	reads    *readLane
	counts   counts
}

// New opens the book. Close ends it.
func New(d Deps, h Hooks) *Book {
	bk := &Book{Reader: NewReader(d.DB, d.Ledger, d.Clock), jobs: d.Jobs, webhooks: d.Webhooks, tenants: d.Tenants, watch: d.Watch, hooks: h, counts: newCounts()}
	bk.lanes = bk.newLanes()
	bk.reads = bk.newReadLane()
	return bk
}

// Close waits for the transactions that are under way.
func (bk *Book) Close() {
	bk.lanes.close()
	bk.reads.Close()
}

// Collectors gives the counters of what was committed, for a registry.
func (bk *Book) Collectors() []prometheus.Collector {
	return []prometheus.Collector{bk.counts.payments, bk.counts.cedis, bk.counts.seconds}
}

// Accept takes a payment in through the lane of its wallet: row, place in its
// list, holds and job in one transaction with whatever else is waiting. The
// refusals are *problem.Error: InsufficientFunds, Duplicate (Data is the existing
// Payment), InProgress. None of them leaves a row.
func (bk *Book) Accept(ctx context.Context, a *Acceptance) (Accepted, error) {
	r, err := bk.lanes.wallet(a.Payment.Tenant).Do(ctx, a.Payment.Tenant, rowsOf, &Op{Accept: a})
	return Accepted{Payment: r.Payment, Replayed: r.Replayed}, err
}
