package funds

import (
	"context"
	"time"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

type ledgerStatement struct {
	frame.Common
	Tenant  string `arg:"" help:"Id or unique name of the customer."`
	From    string `name:"from" placeholder:"DATE" help:"First day, YYYY-MM-DD in Accra's time, which is UTC; from the beginning when absent."`
	To      string `name:"to" placeholder:"DATE" help:"Last day, inclusive; until now when absent."`
	Credits bool   `name:"credits" help:"The statement of the SMS credits instead of the wallet."`
}

// A statementRow is one line as printed: what one deed moved in the wallet, its charges with it. Opening, closing and
// totals are lines, too, so that a file says all.
type statementRow struct {
	at        time.Time
	what      string
	reference string // the customer's own, or an operator's
	payee     string
	provider  string // our reference at the provider
	subject   string
	change    int64
	balance   int64
	asset     ledger.Asset
	total     bool // a sum of changes, which leaves no balance
	first     ledger.Line
}

// statementPage is how many lines are read at once.
const statementPage = 1000

// accra is the time of Ghana, which knows no summer time.
var accra = time.FixedZone("GMT", 0)

// Run prints a statement.
func (c *ledgerStatement) Run(e *frame.Env) error {
	from, to, err := days(c.From, c.To)
	if err != nil {
		return err
	}
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		key := t.Wallet()
		if c.Credits {
			key = t.SMSCredits()
		}
		rows, err := statementOf(e.Ctx, o, p, t, key, from, to)
		if err != nil {
			return err
		}
		columns := frame.Narrow(c.Output, statementColumns(c.Output), "at", "what", "reference", "payee", "change", "balance", "provider_reference")
		return frame.PrintAll(e.Stdout, c.Output, columns, rows)
	})
}

// statementOf reads the rows of a stretch, with its opening, its closing and its totals.
func statementOf(ctx context.Context, o *frame.Opened, p *payments.Payments, t tenant.Tenant, key ledger.Key, from, to time.Time) ([]statementRow, error) {
	opening := statementRow{what: "opening", asset: key.Asset, at: from}
	closing := statementRow{what: "closing", asset: key.Asset, at: to}
	if now := o.Clock.Now(); now.Before(to) {
		closing.at = now
	}
	if from.Before(t.CreatedAt) {
		opening.at = t.CreatedAt
	}
	in, out := statementRow{what: "total in", asset: key.Asset, total: true}, statementRow{what: "total out", asset: key.Asset, total: true}
	stretch, err := o.Ledger.Stretch(ctx, key, from, to)
	if err != nil {
		return nil, err
	}
	opening.balance, closing.balance = stretch.Opening, stretch.Closing
	rows := []statementRow{opening}
	for skip := int64(0); skip < stretch.Total(); skip += statementPage {
		lines, err := o.Ledger.Lines(ctx, stretch, skip, statementPage)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if last := &rows[len(rows)-1]; last.subject == l.Subject && last.at.Equal(l.At) {
				last.change, last.balance = last.change+l.Change, l.Balance
				continue
			}
			rows = append(rows, statementRow{at: l.At, what: l.Kind, subject: l.Subject, change: l.Change, balance: l.Balance, asset: key.Asset, first: l})
		}
	}
	if err := explain(ctx, o, p, t, rows[1:]); err != nil {
		return nil, err
	}
	for _, r := range rows[1:] {
		if r.change > 0 {
			in.change += r.change
		} else {
			out.change += r.change
		}
	}
	return append(rows, closing, in, out), nil
}

// explain says of each row what it was for and to whom: from its payment, or from an operator's order.
func explain(ctx context.Context, o *frame.Opened, p *payments.Payments, t tenant.Tenant, rows []statementRow) error {
	for len(rows) > 0 {
		some := rows[:min(statementPage, len(rows))]
		rows = rows[len(some):]
		ids := make([]string, len(some))
		for i, r := range some {
			ids[i] = r.subject
		}
		all, err := p.Those(ctx, ids)
		if err != nil {
			return err
		}
		for i := range some {
			r := &some[i]
			pay, is := all[r.subject]
			if is {
				if err := explainPayment(ctx, o, t, r, pay); err != nil {
					return err
				}
				continue
			}
			b, found, err := o.Ledger.BookingOf(ctx, r.first)
			if err != nil {
				return err
			}
			if found {
				r.reference = b.Reference
			}
		}
	}
	return nil
}

// explainPayment fills the members of a row that its payment has.
func explainPayment(ctx context.Context, o *frame.Opened, t tenant.Tenant, r *statementRow, pay book.Payment) error {
	r.reference, r.provider = pay.Reference, pay.ProviderReference
	r.payee = pay.Account
	if pay.AccountName != "" {
		r.payee += " " + pay.AccountName
	}
	if pay.Channel != book.ChannelWallet {
		return nil
	}
	// A transfer between wallets: the other side is a customer of ours, and no provider knows of it.
	other := pay.Details.To
	if other == t.ID {
		other = pay.Tenant
	}
	names, err := o.Named(ctx, []string{other})
	r.payee, r.provider = names[other], ""
	return err
}

// statementColumns are the columns of a statement; people read the time of Accra.
func statementColumns(format string) []frame.Column[statementRow] {
	return []frame.Column[statementRow]{
		{Name: "at", Value: func(r statementRow) any {
			if format == "json" || r.at.IsZero() {
				return r.at
			}
			return r.at.In(accra).Format("2006-01-02 15:04:05 MST")
		}},
		{Name: "what", Value: func(r statementRow) any { return r.what }},
		{Name: "reference", Value: func(r statementRow) any { return r.reference }},
		{Name: "payee", Value: func(r statementRow) any { return r.payee }},
		{Name: "provider_reference", Value: func(r statementRow) any { return r.provider }},
		{Name: "subject", Value: func(r statementRow) any { return r.subject }},
		{Name: "change", Value: func(r statementRow) any { return inAsset(r.asset, r.change) }},
		{Name: "balance", Value: func(r statementRow) any {
			if r.total {
				return nil
			}
			return inAsset(r.asset, r.balance)
		}},
	}
}

// days reads a stretch of days; an absent end is open.
func days(from, to string) (begin, end time.Time, err error) {
	var bad problem.Fields
	if from != "" {
		if begin, err = time.Parse(time.DateOnly, from); err != nil {
			bad.Add("from", "must be a date, YYYY-MM-DD")
		}
	}
	end = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if to != "" {
		if end, err = time.Parse(time.DateOnly, to); err != nil {
			bad.Add("to", "must be a date, YYYY-MM-DD")
		}
		end = end.AddDate(0, 0, 1)
	}
	if to != "" && end.Before(begin) {
		bad.Add("to", "must not be before from")
	}
	return begin, end, bad.Err()
}

// inAsset shows a number of the ledger in its unit: cedis, or credits as they are.
func inAsset(a ledger.Asset, n int64) any {
	if a == ledger.SMS || a == ledger.TestSMS {
		return n
	}
	return money.Pesewas(n)
}
