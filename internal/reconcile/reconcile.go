// Package reconcile compares the statements of providers and banks with our payments.
//
// A statement is a file. Its lines are stored once, whatever files they stand in. Rules match lines with payments; a line that
// no rule matches, and a match whose two sides differ, becomes an exception. A file never moves money: a person requests a
// resolution of an exception, and another person approves it (package changes).
//
// A file depends only on files that are listed below it:
//
//	reconcile.go   construction
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
	"log/slog"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// Deps are the dependencies of Reconcile.
type Deps struct {
	DB    *db.DB
	Clock *clock.Clock
	Log   *slog.Logger
}

// Reconcile is safe for concurrent use.
type Reconcile struct{ *store }

// New builds the domain.
func New(d Deps) *Reconcile {
	return &Reconcile{store: &store{db: d.DB, clock: d.Clock}}
}
