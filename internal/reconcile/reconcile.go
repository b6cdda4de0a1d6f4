// Package reconcile compares the statements of providers and banks with our payments.
//
// A statement is a file. Its lines are stored once, whatever files they stand in. Rules match lines with payments; a line that
// no rule matches, and a match whose two sides differ, becomes an exception. A file never moves money: a person requests a
// resolution of an exception, and another person approves it (package changes).
//
// A file depends only on files that are listed below it:
//
//	reconcile.go   construction
//	day.go         balances of statements at the end of a day, and why our books differ
//	run.go         the periodic work
//	undo.go        matches that a person ends
//	credit.go      credits of a bank that pay for a deposit
//	pair.go        matches that a person makes
//	money.go       resolutions that book money
//	approved.go    exceptions whose payments get their outcomes one by one
//	resolve.go     exceptions that one request is about, and their end
//	missing.go     payments that statements do not have
//	search.go      lines that name no payment
//	own.go         lines that are movements of our own money
//	settle.go      lines of banks that are settlements
//	walk.go        payments of an account in the order of time
//	erasure.go     search for and erasure of a person's number
//	match.go       lines that name their payment
//	exceptions.go  differences of the two sides, found and listed
//	entries.go     transfers of exceptions, and their end
//	exception.go   one difference
//	decide.go      rules about one line and its possible payments
//	draft.go       files that wait for a person's confirmation
//	import.go      lines of a file compared with the stored ones, and stored
//	source.go      accounts at providers and banks
//	store.go       rows of statements and lines
//	survey.go      how a file is to be read
//	chain.go       balances, signs and totals of a file
//	read.go        headings, dates and decimals of a file
//	line.go        one line
//	profile.go     kinds of statements
//	values.go      dates, amounts and references in cells
package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments/book"
)

// Deps are the dependencies of Reconcile.
type Deps struct {
	DB       *db.DB
	Clock    *clock.Clock
	Log      *slog.Logger
	Ledger   *ledger.Ledger
	Payments *book.Reader
	// Account returns the account at the provider that a payment debits or credits.
	Account func(book.Payment) string
	// Closed reports whether the day of a time is closed for a kind of money; nil: every day is open.
	Closed func(ctx context.Context, asset ledger.Asset, at time.Time) (bool, error)
}

// Reconcile is safe for concurrent use.
type Reconcile struct{ *matcher }

// New builds the domain.
func New(d Deps) *Reconcile {
	return &Reconcile{&matcher{store: &store{db: d.DB, clock: d.Clock, ledger: d.Ledger}, payments: d.Payments, account: d.Account, closed: d.Closed, log: d.Log}}
}
