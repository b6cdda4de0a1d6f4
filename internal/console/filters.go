package console

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// The filters of lists of payments.
var (
	anyStatus = []page.Option{{Value: "", Text: "Any"}, {Value: "pending", Text: "Pending"}, {Value: "submitted", Text: "Submitted"}, {Value: "success", Text: "Success"},
		{Value: "failed", Text: "Failed"}, {Value: "declined", Text: "Declined"}, {Value: "invalid", Text: "Invalid"}}
	anyKind = []page.Option{{Value: "", Text: "Any"}, {Value: string(book.KindCollection), Text: "Collections"}, {Value: string(book.KindPayout), Text: "Payouts"},
		{Value: string(book.KindTopUp), Text: "Airtime"}, {Value: string(book.KindBundle), Text: "Data"}}
)

const dayFormat = "2006-01-02"

// param is a parameter of the address.
func (v *visit) param(name string) string { return v.r.URL.Query().Get(name) }

// days reads the first and the last day of a filter.
func (v *visit) days() (from, to time.Time, err error) {
	var bad problem.Fields
	for name, into := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := v.param(name); text != "" {
			day, err := time.Parse(dayFormat, text)
			if err != nil {
				bad.Add(name, "must be a day such as 2026-11-23")
			}
			*into = day
		}
	}
	return from, to, bad.Err()
}

// dayFields are the fields of these.
func (v *visit) dayFields() []page.Field {
	return []page.Field{{Name: "from", Label: "From", Type: "date", Value: v.param("from")}, {Name: "to", Label: "To", Type: "date", Value: v.param("to")}}
}

// narrowed says whether any of the parameters is set.
func (v *visit) narrowed(names ...string) bool {
	for _, name := range names {
		if v.param(name) != "" {
			return true
		}
	}
	return false
}

// account is an account or phone number as far as the visitor may see it.
func (v *visit) account(number string) string {
	if number == "" || v.can(seeNumbers) {
		return number
	}
	return page.Masked(number)
}

// referenceOf is a payment's reference as far as the visitor may see it: one that holds a number is masked like the number.
func (v *visit) referenceOf(p book.Payment) string {
	if v.can(seeNumbers) || !p.ReferenceHoldsNumber() {
		return p.Reference
	}
	return page.Masked(p.Reference)
}

// masks hides an account or phone number in what was said about it, in each way of writing it, from a visitor who may not
// see it.
func (v *visit) masks(number string) *strings.Replacer {
	if number == "" || v.can(seeNumbers) {
		return strings.NewReplacer()
	}
	pairs := []string{number, page.Masked(number)}
	if m, err := msisdn.Parse(number); err == nil {
		pairs = append(pairs, m.Local(), page.Masked(m.Local()))
	}
	return strings.NewReplacer(pairs...)
}
