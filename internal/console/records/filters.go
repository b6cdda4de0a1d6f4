package records

import (
	"context"
	"net/url"
	"strconv"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// UnknownStatus filters open payments with an unknown outcome.
const UnknownStatus = "unknown"

// AmountInputs are the parameters of the range of amounts.
var AmountInputs = []console.Input{{Name: "least", Max: 20}, {Name: "most", Max: 20}}

// AmountFields are the fields of the range of amounts.
func AmountFields(v *console.Visit) []page.Field {
	return []page.Field{{Name: "least", Label: "Amount from", Value: v.Param("least"), Max: 20}, {Name: "most", Label: "Amount to", Value: v.Param("most"), Max: 20}}
}

// Amounts reads the range of amounts. An empty bound is 0.
func Amounts(v *console.Visit) (least, most money.Pesewas, err error) {
	var bad problem.Fields
	for name, into := range map[string]*money.Pesewas{"least": &least, "most": &most} {
		text := v.Param(name)
		if text == "" {
			continue
		}
		if *into, err = money.ParseLenient(text); err != nil || *into <= 0 {
			bad.Add(name, "must be an amount such as 25.00")
		}
	}
	return least, most, bad.Err()
}

// Totals returns the sums of a list.
func Totals(amount, charges money.Pesewas) string {
	return "In all " + page.Cedis(amount) + ", with fees of " + page.Cedis(charges) + "."
}

// The filters of lists of payments.
var (
	AnyStatus = []page.Option{{Value: "", Text: "All"}, {Value: "pending", Text: "Pending"}, {Value: "submitted", Text: "Submitted"}, {Value: "success", Text: "Success"},
		{Value: "failed", Text: "Failed"}, {Value: "declined", Text: "Declined"}, {Value: "invalid", Text: "Invalid"}, {Value: UnknownStatus, Text: "Outcome unknown"}}
	AnyKind = []page.Option{{Value: "", Text: "All"}, {Value: string(book.KindCollection), Text: "Collections"}, {Value: string(book.KindPayout), Text: "Payouts"},
		{Value: string(book.KindTopUp), Text: "Airtime"}, {Value: string(book.KindBundle), Text: "Data packages"}}
)

// Newer returns the line with the number of rows that are newer than the page.
func Newer(v *console.Visit, count func(context.Context) (int64, error)) (console.Answer, error) {
	n, err := count(v.Ctx)
	if err != nil || n == 0 {
		return console.Answer{Same: true}, err
	}
	text := strconv.FormatInt(n, 10)
	if n == book.MaxNewer {
		text += " or more"
	}
	if text == v.Param("seen") {
		return console.Answer{Same: true}, nil
	}
	poll := v.R.URL.Path + "?" + url.Values{"newer": {v.Param("newer")}, "seen": {text}}.Encode()
	return console.Answer{Part: page.Newer(poll, text, v.R.URL.Path, 5)}, nil
}

// Preset selects the columns of a file of payments.
var Preset = console.Input{Name: "preset", Max: 20}
