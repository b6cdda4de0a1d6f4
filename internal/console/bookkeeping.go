package console

import (
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// presetBooks asks for a file of payments with the columns that bookkeeping programs import.
const presetBooks = "bookkeeping"

// paymentsFile is a file of payments with the columns of the preset that the address asks for.
func (v *visit) paymentsFile(name string, all func(each func(book.Payment) error) error) (answer, error) {
	switch v.param("preset") {
	case presetBooks:
	case "":
		return exported(v, name, v.paymentColumns(), all), nil
	default:
		return answer{}, problem.Field("preset", "must be "+presetBooks)
	}
	return exported(v, presetBooks+"-"+name, entryColumns, func(each func(entry) error) error {
		return all(func(p book.Payment) error {
			for _, e := range v.entries(p) {
				if err := each(e); err != nil {
					return err
				}
			}
			return nil
		})
	}), nil
}

// entry is a movement of a wallet as bookkeeping programs take it: money that came is positive.
type entry struct {
	at                            time.Time
	amount                        int64 // pesewas
	payee, description, reference string
}

var entryColumns = []column[entry]{
	{Head: "Date", Value: func(e entry) sheet.Value { return sheet.Day(e.at) }},
	{Head: "Amount", Value: func(e entry) sheet.Value { return sheet.Amount(e.amount) }},
	{Head: "Payee", Value: func(e entry) sheet.Value { return sheet.String(e.payee) }},
	{Head: "Description", Value: func(e entry) sheet.Value { return sheet.String(e.description) }},
	{Head: "Reference", Value: func(e entry) sheet.Value { return sheet.String(e.reference) }},
}

// entryWords describe payments by kind.
var entryWords = map[book.Kind]string{book.KindCollection: "Collection", book.KindPayout: "Payout", book.KindTopUp: "Airtime", book.KindBundle: "Data package"}

// entries gives the movements of a payment that succeeded: what passed to or from the other party, and the charges. Their
// sum is what the payment brought to the wallet or took from it.
func (v *visit) entries(p book.Payment) []entry {
	if p.Status != book.StatusSuccess || unknown(p) {
		return nil
	}
	payee := v.accountName(p)
	if payee == "" {
		payee = v.account(p.Account)
	}
	amount := -int64(p.Amount)
	if p.Kind == book.KindCollection {
		amount = int64(p.Gross())
	} else if p.Received() {
		amount = -amount
	}
	reference := v.referenceOf(p)
	made := []entry{{p.SettledAt, amount, payee, entryWords[p.Kind] + ", " + p.Channel, reference}}
	if p.Charges > 0 {
		made = append(made, entry{p.SettledAt, -int64(p.Charges), "", "Charges of " + reference, reference})
	}
	return made
}
