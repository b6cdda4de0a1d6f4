package ledger

import (
	"strconv"

	"github.com/makola/makola/internal/money"
)

// Credits reports whether the asset is SMS credits, not money.
func (a Asset) Credits() bool { return a == SMS || a == TestSMS }

// Text formats an amount of the asset for a person, such as GHS 500,000.00 or 1,000 credits.
func (a Asset) Text(n int64) string {
	switch a {
	case SMS:
		return money.Grouped(strconv.FormatInt(n, 10)) + " credits"
	case TestSMS:
		return money.Grouped(strconv.FormatInt(n, 10)) + " test credits"
	case TestGHS:
		return "test GHS " + money.Grouped(money.Pesewas(n).String())
	}
	return "GHS " + money.Grouped(money.Pesewas(n).String())
}
