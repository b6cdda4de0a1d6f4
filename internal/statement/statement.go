// Package statement reads statements of a wallet or of the SMS credits of an account: the opening balance of a
// period, each movement with the balance after it, and the closing balance.
//
// A movement is a transfer of the ledger, so a statement has exactly the changes of the balance. A payment has one
// line for its amount and one for its charges. Totals are summed from the same lines, and Summary reports a line
// whose balance does not follow from the line before.
//
// Files: blocks.go (stored sums of movements), statement.go (a period and its summary), entry.go (the types of movements), columns.go (files).
package statement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
)

// Reader reads statements. It is safe for concurrent use.
type Reader struct {
	db       *db.DB
	ledger   *ledger.Ledger
	payments *book.Reader
	tenants  *tenant.Store
	faults   atomic.Uint64
}

// Faults returns the number of summaries since the start that contradicted the ledger.
func (r *Reader) Faults() uint64 { return r.faults.Load() }

// New returns a Reader.
func New(d *db.DB, l *ledger.Ledger, p *book.Reader, t *tenant.Store) *Reader {
	return &Reader{db: d, ledger: l, payments: p, tenants: t}
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
func (r *Reader) Summarize(ctx context.Context, s Statement) (Summary, error) {
	a := newAdder(s)
	err := r.Each(ctx, s, a.add)
	return r.ended(a), err
}

// ended ends a sum, and counts one that contradicts the ledger.
func (r *Reader) ended(a *adder) Summary {
	sum := a.end()
	if sum.Problem != "" {
		r.faults.Add(1)
	}
	return sum
}

// An adder sums the movements of a statement.
type adder struct {
	of      Statement
	balance int64 // balance after the last movement
	sum     Summary
	totals  map[totalKey]*Total
}

type totalKey struct {
	kind    Type
	channel string
}

func newAdder(s Statement) *adder {
	return &adder{of: s, balance: s.Opening, totals: map[totalKey]*Total{}}
}

// wrong stores the first contradiction.
func (a *adder) wrong(format string, movement, is, should int64) {
	if a.sum.Problem == "" {
		a.sum.Problem = fmt.Sprintf(format, movement, a.of.Asset.Text(is), a.of.Asset.Text(should))
	}
}

func (a *adder) total(kind Type, channel string) *Total {
	key := totalKey{kind, channel}
	if a.totals[key] == nil {
		a.totals[key] = &Total{Type: kind, Channel: channel}
	}
	return a.totals[key]
}

func (a *adder) add(e Entry) error {
	if a.balance += e.Change; a.balance != e.Balance {
		a.wrong("The balance after movement %d is %s, and should be %s.", e.Number, e.Balance, a.balance)
	}
	a.balance = e.Balance
	t, sum := a.total(e.Type, e.Channel), &a.sum
	t.Count++
	t.In, sum.In = t.In+max(e.Change, 0), sum.In+max(e.Change, 0)
	t.Out, sum.Out = t.Out+max(-e.Change, 0), sum.Out+max(-e.Change, 0)
	sum.Charged, sum.Returned, sum.Deducted = sum.Charged+e.Charged, sum.Returned+e.Returned, sum.Deducted+e.Deducted
	return nil
}

// end compares the last balance with the ledger's, and sorts the totals.
func (a *adder) end() Summary {
	if a.balance != a.of.Closing && a.sum.Problem == "" {
		a.sum.Problem = fmt.Sprintf("The movements end at %s, and the account holds %s.", a.of.Asset.Text(a.balance), a.of.Asset.Text(a.of.Closing))
	}
	for _, t := range a.totals {
		a.sum.Totals = append(a.sum.Totals, *t)
	}
	slices.SortFunc(a.sum.Totals, func(a, b Total) int {
		return cmp.Or(cmp.Compare(slices.Index(types, a.Type), slices.Index(types, b.Type)), cmp.Compare(a.Channel, b.Channel))
	})
	return a.sum
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
