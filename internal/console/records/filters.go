package records

import (
	"context"
	"net/url"
	"strconv"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// The filters of lists of payments.
var (
	AnyStatus = []page.Option{{Value: "", Text: "All"}, {Value: "pending", Text: "Pending"}, {Value: "submitted", Text: "Submitted"}, {Value: "success", Text: "Success"},
		{Value: "failed", Text: "Failed"}, {Value: "declined", Text: "Declined"}, {Value: "invalid", Text: "Invalid"}}
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
