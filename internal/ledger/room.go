package ledger

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

// Most is the largest balance that an operator's order may leave in an account, in pesewas or credits. -Most is the
// smallest. The limit keeps sums of accounts far below the range of 64 bits. The limit does not apply to payments
// and their refunds.
const Most = int64(money.Most)

// RoomError is returned for a transfer after which an account would exceed Most.
type RoomError struct {
	Account Key
	Room    int64 // the largest amount that fits
}

// Error returns a text that follows the name of a field.
func (e *RoomError) Error() string {
	return "must be at most " + e.Account.Asset.Text(e.Room) + ", because an account holds at most " + e.Account.Asset.Text(Most)
}

// CheckRoom returns a *RoomError if the transfer would leave an account above Most or below -Most. Only wallets are
// locked. Concurrent orders may therefore exceed the limit of another account by their own amounts, which cannot
// overflow 64 bits.
func (l *Ledger) CheckRoom(tx *db.Tx, t Transfer) error {
	for _, side := range []struct {
		id   AccountID
		sign int64
	}{{t.From, -1}, {t.To, 1}} {
		if side.sign < 0 && side.id.Floored() {
			continue // its floor is a narrower limit
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

// roomAbove returns the distance from a balance to Most. It returns 0 for a balance above Most, which older versions
// allowed.
func roomAbove(balance int64) int64 { return max(0, Most-max(balance, -Most)) }
