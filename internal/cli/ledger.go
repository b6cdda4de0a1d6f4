package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
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
	payments book.Report
	messages messaging.Report
	batches  batch.Report
}

func (c checked) problems() []string {
	return slices.Concat(c.ledger.Problems, c.payments.Problems, c.messages.Problems, c.batches.Problems)
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
	if found.messages, err = m.Check(ctx); err != nil {
		return found, err
	}
	found.batches, err = batch.Check(ctx, o.db)
	return found, err
}

// Run checks. Every fault is printed and makes the command fail.
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
			{"batches", func(c checked) any { return c.batches.Batches }},
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
