package ledger

import (
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
)

// Text writes a number of the asset for a person, such as GHS 500,000.00 or 1,000 credits.
func (a Asset) Text(n int64) string {
	switch a {
	case SMS:
		return grouped(strconv.FormatInt(n, 10)) + " credits"
	case TestSMS:
		return grouped(strconv.FormatInt(n, 10)) + " test credits"
	case TestGHS:
		return "test GHS " + grouped(money.Pesewas(n).String())
	}
	return "GHS " + grouped(money.Pesewas(n).String())
}

// grouped puts a comma after each three digits before the point.
func grouped(number string) string {
	digits, rest, point := strings.Cut(number, ".")
	sign, digits := digits[:len(digits)-len(strings.TrimPrefix(digits, "-"))], strings.TrimPrefix(digits, "-")
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if point {
		rest = "." + rest
	}
	return sign + digits + rest
}
