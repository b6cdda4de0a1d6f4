package records

import (
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// presetBooks asks for a file of payments with the columns that bookkeeping programs import.
const presetBooks = "bookkeeping"

// File is a file of payments with the columns of the Preset that the address asks for.
func File(v *console.Visit, name string, all func(each func(book.Payment) error) error) (console.Answer, error) {
	switch v.Param("preset") {
	case presetBooks:
	case "":
		return console.Exported(v, name, paymentColumns(v), all), nil
	default:
		return console.Answer{}, problem.Field("preset", "must be "+presetBooks)
	}
	return console.Exported(v, presetBooks+"-"+name, entryColumns, func(each func(entry) error) error {
		return all(func(p book.Payment) error {
			for _, e := range entries(v, p) {
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

var entryColumns = []sheet.Column[entry]{
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
func entries(v *console.Visit, p book.Payment) []entry {
	if p.Status != book.StatusSuccess || words.Unknown(p) {
		return nil
	}
	payee := accountName(v, p)
	if payee == "" {
		payee = Account(v, p.Account)
	}
	amount := -int64(p.Amount)
	if p.Kind == book.KindCollection {
		amount = int64(p.Gross())
	} else if p.Received() {
		amount = -amount
	}
	reference := ReferenceOf(v, p)
	made := []entry{{p.SettledAt, amount, payee, entryWords[p.Kind] + ", " + p.Channel, reference}}
	if p.Charges > 0 {
		made = append(made, entry{p.SettledAt, -int64(p.Charges), "", "Charges of " + reference, reference})
	}
	return made
}
