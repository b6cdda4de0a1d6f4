// Package book is where payments are written down: their rows, the ledger's
// transfers with them, the counters of the histories, the customer's events and
// the job of each open payment. It is the only writer of all that. A payment is
// accepted in one database transaction and settled in one more; the states, the
// arrows between them and the transfers that each arrow makes are one table, in
// states.go, which this code runs on and the documents are printed from. The book
// calls no provider, and does not know what is under way: package payments does,
// above it, and hears of what was committed through Hooks.
//
// Files, each standing on those below it alone; no two of them need each other:
//
//	build.go                    how the parts are put together
//	commit.go                   one transaction for many requests: its locks in their order, what it reads, what it writes
//	drawing.go                  requests to accept rows of a batch, paid from its reserve, judged under the locks
//	settle.go                   requests to settle one, the same, and whether the customer hears of it
//	acceptance.go               requests to accept a payment, judged under the locks
//	refunds.go                  refunds, judged under the lock of their collection, and what they take out of it
//	repeated_requests.go        what a repeated request is answered
//	provider_costs.go           fees and commissions of providers, posted and read
//	batch.go                    what a transaction has read and will write; the postings of an arrow
//	rechecks.go                 final payments that are to be asked about again
//	book.go                     the book with its hooks
//	write_lanes.go, read_lane.go
//	                            the lanes that gather requests for one transaction, and those that read rows
//	counts.go                   what a node counts of its commits
//	row_changes.go              the UPDATEs of rows, with the guards that hold them to where they begin
//	refund_rows.go             refunds of a collection: their sums, what may be refunded, the UPDATE of the collection
//	spending.go                 what a key may spend in a day
//	requests.go                 what is asked of the book and what it answers
//	request_keys.go             by what a repeated request is found; a key's day is package idempotency's
//	erasure.go                  a person's number and name, found and erased
//	latest_payments.go          the newest of all tenants, narrowed by operators
//	search.go                   what operators search for among all payments
//	payee.go                    what a tenant paid to one account
//	history.go                  a tenant's list of one kind, by page and filter
//	unknown.go                  sums of what needs an operator
//	contradictions.go           words of providers against their own last ones
//	find.go                     one payment, by whatever names it
//	check.go                    whether the book agrees with the ledger
//	payment_row.go              the columns of a row: read, and inserted
//	floats.go                   what is in each account at a provider, and from when on postings name it
//	reader.go                   what reads only
//	open_job.go                 the job of an open payment
//	payment.go, states.go       one payment, and the table of its states
//	ids.go                      ids of our own
package book

import (
	"context"

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
	// Opened is called after the COMMIT that opened a payment, before the payment's job can run
	// from memory. The row is as it was committed.
	Opened func(Payment)
	// Closed hears after the COMMIT that the payment with this id is final.
	Closed func(id string)
	// Refund makes the refund that is accepted in the transaction that fails a top-up which mobile money paid for. nil: the wallet keeps
	// the money. It is called before the transaction. RefundRefused is called where that refund was refused: the wallet keeps the money.
	Refund        func(ctx context.Context, topUp Payment) (*Acceptance, error)
	RefundRefused func(topUp Payment, refusal error)
	// Account names the account at the provider that a payment's money leaves, or comes into.
	Account func(Payment) string
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
	floats   floatSwitch
}

// Row reads the row of a payment whose job runs on this node; found is false where
// there is none. It sees everything that was committed before the call.
func (bk *Book) Row(ctx context.Context, tenant, id string) (pay Payment, found bool, err error) {
	row, err := bk.reads.Do(ctx, tenant, 1, id)
	if row == nil || err != nil || row.Tenant != tenant {
		return Payment{}, false, err
	}
	return *row, true, nil
}
