package book

import (
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// A Narrowing selects payments by properties that no index covers. The zero Narrowing selects all.
type Narrowing struct {
	Least, Most money.Pesewas // bounds of the amount, inclusive; 0: open
	Unknown     bool          // open payments with an unknown outcome
}

// Any reports whether n excludes any payment.
func (n Narrowing) Any() bool { return n != (Narrowing{}) }

func (n Narrowing) check(bad *problem.Fields) {
	if n.Most > 0 && n.Most < n.Least {
		bad.Add("most", "must not be below the minimum amount")
	}
}

func (n Narrowing) selects(p Payment) bool {
	return p.Amount >= n.Least && (n.Most == 0 || p.Amount <= n.Most) && (!n.Unknown || p.OutcomeUnknown())
}

// boolean returns 1 for true and 0 for false, for SQL.
func boolean(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
