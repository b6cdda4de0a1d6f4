package records

import (
	"strings"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// accountName returns the name of the other party. It is empty for visitors who may not see it.
func accountName(v *console.Visit, p book.Payment) string {
	if !v.Can(seeNumbers) {
		return ""
	}
	return p.AccountName
}

// Account returns an account or phone number, masked for visitors who may not see it.
func Account(v *console.Visit, number string) string {
	if number == "" || v.Can(seeNumbers) {
		return number
	}
	return page.Masked(number)
}

// ReferenceOf returns a payment's reference. A reference that contains a phone number is masked like the number.
func ReferenceOf(v *console.Visit, p book.Payment) string {
	if v.Can(seeNumbers) || !p.ReferenceHoldsNumber() {
		return p.Reference
	}
	return page.Masked(p.Reference)
}

// masks replaces an account or phone number, in each form, with its mask. It changes nothing for visitors who may see
// numbers.
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
