package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
)

// span is a period that statements cover without a gap.
type span struct {
	from, to         time.Time
	opening, closing money.Pesewas
}

// apart returns periods in order, with those that overlap joined.
func apart(list []span) (joined []span) {
	slices.SortFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range list {
		n := len(joined)
		if n == 0 || s.from.After(joined[n-1].to) {
			joined = append(joined, s)
		} else if s.to.After(joined[n-1].to) {
			joined[n-1].to = s.to
		}
	}
	return joined
}

// walked is how many payments are read at once.
const walked = 1000

// outlines reads the payments of a source that were accepted within a period, in parts.
func (m *matcher) outlines(ctx context.Context, source Source, from, to time.Time, do func([]book.Outline) error) error {
	for after := book.IDAt(from); after != ""; {
		list, next, err := m.payments.OutlinesBetween(ctx, source.Provider, string(source.Mode), after, to, walked)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(o book.Outline) bool {
			return m.account(book.Payment{Kind: o.Kind, Rail: o.Rail, Mode: o.Mode}) != source.Account
		})
		if err := do(list); err != nil {
			return err
		}
		after = next
	}
	return nil
}

// of reports whether a payment moves money of a source.
func (m *matcher) of(s Source, p book.Payment) bool {
	return p.Rail == s.Provider && p.Mode == string(s.Mode) && m.account(p) == s.Account
}
