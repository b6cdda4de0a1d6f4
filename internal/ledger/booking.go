package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
)

// A Booking is a movement that an operator ordered.
type Booking struct {
	Kind      string // what was ordered: "wallet.fund", "float.add", ...
	Reference string // the operator's own; each kind accepts it once
	Account   Key    // the account whose balance the order changes
	Amount    int64  // pesewas or credits added to the account; negative: taken from it
	At        time.Time
	Request   string // id of the request's entry in the audit log
}

// TakenError is returned for a reference that was used for an earlier booking of the same kind. It wraps
// db.ErrUnique.
type TakenError struct {
	By Booking // the booking that uses the reference
}

// Error returns a text with the kind and the reference.
func (e *TakenError) Error() string {
	return "ledger: " + e.By.Kind + " already used the reference " + e.By.Reference
}

// Unwrap returns db.ErrUnique. After a lost response to COMMIT, the booking with the reference may be the caller's
// own.
func (e *TakenError) Unwrap() error { return db.ErrUnique }

const (
	bookingColumns = `kind, reference, asset, account, amount, at, act`

	insertBooking = `INSERT INTO bookings (` + bookingColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, reference) DO NOTHING`

	selectBooking = `SELECT ` + bookingColumns + ` FROM bookings WHERE kind = $1 AND reference = $2`

	selectAlike = `SELECT ` + bookingColumns + ` FROM bookings
WHERE account = $1 AND asset = $2 AND kind = $3 AND amount = $4 AND at >= $5 ORDER BY at DESC LIMIT 1`
)

func (b *Booking) scan(r *db.Row) error {
	return r.Scan(&b.Kind, &b.Reference, &b.Account.Asset, &b.Account.ID, &b.Amount, &b.At, &b.Request)
}

// Book stores a booking, and so marks its reference as used. The caller must move the amount in the same transaction.
// If two transactions use a reference at once, the second waits for the first. It gets a *TakenError if the first
// commits.
func (l *Ledger) Book(tx *db.Tx, b Booking) error {
	if b.Kind == "" || b.Reference == "" || b.Amount == 0 {
		return errors.New("ledger: an incomplete booking")
	}
	n, err := tx.Exec(insertBooking, b.Kind, b.Reference, b.Account.Asset, b.Account.ID, b.Amount, l.clock.Now(), b.Request)
	if err != nil || n == 1 {
		return err
	}
	taken := &TakenError{}
	if err := tx.Query(selectBooking, []any{b.Kind, b.Reference}, taken.By.scan); err != nil {
		return err
	}
	return taken
}

// Booked returns the booking of a kind and reference.
func (l *Ledger) Booked(ctx context.Context, kind, reference string) (b Booking, found bool, err error) {
	return l.booking(ctx, selectBooking, kind, reference)
}

const selectBookingOf = `SELECT ` + bookingColumns + ` FROM bookings
WHERE account = $1 AND asset = $2 AND amount = $3 AND at BETWEEN $4 AND $5 ORDER BY at LIMIT 1`

// BookingOf returns the booking that moved a line of a wallet: the first with its account and amount within a minute
// of the line.
func (l *Ledger) BookingOf(ctx context.Context, line Line) (b Booking, found bool, err error) {
	account := line.To
	if line.Change < 0 {
		account = line.From
	}
	return l.booking(ctx, selectBookingOf, account, line.Asset, line.Change, line.At, line.At.Add(time.Minute))
}

// BookedAlike returns the last booking since a time that has the kind, account and amount of b.
func (l *Ledger) BookedAlike(ctx context.Context, b Booking, since time.Time) (alike Booking, found bool, err error) {
	return l.booking(ctx, selectAlike, b.Account.ID, b.Account.Asset, b.Kind, b.Amount, since)
}

func (l *Ledger) booking(ctx context.Context, sql string, args ...any) (b Booking, found bool, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		b, found = Booking{}, false
		return tx.Query(sql, args, func(r *db.Row) error {
			found = true
			return b.scan(r)
		})
	})
	return b, found, err
}
