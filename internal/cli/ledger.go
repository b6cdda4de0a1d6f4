package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

type ledgerCommands struct {
	Check     ledgerCheck     `cmd:"" help:"Hold the ledger against itself, every payment and every message; fails when something is wrong."`
	Balance   ledgerBalance   `cmd:"" help:"Print the trial balance."`
	Statement ledgerStatement `cmd:"" help:"Print a customer's statement: opening, rows, closing."`
}

type ledgerCheck struct{ common }

// checked is the outcome of all checks.
type checked struct {
	ledger   ledger.Report
	payments payments.Report
	messages messaging.Report
}

func (c checked) problems() []string {
	return slices.Concat(c.ledger.Problems, c.payments.Problems, c.messages.Problems)
}

// check makes all checks.
func (o *opened) check(ctx context.Context, p *payments.Payments) (found checked, err error) {
	if found.ledger, err = o.ledger.Check(ctx); err != nil {
		return found, err
	}
	if found.payments, err = p.Check(ctx); err != nil {
		return found, err
	}
	m := o.messaging()
	defer m.Close()
	found.messages, err = m.Check(ctx)
	return found, err
}

// Run checks. What is wrong is printed and makes the command fail.
func (c *ledgerCheck) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		found, err := o.check(e.ctx, p)
		if err != nil {
			return err
		}
		if err := printOne(e.stdout, c.Output, []column[checked]{
			{"at", func(c checked) any { return c.ledger.At }},
			{"wallets", func(c checked) any { return c.ledger.Wallets }},
			{"transfers", func(c checked) any { return c.ledger.Transfers }},
			{"payments", func(c checked) any { return int64(c.payments.Payments) }},
			{"campaigns", func(c checked) any { return c.messages.Campaigns }},
			{"messages", func(c checked) any { return c.messages.Messages }},
			{"ok", func(c checked) any { return len(c.problems()) == 0 }},
			{"problems", func(c checked) any { return c.problems() }},
		}, found); err != nil {
			return err
		}
		if n := len(found.problems()); n > 0 {
			return problem.New(problem.Internal, "ledger_wrong", fmt.Sprintf("The books do not add up: %d problems", n))
		}
		return nil
	})
}

type ledgerBalance struct{ common }

// Run prints the trial balance.
func (c *ledgerBalance) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		all, err := o.ledger.TrialBalance(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, []column[ledger.Account]{
			{"asset", func(a ledger.Account) any { return string(a.Asset) }},
			{"account", func(a ledger.Account) any { return string(a.ID) }},
			{"wallets", func(a ledger.Account) any { return a.Wallets }},
			{"balance", func(a ledger.Account) any { return inAsset(a.Asset, a.Balance) }},
		}, all)
	})
}

// inAsset shows a number of the ledger in its unit: cedis, or credits as they are.
func inAsset(a ledger.Asset, n int64) any {
	if a == ledger.SMS || a == ledger.TestSMS {
		return n
	}
	return money.Pesewas(n)
}

type ledgerStatement struct {
	common
	Tenant  string `arg:"" help:"Id or unique name of the customer."`
	From    string `name:"from" placeholder:"DATE" help:"First day, YYYY-MM-DD in UTC; from the beginning when absent."`
	To      string `name:"to" placeholder:"DATE" help:"Last day, inclusive; until now when absent."`
	Credits bool   `name:"credits" help:"The statement of the SMS credits instead of the wallet."`
}

// statementRow is one line as printed; opening and closing are lines too, so that a file says all.
type statementRow struct {
	ledger.Line
	what  string
	asset ledger.Asset
}

// statementPage is how many lines are read at once.
const statementPage = 1000

// Run prints a statement.
func (c *ledgerStatement) Run(e *env) error {
	from, to, err := days(c.From, c.To)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		key := t.Wallet()
		if c.Credits {
			key = t.SMSCredits()
		}
		var rows []statementRow
		for page := 1; ; page++ {
			s, err := o.ledger.Statement(e.ctx, key, from, to, page, statementPage)
			if err != nil {
				return err
			}
			if page == 1 {
				rows = append(rows, statementRow{what: "opening", asset: key.Asset, Line: ledger.Line{Balance: s.Opening}})
			}
			for _, l := range s.Lines {
				rows = append(rows, statementRow{Line: l, what: l.Kind, asset: key.Asset})
			}
			if int64(page*statementPage) >= s.Total {
				rows = append(rows, statementRow{what: "closing", asset: key.Asset, Line: ledger.Line{Balance: s.Closing}})
				break
			}
		}
		return printAll(e.stdout, c.Output, statementColumns, rows)
	})
}

var statementColumns = []column[statementRow]{
	{"no", func(r statementRow) any { return r.Sequence }},
	{"at", func(r statementRow) any { return r.At }},
	{"what", func(r statementRow) any { return r.what }},
	{"subject", func(r statementRow) any { return r.Subject }},
	{"leg", func(r statementRow) any { return r.Leg }},
	{"other", func(r statementRow) any {
		if r.Change < 0 {
			return string(r.To)
		}
		return string(r.From)
	}},
	{"change", func(r statementRow) any { return inAsset(r.asset, r.Change) }},
	{"balance", func(r statementRow) any { return inAsset(r.asset, r.Balance) }},
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
	if strings.TrimSpace(to) != "" && end.Before(begin) {
		bad.Add("to", "must not be before from")
	}
	return begin, end, bad.Err()
}
