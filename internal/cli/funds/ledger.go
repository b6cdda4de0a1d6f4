package funds

import (
	"fmt"

	bookchecks "github.com/makola/makola/internal/books"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

// Ledger holds the commands of makola ledger.
type Ledger struct {
	Check     ledgerCheck     `cmd:"" help:"Check the ledger, payments, messages and batches for contradictions. Fails if there is one."`
	Funds     ledgerFunds     `cmd:"" help:"Compare the money owed to customers with the money held, at the end of a day."`
	Journal   ledgerJournal   `cmd:"" help:"Write the journal of a period as a file: date, account code, debit, credit, reference."`
	Totals    ledgerTotals    `cmd:"" help:"Print debits, credits and balances of a period by account. Fails if an account does not tie."`
	Balance   ledgerBalance   `cmd:"" help:"Print the trial balance."`
	Statement ledgerStatement `cmd:"" help:"Print an account's statement: opening balance, movements, closing balance."`
}

type ledgerCheck struct {
	frame.Common
	Background bool `help:"Let a server check every row in the background. The command does not print the result."`
}

// Run checks the books. It prints every fault. The command fails if there is one.
func (c *ledgerCheck) Run(e *frame.Env) error {
	if c.Background {
		return c.With(e, func(o *frame.Opened) error { return bookchecks.New(o.DB, o.Clock).Request(e.Ctx) })
	}
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		found, err := o.Check(e.Ctx, p)
		if err != nil {
			return err
		}
		if err := frame.PrintOne(e.Stdout, c.Output, []frame.Column[frame.Checked]{
			{Name: "at", Value: func(c frame.Checked) any { return c.Ledger.At }},
			{Name: "wallets", Value: func(c frame.Checked) any { return c.Ledger.Wallets }},
			{Name: "transfers", Value: func(c frame.Checked) any { return c.Ledger.Transfers }},
			{Name: "payments", Value: func(c frame.Checked) any { return int64(c.Payments.Payments) }},
			{Name: "campaigns", Value: func(c frame.Checked) any { return c.Messages.Campaigns }},
			{Name: "messages", Value: func(c frame.Checked) any { return c.Messages.Messages }},
			{Name: "batches", Value: func(c frame.Checked) any { return c.Batches.Batches }},
			{Name: "ok", Value: func(c frame.Checked) any { return len(c.Problems()) == 0 }},
			{Name: "problems", Value: func(c frame.Checked) any { return c.Problems() }},
		}, found); err != nil {
			return err
		}
		if n := len(found.Problems()); n > 0 {
			return problem.New(problem.Internal, "ledger_wrong", fmt.Sprintf("The check found %d problems. See docs/runbooks/ledger-fault.md", n))
		}
		return nil
	})
}

type ledgerBalance struct{ frame.Common }

// Run prints the trial balance.
func (c *ledgerBalance) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		all, err := o.Ledger.TrialBalance(e.Ctx)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[ledger.Account]{
			{Name: "asset", Value: func(a ledger.Account) any { return string(a.Asset) }},
			{Name: "account", Value: func(a ledger.Account) any { return string(a.ID) }},
			{Name: "wallets", Value: func(a ledger.Account) any { return a.Wallets }},
			{Name: "balance", Value: func(a ledger.Account) any { return inAsset(a.Asset, a.Balance) }},
		}, all)
	})
}
