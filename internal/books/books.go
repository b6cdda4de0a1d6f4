// Package books checks the books of an installation: the ledger, the payments, the messages and the batches against each other.
//
// The recent check goes on from where the books were proven. It reads the transfers, payments and campaigns since the last proof, with an overlap
// for late commits, and compares every account with the stored sums and these transfers. So its cost depends on the last minutes and the
// number of accounts, not on the age of the installation.
//
// The full check reads every row, in sets, each in one snapshot. It stores its position, so that another node goes on where one stopped,
// and works a fifth of the time. It ends with sums of its own, from which the recent check then goes on.
//
// A clock that is set: after a step forward the proof stays where it is until older transfers are committed. After a step back beyond the
// overlap the proof is dropped and a full check begins, because new transfers lie before the end of the proof.
//
// A fault stays until it is mended: the recent check does not go past its faults, and those of the full check last until the next one
// ends. After a restore or a move to another database the state continues, because it is rows of the same database.
//
// Files:
//
//	recent.go  the recent check
//	full.go    the full check
//	state.go   the stored state of both
//	books.go   construction
package books

import (
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

// The books, as findings name them.
const (
	Ledger   = "ledger"
	Payments = "payments"
	Messages = "messages"
	Batches  = "batches"
)

// Names are all books.
func Names() []string { return []string{Ledger, Payments, Messages, Batches} }

// Books checks the books. It is safe for concurrent use, also by several nodes.
type Books struct {
	db    *db.DB
	clock *clock.Clock
}

// New returns the checks of a database.
func New(d *db.DB, c *clock.Clock) *Books { return &Books{db: d, clock: c} }
