package records

import (
	"strings"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// accountName is the name of the other party, for those who may see it.
func accountName(v *console.Visit, p book.Payment) string {
	if !v.Can(seeNumbers) {
		return ""
	}
	return p.AccountName
}

// Account is an account or phone number as far as the visitor may see it.
func Account(v *console.Visit, number string) string {
	if number == "" || v.Can(seeNumbers) {
		return number
	}
	return page.Masked(number)
}

// ReferenceOf is a payment's reference as far as the visitor may see it: one that holds a number is masked like the number.
func ReferenceOf(v *console.Visit, p book.Payment) string {
	if v.Can(seeNumbers) || !p.ReferenceHoldsNumber() {
		return p.Reference
	}
	return page.Masked(p.Reference)
}

// masks hides an account or phone number in what was said about it, in each way of writing it, from a visitor who may not
// see it.
func masks(v *console.Visit, number string) *strings.Replacer {
	if number == "" || v.Can(seeNumbers) {
		return strings.NewReplacer()
	}
	pairs := []string{number, page.Masked(number)}
	if m, err := msisdn.Parse(number); err == nil {
		pairs = append(pairs, m.Local(), page.Masked(m.Local()))
	}
	return strings.NewReplacer(pairs...)
}

const seeNumbers = roles.ReadNumbers
