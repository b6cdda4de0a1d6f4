// Package payments moves other people's money: it collects from mobile money wallets, pays out to wallets and bank
// accounts, and sells airtime and data packages. The book (package book) accepts a payment in one transaction: its
// row, hold and job. The job submits it to a provider, and the book settles it in a second transaction. This package
// decides on the calls to the book and to providers, and their times. It stores no rows and posts no transfers.
//
// A provider's answer is a value, and only judge.go decides what it may do to the money. An unproven outcome keeps
// the hold until the provider or an operator reports the result.
//
// A file depends only on files that are listed below it:
//
//	build.go                construction
//	operator.go             operators' decisions: resolutions, transfers, suspense
//	notes.go                operators' notes about payments, and who takes care of a payment
//	claims.go               payments that operators claim a provider has, adopted in a recovery
//	approval.go             payouts that await approval by people of their account
//	payout_rows.go          payouts of a batch, paid from its reserve
//	refund.go               refunds of collections to their payers
//	voucher.go              vouchers of payers, which complete collections
//	collection.go, payout.go, bundle.go
//	                        one product each, with its limits
//	airtime.go              airtime paid by mobile money
//	topup.go                airtime from the wallet
//	accept.go               acceptance: rail, ids and, in a recovery, the search at all rails
//	checks.go               checks that products share
//	status.go               status queries of clients
//	callbacks.go            callbacks of providers
//	scrape.go               metrics read from the database
//	payments.go             the domain and its dependencies
//	job_lines.go            the queue's lines by rail, with their limits
//	job.go                  one run of an open payment's job: submit, poll, retry, reroute, alert operators, adopt
//	repeats.go              repeated requests that wait for the answer of another node
//	follower.go             open payments between runs: takeover, pauses, settlement
//	recheck.go              status queries of final payments, and contradictions
//	attempt.go              the memory of one open payment and its waiting request
//	recovery_search.go      search for one reference at all rails after a restore
//	submission.go           the call that submits
//	rails.go                choice of a rail
//	queries.go              the call that queries a status, and its limits by rail and client
//	judge.go                the rules that decide about money
//	evidence.go             the input of judge, and how it is rebuilt from a row
//	moment.go               monotonic time
//	reference.go            our references
//	metrics.go              counters of this node's calls to providers
package payments

import (
	"context"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Deps are the dependencies of Payments.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Jobs     *jobs.Queue
	Webhooks *webhook.Webhooks
	Routes   *route.Table
	Lookups  *lookup.Lookups // nil in commands: no bundles and no payouts to banks
	Treasury *treasury.Treasury
	Recovery *recovery.Recovery // nil in tests that restore nothing
	Watch    *recovery.Watch    // nil in commands and tests, which run no watch
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret // the key of ProviderReferences
	// CallbackURL returns the address for a rail's callbacks. No callbacks are requested if it is nil or returns "".
	CallbackURL func(rail provider.Rail) string
	// Approval is nil in commands and tests, where no payout needs approval.
	Approval ApprovalPolicy
	// Development allows loopback addresses for customers' callbacks.
	Development bool
}

// A Requester is who requests a payout: an access key, or a person on a page.
type Requester struct {
	Origin string // address of an access key's request
	// Plan returns the approval that a person's payout needs. It is nil for an access key, for which ApprovalPolicy
	// decides.
	Plan func(ctx context.Context, pay book.Payment) (*PendingApproval, error)
	// Adopted records a person's payout that a recovery found at a provider, in the transaction that accepts it. Such
	// a payout has no plan. It is nil for an access key.
	Adopted func(tx *db.Tx, pay book.Payment) error
}

// A PendingApproval describes the approval that a payout needs.
type PendingApproval struct {
	Until time.Time // when the payout expires; zero: it needs no approval
	// Write stores the change request in the transaction that accepts the payout.
	Write func(tx *db.Tx) error
}

// An ApprovalPolicy returns the approval that an access key's payout needs, or nil for none. It returns an error if
// approval is needed but not possible. It is called with the new row before the transaction.
type ApprovalPolicy func(ctx context.Context, by Requester, pay book.Payment) (*PendingApproval, error)

// Payments is the domain. It is safe for concurrent use. All packages read payments through it. Only Payments and the
// erasure of a person (package privacy) write them.
type Payments struct {
	*book.Reader
	book          *book.Book
	tenants       *tenant.Store
	jobs          *jobs.Queue
	lookups       *lookup.Lookups
	treasury      *treasury.Treasury
	clock         *clock.Clock
	log           *slog.Logger
	development   bool
	approval      ApprovalPolicy
	references    *references
	rails         *rails
	recovered     *recoverySearch
	follower      *follower
	rechecker     *rechecker
	rechecks      *recheckQueue
	clientQueries clientQueries
	repeats       repeats
	vouchers      clientQueries // collections for which a voucher was submitted within hintTime
}

// AccountAt returns the name of the account at the provider that a payment debits or credits.
func (p *Payments) AccountAt(pay book.Payment) string { return p.rails.account(pay) }
