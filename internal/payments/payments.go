// Package payments moves other people's money: it collects from mobile money
// wallets, pays out to wallets and bank accounts, and sells airtime and data
// packages. A payment is accepted in the book (package book, below: its row, the
// ledger's holds and a job in one transaction), submitted to a provider by that
// job, and settled in the book in one more. This package decides what is asked of
// the book and of the providers, and when; it holds no rows and no transfers.
// A provider's answer is a value, and judge.go alone says what it may do to
// the money; what cannot be proven either way holds the money until the provider
// or an operator has spoken.
//
// Files, each standing on those below it alone; no two of them need each other:
//
//	build.go                how the parts are put together
//	operator.go             what operators decide: a payment ended by the provider's statement, transfers, suspense
//	claims.go               payments that operators say a provider did, adopted in a recovery
//	held.go                 payouts that wait for the approval of their account's own people
//	payout_rows.go          payouts of a batch, which its reserve pays
//	refund.go               collections given back to their payers
//	collection.go, payout.go, bundle.go
//	                        what each product asks for, with its limits
//	airtime.go              airtime that mobile money pays for
//	topup.go                airtime from the wallet
//	accept.go               what comes before the book: a request as this node has it, its rail and ids; in a recovery it is looked for at every rail first
//	checks.go               what products check alike
//	status.go               clients that ask for a payment
//	callbacks.go            providers that speak of one
//	scrape.go               what is counted in the database for a scrape
//	payments.go             the domain, and what it stands on
//	job_lines.go            the queue's lines by rail, and how many of one may be under way
//	job.go                  one run of an open payment's job: submit, ask, resend with its pauses, tell operators, adopt; what could never be sent is given up
//	follower.go             what becomes of open payments between runs: taken over, put off (with the pauses of questions), settled
//	recheck.go              final payments asked about again, after a callback and all in turn, and what a contradiction does
//	attempt.go              one open payment in memory: its row in its first seconds, the request that waits for it
//	recovery_search.go      one reference asked for at every rail, paused or not, after the database went back in time
//	submission.go           the call that submits
//	rails.go                the choice of a rail
//	questions.go            the call that asks: how many questions a rail has at once, and how often clients may ask about one payment
//	judge.go                what an outcome may do to the money: the rules, with their counts and times; when a payment is for operators
//	standing.go             what the judge goes by, and how a row gives it; for how long a submission may be on its way
//	moment.go               points of the time that this process has seen pass
//	reference.go            references of our own
//	metrics.go              what a node counts of its providers
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

// Deps is what payments stand on.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Jobs     *jobs.Queue
	Webhooks *webhook.Webhooks
	Routes   *route.Table
	Lookups  *lookup.Lookups // nil: nothing is sold, and no bank account is paid (commands)
	Treasury *treasury.Treasury
	Recovery *recovery.Recovery // nil: the database never goes back in time (tests)
	Watch    *recovery.Watch    // nil: not watched (commands, tests)
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret // ProviderReferences are made under it
	// CallbackURL gives the address at which a rail's callbacks arrive; nil or
	// an empty answer: none are wanted.
	CallbackURL func(rail provider.Rail) string
	// Holds says whether a payout must be approved by its account's own people
	// first; nil: none must (commands, tests).
	Holds Holds
	// Development lets callbacks of customers go to loopback addresses.
	Development bool
}

// An Asker is who asks for a payout: an API key, or a person on a page.
type Asker struct {
	Person, Email string // of a person on a page; empty: the access key of the request asks
	Origin        string // the address that the request came from
	Expected      string // the name that the person expected the payee to have
	Unnamed       bool   // nobody could find out whose the number is
}

// A Hold is what a payout waits for.
type Hold struct {
	Until time.Time // when it ends without an approval
	// Write writes down, in the transaction that accepts the payout, what waits to be approved.
	Write func(tx *db.Tx) error
}

// Holds says whether a payout must be approved by its account's own people before it is sent; nil: not. It refuses one that
// must be and cannot be. It is asked before the transaction, with the row that will be.
type Holds func(ctx context.Context, by Asker, pay book.Payment) (*Hold, error)

// Payments is the domain. It is safe for concurrent use. It reads the book for
// everybody, and it alone writes there, but for the erasure of a person (package privacy).
type Payments struct {
	*book.Reader
	book        *book.Book
	tenants     *tenant.Store
	jobs        *jobs.Queue
	lookups     *lookup.Lookups
	treasury    *treasury.Treasury
	clock       *clock.Clock
	log         *slog.Logger
	development bool
	holds       Holds
	references  *references
	rails       *rails
	recovered   *recoverySearch
	follower    *follower
	rechecker   *rechecker
	rechecks    *recheckQueue
	asked       clientQuestions
}
