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
	Reference string // the operator's own; a kind takes it once
	Account   Key    // whose balance the order changes
	Amount    int64  // pesewas or credits that go into the account; out of it below zero
	At        time.Time
	Act       string // id of its entry in the audit log
}

// TakenError refuses a reference that its kind has taken. It is db.ErrUnique.
type TakenError struct {
	By Booking // the booking that took the reference
}

// Error names the reference.
func (e *TakenError) Error() string {
	return "ledger: " + e.By.Kind + " has taken the reference " + e.By.Reference
}

// Unwrap returns db.ErrUnique. After a lost response to COMMIT the reference may be taken by this very booking.
func (e *TakenError) Unwrap() error { return db.ErrUnique }

const (
	bookingColumns = `kind, reference, asset, account, amount, at, act`

	insertBooking = `INSERT INTO bookings (` + bookingColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, reference) DO NOTHING`

	selectBooking = `SELECT ` + bookingColumns + ` FROM bookings WHERE kind = $1 AND reference = $2`

	selectAlike = `SELECT ` + bookingColumns + ` FROM bookings
WHERE account = $1 AND asset = $2 AND kind = $3 AND amount = $4 AND at >= $5 ORDER BY at DESC LIMIT 1`
)

func (b *Booking) scan(r *db.Row) error {
	return r.Scan(&b.Kind, &b.Reference, &b.Account.Asset, &b.Account.ID, &b.Amount, &b.At, &b.Act)
}

// Book takes a booking's reference in tx, which also moves its amount: the one is
// never there without the other. Of two transactions that want the same reference
// at once the second waits for the first, and is refused with a *TakenError where
// that commits.
func (l *Ledger) Book(tx *db.Tx, b Booking) error {
	if b.Kind == "" || b.Reference == "" || b.Amount == 0 {
		return errors.New("ledger: an incomplete booking")
	}
	n, err := tx.Exec(insertBooking, b.Kind, b.Reference, b.Account.Asset, b.Account.ID, b.Amount, l.clock.Now(), b.Act)
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

// BookingOf returns the booking of a wallet's line: the first one of its account and amount within a minute of it.
func (l *Ledger) BookingOf(ctx context.Context, line Line) (b Booking, found bool, err error) {
	account := line.To
	if line.Change < 0 {
		account = line.From
	}
	return l.booking(ctx, selectBookingOf, account, line.Asset, line.Change, line.At, line.At.Add(time.Minute))
}

// BookedAlike finds the last booking since a time of the same kind, account and
// amount as b.
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
