package funds

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
)

type ledgerStatement struct {
	frame.Common
	Tenant  string `arg:"" name:"account" help:"Id or unique name of the account."`
	From    string `name:"from" placeholder:"DATE" help:"First day, YYYY-MM-DD in UTC, which is Accra's time. Default: the first day of the account."`
	To      string `name:"to" placeholder:"DATE" help:"Last day, inclusive. Default: today."`
	Credits bool   `name:"credits" help:"Print the statement of the SMS credits instead of the wallet."`
}

// A statementRow is one printed line: a movement of the wallet with its charges, or the opening, the closing or a
// total.
type statementRow struct {
	at        time.Time
	what      string
	reference string // reference of the customer or an operator
	payee     string
	provider  string // our reference at the provider
	subject   string
	change    int64
	balance   int64
	asset     ledger.Asset
	total     bool // a sum of changes, without a balance
}

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
		rows, err := statementOf(e.Ctx, o, p, t, c.Credits, from, to)
		if err != nil {
			return err
		}
		columns := frame.Narrow(c.Output, statementColumns, "at", "what", "reference", "payee", "change", "balance", "provider_reference")
		return frame.PrintAll(e.Stdout, c.Output, columns, rows)
	})
}

// statementOf reads the rows of a period with its opening balance, closing balance and totals.
func statementOf(ctx context.Context, o *frame.Opened, p *payments.Payments, t tenant.Tenant, credits bool, from, to time.Time) ([]statementRow, error) {
	read := statement.New(o.DB, o.Ledger, p.Reader, o.Tenants)
	s, err := read.Open(ctx, t, credits, from, to)
	if err != nil {
		return nil, err
	}
	asset := s.Asset
	opening := statementRow{what: "opening", asset: asset, at: from, balance: s.Opening}
	closing := statementRow{what: "closing", asset: asset, at: to, balance: s.Closing}
	if now := o.Clock.Now(); now.Before(to) {
		closing.at = now
	}
	if from.Before(t.CreatedAt) {
		opening.at = t.CreatedAt
	}
	in, out := statementRow{what: "total in", asset: asset, total: true}, statementRow{what: "total out", asset: asset, total: true}
	rows := []statementRow{opening}
	if err := read.Each(ctx, s, func(m statement.Entry) error {
		if last := &rows[len(rows)-1]; last.subject == m.Subject && last.at.Equal(m.At) {
			last.change, last.balance = last.change+m.Change, m.Balance
			return nil
		}
		rows = append(rows, statementRow{at: m.At, what: m.Event, reference: m.Reference, payee: strings.TrimSpace(m.Account + " " + m.Name), provider: m.Provider,
			subject: m.Subject, change: m.Change, balance: m.Balance, asset: asset})
		return nil
	}); err != nil {
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

// statementColumns are the columns of a statement. Accra's time is UTC.
var statementColumns = []frame.Column[statementRow]{
	{Name: "at", Value: func(r statementRow) any { return r.at }},
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

// days parses a period of days. An absent end is open.
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

// inAsset formats an amount of the ledger in its unit: cedis, or a number of credits.
func inAsset(a ledger.Asset, n int64) any {
	if a.Credits() {
		return n
	}
	return money.Pesewas(n)
}
