package records

import (
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// presetBooks selects the columns that bookkeeping programs import.
const presetBooks = "bookkeeping"

// File returns payments as a file, with the columns that the parameter preset selects.
func File(v *console.Visit, name string, all func(each func(book.Payment) error) error) (console.Answer, error) {
	switch v.Param("preset") {
	case presetBooks:
	case "":
		return console.Exported(v, name, Columns(v, true, nil), all), nil
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

// entry is a movement of a wallet for a bookkeeping program. Money received is positive.
type entry struct {
	at                            time.Time
	amount                        int64 // pesewas
	payee, description, reference string
}

var entryColumns = []console.Column[entry]{
	console.Filed("Date", func(e entry) sheet.Value { return sheet.Day(e.at) }),
	console.Filed("Amount", func(e entry) sheet.Value { return sheet.Amount(e.amount) }),
	console.Text("", "Payee", func(e entry) string { return e.payee }),
	console.Text("", "Description", func(e entry) string { return e.description }),
	console.Text("", "Reference", func(e entry) string { return e.reference }),
}

// entryWords describe payments by kind.
var entryWords = map[book.Kind]string{book.KindCollection: "Collection", book.KindPayout: "Payout", book.KindTopUp: "Airtime", book.KindBundle: "Data package"}

// entries returns the movements of a successful payment: the amount, and the charges. Their sum is the payment's effect on the
// wallet.
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
