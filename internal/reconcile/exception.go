package reconcile

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Exception is one difference between a statement and our payments.
type Exception struct {
	ID        string
	Source    string
	Kind      Kind
	Line      string // empty: there is none
	Payment   string // empty: there is none
	Amount    money.Pesewas
	Delta     money.Pesewas // how much more money the statement has than our books because of it; below zero: less
	Reason    string
	At        time.Time // of the movement
	OpenedAt  time.Time
	EndedAt   time.Time // zero: it is open
	Ending    Ending
	Request   string // the change request that ended it
	Owner     string // id of the person who takes care of it
	OwnerName string
	Note      string
}

// Ending is how an exception ended. Values are stored and never change.
type Ending string

// The endings. An ending by a person stays while the difference is the same.
const (
	EndedAgreed   Ending = "agreed"   // the two sides agree now
	EndedBooked   Ending = "booked"   // a difference of fees was booked
	EndedSettled  Ending = "settled"  // the payment got its outcome from the statement
	EndedSuspend  Ending = "suspense" // its money is in suspense
	EndedReleased Ending = "released" // its money has left suspense
	EndedAdopted  Ending = "adopted"  // its money is in the wallet of an account
	EndedFunded   Ending = "funded"   // a deposit to a wallet used the line
	EndedWritten  Ending = "written_off"
)

// stays reports whether the ending stays while the difference is the same. Other endings removed the difference, so the same
// difference found again is a new exception.
func (e Ending) stays() bool {
	return e != EndedAgreed && e != EndedBooked && e != EndedSettled && e != EndedReleased
}

const (
	exceptionColumns = `id, source, kind, line, payment, amount, delta, reason, at, opened_at, ended_at, ending, act, owner, owner_name, note`

	selectException = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE id = $1`

	exceptionsOfLines = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE line IN (SELECT value FROM texts($1)) AND line <> '' ORDER BY id`

	exceptionsOfPayments = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE payment IN (SELECT value FROM texts($1)) AND payment <> '' AND (ended_at = 0 OR ending IN ('suspense', 'released')) ORDER BY id`

	everyOfPayments = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE payment IN (SELECT value FROM texts($1)) AND payment <> '' ORDER BY id`

	changeException = `UPDATE statement_exceptions SET amount = $2, delta = $3, reason = $4 WHERE id = $1 AND ended_at = 0`

	endException = `UPDATE statement_exceptions SET ended_at = $2, ending = $3, act = $4 WHERE id = $1 AND ended_at = 0`

	leaveSuspense = `UPDATE statement_exceptions SET ending = $2, act = $3 WHERE id = $1 AND ending = 'suspense'`

	ownException = `UPDATE statement_exceptions SET owner = $2, owner_name = $3 WHERE id = $1 AND ended_at = 0`

	noteException = `UPDATE statement_exceptions SET note = $2 WHERE id = $1`

	countExceptions = `SELECT count(*) FROM (SELECT 1 FROM statement_exceptions WHERE ended_at = 0 LIMIT $1) AS open`

	// Exceptions that may end by themselves, because both sides may agree now.
	standingExceptions = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE (ended_at = 0 OR ending = 'suspense') AND source = $1 AND id > $2 ORDER BY id LIMIT $3`
)

func (e *Exception) scan(r *db.Row) error {
	return r.Scan(&e.ID, &e.Source, &e.Kind, &e.Line, &e.Payment, &e.Amount, &e.Delta, &e.Reason, &e.At, &e.OpenedAt, &e.EndedAt, &e.Ending, &e.Request, &e.Owner, &e.OwnerName, &e.Note)
}

var insertExceptions = []db.Column[Exception]{
	{Name: "id", Text: func(e Exception) string { return e.ID }},
	{Name: "source", Text: func(e Exception) string { return e.Source }},
	{Name: "kind", Text: func(e Exception) string { return string(e.Kind) }},
	{Name: "line", Text: func(e Exception) string { return e.Line }},
	{Name: "payment", Text: func(e Exception) string { return e.Payment }},
	{Name: "amount", Int: func(e Exception) int64 { return int64(e.Amount) }},
	{Name: "delta", Int: func(e Exception) int64 { return int64(e.Delta) }},
	{Name: "reason", Text: func(e Exception) string { return e.Reason }},
	{Name: "at", Time: func(e Exception) time.Time { return e.At }},
	{Name: "opened_at", Time: func(e Exception) time.Time { return e.OpenedAt }},
}

func queryExceptions(tx *db.Tx, sql string, args ...any) ([]Exception, error) {
	return db.All(tx, sql, args, (*Exception).scan)
}

// stands reports whether the exception ends by itself when the two sides agree.
func (e Exception) stands() bool { return e.EndedAt.IsZero() || e.Ending == EndedSuspend }

// same reports whether a found difference is the exception, which may be open or ended by a person.
func (e Exception) same(found Exception) bool {
	return e.Kind == found.Kind && e.Line == found.Line && e.Payment == found.Payment &&
		(e.EndedAt.IsZero() || e.Ending.stays() && e.Amount == found.Amount && (e.Delta == found.Delta || e.Ending != EndedSuspend))
}
