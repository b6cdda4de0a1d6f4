package messaging

import (
	"errors"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// MaxSale is the maximum number of credits in one sale.
const MaxSale = 1_000_000_000

// CheckSale returns an error for a number of credits that cannot be sold.
func CheckSale(credits int64) error {
	if credits <= 0 || credits > MaxSale {
		return problem.Field("credits", "must be 1 to 1000000000")
	}
	return nil
}

// SellCredits adds credits to a tenant's balance in tx and returns the new balance. The caller writes the audit entry
// with the price in the same transaction. sale is an id that the caller makes before the transaction. A sale is
// booked only once.
func (m *Messaging) SellCredits(tx *db.Tx, tenantID, sale string, credits int64) (balance int64, err error) {
	return m.book(tx, tenantID, sale, "sms_sale", credits)
}

// TakeCredits takes back credits that were sold by mistake. It takes at most the balance.
func (m *Messaging) TakeCredits(tx *db.Tx, tenantID, sale string, credits int64) (balance int64, err error) {
	return m.book(tx, tenantID, sale, "sms_sale_reversed", credits)
}

func (m *Messaging) book(tx *db.Tx, tenantID, sale, kind string, credits int64) (balance int64, err error) {
	if err := CheckSale(credits); err != nil {
		return 0, err
	}
	t, err := m.tenants.Locked(tx, tenantID)
	if err != nil {
		return 0, err
	}
	key := t.SMSCredits()
	page, err := m.ledger.Open(tx, key)
	if err != nil {
		return 0, err
	}
	transfer := ledger.Transfer{Asset: key.Asset, From: ledger.Funding, To: key.ID, Amount: credits, Subject: sale, Leg: "sale", Kind: kind, At: m.clock.Now()}
	if kind != "sms_sale" {
		transfer.From, transfer.To = transfer.To, transfer.From
		if !page.Covers(key, credits) {
			return 0, Shortage{Balance: page.Balance(key), Cost: credits}.Err()
		}
	}
	var room *ledger.RoomError
	if err := m.ledger.CheckRoom(tx, transfer); errors.As(err, &room) {
		return 0, problem.Field("credits", room.Error())
	} else if err != nil {
		return 0, err
	}
	if err := page.Add(transfer); err != nil {
		return 0, err
	}
	page.Post()
	return page.Balance(key), nil
}
