package ledger

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Most is the largest balance, in the smallest unit, that an operator's order may leave on an account. -Most is the
// smallest. The limit keeps sums of accounts far below the range of 64 bits. Payments and their refunds ignore it.
const Most = int64(money.Most)

// RoomError refuses a transfer that would leave more than Most on an account.
type RoomError struct {
	Account Key
	Room    int64 // the largest amount that fits
}

// Error reads behind the name of a field.
func (e *RoomError) Error() string {
	return "must be at most " + e.Account.Asset.Text(e.Room) + ", because an account holds at most " + e.Account.Asset.Text(Most)
}

// CheckRoom refuses a transfer with a *RoomError when one of its accounts would hold more than Most afterwards, or less
// than -Most. Only wallets are locked. Orders at the same moment may exceed the limit of another account by their own
// amounts, which overflows nothing.
func (l *Ledger) CheckRoom(tx *db.Tx, t Transfer) error {
	for _, side := range []struct {
		id   AccountID
		sign int64
	}{{t.From, -1}, {t.To, 1}} {
		if side.sign < 0 && side.id.Floored() {
			continue // its floor is nearer
		}
		key := Key{t.Asset, side.id}
		balance, err := l.BalanceIn(tx, key)
		if err != nil {
			return err
		}
		if room := roomAbove(side.sign * balance); t.Amount > room {
			return &RoomError{Account: key, Room: room}
		}
	}
	return nil
}

// roomAbove is the distance from a balance to Most; a balance that an older version let grow has none.
func roomAbove(balance int64) int64 { return max(0, Most-max(balance, -Most)) }
