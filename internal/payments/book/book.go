// Package book stores payments: their rows, ledger transfers, history counters, customer events and the jobs of open
// payments. It is the only writer of these. One database transaction accepts a payment and another one settles it.
// The table in states.go holds the states, their transitions and the transfers of each transition. The code runs on
// this table, and the documents are printed from it.
//
// The book calls no provider and does not track running submissions. Package payments does both. It is notified
// of commits through Hooks.
//
// A file depends only on files that are listed below it:
//
//	build.go                    construction
//	commit.go                   one transaction for many requests: order of locks, reads and writes
//	drawing.go                  acceptance of batch rows that a reserve pays
//	settle.go                   settlement of payments, and the customer's event
//	acceptance.go               acceptance of payments
//	refunds.go                  acceptance and failure of refunds, and what they take out of their collection
//	repeated_requests.go        answers to repeated requests
//	provider_costs.go           fees and commissions of providers
//	batch.go                    state of one transaction; postings of a transition
//	rechecks.go                 status queries due for final payments
//	notes.go                    notes of operators about payments, and who takes care of a payment
//	book.go                     the book with its hooks
//	committers.go, row_reader.go
//	                            group commits of requests, and grouped reads of rows
//	counts.go                   counters of this node's commits
//	row_changes.go              guarded UPDATEs of rows
//	refund_rows.go              refunds of a collection: their sums, the amount left to refund, the collection's UPDATE
//	spending.go                 daily spending limits of access keys
//	requests.go                 requests to the book and their results
//	request_keys.go             unique keys by which repeated requests are found
//	erasure.go                  search for and erasure of a person's number and name
//	latest_payments.go          newest payments of all tenants
//	narrowed.go                 a tenant's list of one kind, by amount or unknown outcome
//	search.go                   search among all payments, for operators
//	payee.go                    payouts of a tenant to one account
//	history.go                  a tenant's list of one kind, by page and filter
//	unknown.go                  totals of the payments that need an operator
//	contradictions.go           reports of providers that contradict earlier ones
//	find.go                     one payment by any of its ids
//	movements.go                payments by their references at providers and by time, for reconciliation
//	check.go                    consistency of payments and ledger
//	narrowing.go                selection by amount or unknown outcome
//	payment_row.go              columns of a row: SELECT and INSERT
//	floats.go                   balances at providers, by account
//	reader.go                   the read-only part
//	open_job.go                 the job of an open payment
//	payment.go, states.go       the payment and the table of its states
//	ids.go                      our ids
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

// Deps are the dependencies of a Book.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Jobs     *jobs.Queue
	Webhooks *webhook.Webhooks
	Watch    *recovery.Watch // nil in commands and tests, which run no watch
	Clock    *clock.Clock
}

// Hooks are the callbacks to the owner of a Book. All are required.
type Hooks struct {
	// RequestOpen reports whether the request that created the payment may still wait for its answer. It runs inside
	// transactions.
	RequestOpen func(Payment) bool
	// Opened is called with the committed row, after the commit that opened a payment. The payment's job runs from
	// memory only afterwards.
	Opened func(Payment)
	// Closed is called after the commit that made the payment final.
	Closed func(id string)
	// Refund returns the refund to accept when a top-up paid by mobile money fails. If it returns nil, the wallet
	// keeps the money. Settle calls Refund before the transaction that fails the top-up. RefundRefused is called if
	// the transaction refused the refund. The wallet then keeps the money, too.
	Refund        func(ctx context.Context, topUp Payment) (*Acceptance, error)
	RefundRefused func(topUp Payment, refusal error)
	// Account returns the name of the account at the provider that the payment debits or credits.
	Account func(Payment) string
}

// Book is the only writer of payments: it accepts, changes and settles them. It is safe for concurrent use.
type Book struct {
	*Reader
	jobs       *jobs.Queue
	webhooks   *webhook.Webhooks
	tenants    *tenant.Store
	watch      *recovery.Watch
	hooks      Hooks
	committers committers
	reads      *rowReader
	counts     counts
	floats     floatSwitch
}

// Row reads the row of a payment whose job runs on this node. It sees every commit that was made before the call.
func (bk *Book) Row(ctx context.Context, tenant, id string) (pay Payment, found bool, err error) {
	row, err := bk.reads.Do(ctx, tenant, 1, id)
	if row == nil || err != nil || row.Tenant != tenant {
		return Payment{}, false, err
	}
	return *row, true, nil
}
