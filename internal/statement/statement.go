// Package statement reads statements of a wallet or of the SMS credits of an account: the opening balance of a
// period, each movement with the balance after it, and the closing balance.
//
// A movement is a transfer of the ledger, so a statement has exactly the changes of the balance. A payment has one
// line for its amount and one for its charges. Totals are summed from the same lines, and Summary reports a line
// whose balance does not follow from the line before.
//
// Files: statement.go (a period and its summary), entry.go (the types of movements), columns.go (files).
package statement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
)

// Reader reads statements. It is safe for concurrent use.
type Reader struct {
	ledger   *ledger.Ledger
	payments *book.Reader
	tenants  *tenant.Store
	faults   atomic.Uint64
}

// Faults returns the number of summaries since the start that contradicted the ledger.
func (r *Reader) Faults() uint64 { return r.faults.Load() }

// New returns a Reader.
func New(l *ledger.Ledger, p *book.Reader, t *tenant.Store) *Reader {
	return &Reader{ledger: l, payments: p, tenants: t}
}

// Statement is a period of one wallet or credits account. Later movements of the account do not change it.
type Statement struct {
	ledger.Stretch
	Tenant tenant.Tenant
	From   time.Time // first moment of the period
	To     time.Time // first moment after the period
}

// Open returns the statement of a period: From <= at < To. A zero time means no limit. credits selects the SMS
// credits of the account instead of its wallet.
func (r *Reader) Open(ctx context.Context, of tenant.Tenant, credits bool, from, to time.Time) (Statement, error) {
	key := of.Wallet()
	if credits {
		key = of.SMSCredits()
	}
	stretch, err := r.ledger.Stretch(ctx, key, from, to)
	return Statement{Stretch: stretch, Tenant: of, From: from, To: to}, err
}

// Total sums the movements of one type and channel.
type Total struct {
	Type    Type
	Channel string
	Count   int64
	In, Out int64 // pesewas or credits, both positive
}

// Summary sums a statement.
type Summary struct {
	In, Out int64   // pesewas or credits, both positive
	Totals  []Total // by type and channel, in the order of their declaration
	// Charged and Returned are the charges that were debited from the wallet and credited back, in pesewas. Deducted
	// are the charges that were taken from collections before their credit.
	Charged, Returned, Deducted money.Pesewas
	// Problem describes a contradiction between the lines. It is empty if they agree with the ledger.
	Problem string
}

// Fees returns the charges of the period, in pesewas.
func (s Summary) Fees() money.Pesewas { return s.Charged - s.Returned + s.Deducted }

// Summarize sums a whole statement. It reads a limited number of movements at a time.
func (r *Reader) Summarize(ctx context.Context, s Statement) (sum Summary, err error) {
	type key struct {
		kind    Type
		channel string
	}
	totals := map[key]*Total{}
	balance := s.Opening
	err = r.Each(ctx, s, func(e Entry) error {
		if balance += e.Change; balance != e.Balance && sum.Problem == "" {
			sum.Problem = fmt.Sprintf("The balance after movement %d is %s, and should be %s.", e.Number, s.Asset.Text(e.Balance), s.Asset.Text(balance))
		}
		balance = e.Balance
		t := totals[key{e.Type, e.Channel}]
		if t == nil {
			t = &Total{Type: e.Type, Channel: e.Channel}
			totals[key{e.Type, e.Channel}] = t
		}
		t.Count++
		t.In, sum.In = t.In+max(e.Change, 0), sum.In+max(e.Change, 0)
		t.Out, sum.Out = t.Out+max(-e.Change, 0), sum.Out+max(-e.Change, 0)
		sum.Charged, sum.Returned, sum.Deducted = sum.Charged+e.Charged, sum.Returned+e.Returned, sum.Deducted+e.Deducted
		return nil
	})
	if balance != s.Closing && sum.Problem == "" {
		sum.Problem = fmt.Sprintf("The movements end at %s, and the account holds %s.", s.Asset.Text(balance), s.Asset.Text(s.Closing))
	}
	if sum.Problem != "" {
		r.faults.Add(1)
	}
	for _, t := range totals {
		sum.Totals = append(sum.Totals, *t)
	}
	slices.SortFunc(sum.Totals, func(a, b Total) int {
		return cmp.Or(cmp.Compare(slices.Index(types, a.Type), slices.Index(types, b.Type)), cmp.Compare(a.Channel, b.Channel))
	})
	return sum, err
}

// readAtOnce is the number of movements in memory at once.
const readAtOnce = 1000

// Each calls f for every movement, oldest first.
func (r *Reader) Each(ctx context.Context, s Statement, f func(Entry) error) error {
	for skip := int64(0); skip < s.Total(); skip += readAtOnce {
		entries, err := r.Page(ctx, s, skip, readAtOnce)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Page returns size movements after the first skip, oldest first.
func (r *Reader) Page(ctx context.Context, s Statement, skip int64, size int) ([]Entry, error) {
	lines, err := r.ledger.Lines(ctx, s.Stretch, skip, size)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(lines))
	for _, l := range lines {
		ids = append(ids, l.Subject)
	}
	payments, err := r.payments.ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(lines))
	for i, l := range lines {
		if entries[i], err = r.entry(ctx, s, l, payments); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
