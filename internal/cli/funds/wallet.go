// Package funds holds the commands about money: wallets, floats, credits, prices, payments and providers. Package
// frame shows and confirms movements of money; package changes applies every change.
//
// Files, each above those that it uses:
//
//	providers.go, catalogue.go     providers, pauses and routes; networks, services, banks and prefixes
//	provider_callback.go           the address of a provider's callbacks
//	fees.go, credits.go            fee plans; SMS credits
//	ledger.go                      the books
//	day.go                         days of the books, customer funds and the journal
//	bank.go                        bank accounts of the company, and money on its way
//	wallet.go                      wallets and floats
//	statements.go                  statements of providers and banks
//	payouts.go                     payments found, listed and resolved
//	batch.go                       batches of payouts by a file
//	statement.go                   statements, and the payments in them
package funds

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// Wallet holds the commands of makola wallet.
type Wallet struct {
	Show     walletShow     `cmd:"" help:"Show the balances of an account."`
	Fund     walletFund     `cmd:"" help:"Add money to a wallet that the account paid outside of Makola."`
	Adjust   walletAdjust   `cmd:"" help:"Correct a wallet: add an amount or, with --take, take it out."`
	Transfer walletTransfer `cmd:"" help:"Move money from one account's wallet to another's."`
	Recover  walletRecover  `cmd:"" help:"Collect from a wallet what its account owes since a reversal, as far as the balance covers it."`
}

// walletView is the printed balances of an account.
type walletView struct {
	tenant  tenant.Tenant
	wallet  money.Pesewas
	owes    money.Pesewas // since reversals that the wallet did not cover
	credits int64
}

var walletColumns = []frame.Column[walletView]{
	{Name: "tenant", Value: func(w walletView) any { return w.tenant.ID }},
	{Name: "name", Value: func(w walletView) any { return w.tenant.Name }},
	{Name: "mode", Value: func(w walletView) any { return string(w.tenant.Mode) }},
	{Name: "wallet", Value: func(w walletView) any { return w.wallet }},
	{Name: "owes", Value: func(w walletView) any { return w.owes }},
	{Name: "sms_credits", Value: func(w walletView) any { return w.credits }},
}

// printWallet reads and prints a customer's balances.
func printWallet(e *frame.Env, o *frame.Opened, format, id string) error {
	t, err := o.Tenant(e.Ctx, id)
	if err != nil {
		return err
	}
	wallet, err := o.Ledger.Balance(e.Ctx, t.Wallet())
	if err != nil {
		return err
	}
	credits, err := o.Ledger.Balance(e.Ctx, t.SMSCredits())
	if err != nil {
		return err
	}
	debt, err := o.Ledger.Balance(e.Ctx, ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)})
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, format, walletColumns, walletView{tenant: t, wallet: money.Pesewas(wallet), owes: money.Pesewas(-debt), credits: credits})
}

type walletShow struct {
	frame.Common
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
}

// Run shows balances.
func (c *walletShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printWallet(e, o, c.Output, c.Tenant) })
}

type walletFund struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Tenant string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Amount frame.Amount `arg:"" help:"Amount in GHS, such as 250.00."`
	Bank   string       `name:"bank" placeholder:"NAME" help:"Bank account of the company that received the money. Required once there is one."`
	Slip   string       `name:"slip" placeholder:"NUMBER" help:"Number of the bank's slip. A bank account takes it once."`
	Line   string       `name:"line" placeholder:"ID" help:"Line of the bank's imported statement, in place of a slip. It is used once."`
}

// Run funds a wallet.
func (c *walletFund) Run(e *frame.Env) error {
	return moveMoney(&c.Common, e, c.OrderFlags, c.Tenant, c.Amount.Or(0), changes.KindFund,
		func(a *changes.Changes, ctx context.Context, by changes.By, id, reference, tenant string, amount money.Pesewas, reason string) (changes.Request, error) {
			return a.FundFrom(ctx, by, id, changes.Deposit{Tenant: tenant, Amount: amount, Reference: reference, Bank: c.Bank, Slip: c.Slip, Line: c.Line}, reason)
		})
}

type walletAdjust struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Tenant string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Amount frame.Amount `arg:"" help:"Amount in GHS."`
	Take   bool         `name:"take" help:"Take the amount out of the wallet."`
}

// Run corrects a wallet.
func (c *walletAdjust) Run(e *frame.Env) error {
	by := c.Amount.Or(0)
	if c.Take {
		by = -by
	}
	return moveMoney(&c.Common, e, c.OrderFlags, c.Tenant, by, changes.KindAdjust, (*changes.Changes).AdjustUnder)
}

// moveMoney adds an amount to a wallet, or takes it out if it is negative, and prints the balances.
func moveMoney(c *frame.Common, e *frame.Env, flags frame.OrderFlags, tenantID string, by money.Pesewas, kind string, request mover) error {
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		t, err := o.Tenant(e.Ctx, tenantID)
		if err != nil {
			return err
		}
		sentence := fmt.Sprintf("Add %s to the wallet of %s", frame.Worth(t.Money(), int64(by)), called(t))
		if by < 0 {
			sentence = fmt.Sprintf("Take %s out of the wallet of %s", frame.Worth(t.Money(), int64(-by)), called(t))
		}
		w, err := o.Order(e, frame.Order{OrderFlags: flags, Kind: kind, Tenant: t.ID, Sentence: sentence, Sides: []frame.Side{walletOf(t, by)}})
		if err != nil {
			return err
		}
		a := o.Changes(secret)
		show := func() error { return printWallet(e, o, c.Output, t.ID) }
		return w.Do(e, c.Output, a, show, func(id, reference string) (changes.Request, error) {
			return request(a, e.Ctx, o.By, id, reference, t.ID, by, flags.Reason)
		})
	})
}

// mover requests such a movement.
type mover func(a *changes.Changes, ctx context.Context, by changes.By, id, reference, tenant string, amount money.Pesewas, reason string) (changes.Request, error)

// called returns the name of an account with its mode and id.
func called(t tenant.Tenant) string { return fmt.Sprintf("%s (%s, %s)", t.Name, t.Mode, t.ID) }

// walletOf is the side of an order that changes a customer's wallet.
func walletOf(t tenant.Tenant, by money.Pesewas) frame.Side {
	return frame.Side{Name: "wallet of " + t.Name, Key: t.Wallet(), Amount: int64(by)}
}

type walletTransfer struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	From   string       `arg:"" help:"Id or unique name of the account that pays."`
	To     string       `arg:"" help:"Id or unique name of the account that receives."`
	Amount frame.Amount `arg:"" help:"Amount in GHS."`
}

// Run moves money between two wallets.
func (c *walletTransfer) Run(e *frame.Env) error {
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		from, err := o.Tenant(e.Ctx, c.From)
		if err != nil {
			return err
		}
		to, err := o.Tenant(e.Ctx, c.To)
		if err != nil {
			return err
		}
		by := c.Amount.Or(0)
		w, err := o.Order(e, frame.Order{OrderFlags: c.OrderFlags, Kind: changes.KindTransfer, Tenant: from.ID,
			Sentence: fmt.Sprintf("Move %s from the wallet of %s to the wallet of %s", frame.Worth(from.Money(), int64(by)), called(from), called(to)),
			Sides:    []frame.Side{walletOf(to, by), walletOf(from, -by)}})
		if err != nil {
			return err
		}
		a := o.Changes(config.Secret{})
		a.Payments = p
		var r changes.Request
		show := func() error {
			if o.By.Machine != "" {
				return showPayment(e.Ctx, o, e, c.Output, p, r.Made)
			}
			return printWallet(e, o, c.Output, from.ID)
		}
		return w.Do(e, c.Output, a, show, func(id, reference string) (changes.Request, error) {
			r, err = a.Transfer(e.Ctx, o.By, id, reference, from.ID, to.ID, by, c.Reason)
			return r, err
		})
	})
}

type walletRecover struct {
	frame.Common
	frame.Writing
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run recovers the debt.
func (c *walletRecover) Run(e *frame.Env) error {
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		r, err := o.Changes(secret).Recover(e.Ctx, o.By, frame.NewID(), t.ID, c.Reason)
		return o.Asked(e, c.Output, r, err, func() error { return printWallet(e, o, c.Output, t.ID) })
	})
}

// Float holds the commands of makola float.
type Float struct {
	Add  floatAdd  `cmd:"" help:"Record money that was paid in at a provider or, with --take, taken out."`
	Show floatShow `cmd:"" help:"Show the balance of each float in the ledger."`
}

type floatAdd struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Provider string       `arg:"" help:"Name of the provider, such as mtn or hubtel."`
	Amount   frame.Amount `arg:"" help:"Amount in GHS."`
	Mode     string       `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
	Account  string       `name:"account" enum:"collection,disbursement,services," default:"" help:"Account at the provider. Without it the money is unassigned."`
	Take     bool         `name:"take" help:"Record money that was taken out."`
}

// Run books added float.
func (c *floatAdd) Run(e *frame.Env) error {
	by, what := c.Amount.Or(0), "paid in"
	if c.Take {
		by, what = -by, "taken out"
	}
	at := treasury.Float{Provider: c.Provider, Account: c.Account, Mode: tenant.Mode(c.Mode)}
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		w, err := o.Order(e, frame.Order{OrderFlags: c.OrderFlags, Kind: changes.KindAddFloat,
			Sentence: fmt.Sprintf("Record %s %s at %s", frame.Worth(at.Key().Asset, int64(c.Amount.Or(0))), what, at),
			Sides:    []frame.Side{{Name: "float at " + at.String(), Key: at.Key(), Amount: int64(by)}}})
		if err != nil {
			return err
		}
		a := o.Changes(secret)
		return w.Do(e, c.Output, a, func() error { return printFloats(e, o, c.Output) }, func(id, reference string) (changes.Request, error) {
			return a.AddFloat(e.Ctx, o.By, id, reference, at, by, c.Reason)
		})
	})
}

type floatShow struct{ frame.Common }

// Run shows floats: money at a provider is a negative balance of its account.
func (c *floatShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printFloats(e, o, c.Output) })
}

func printFloats(e *frame.Env, o *frame.Opened, format string) error {
	all, err := o.Ledger.TrialBalance(e.Ctx)
	if err != nil {
		return err
	}
	var floats []ledger.Account
	for _, a := range all {
		if a.ID.IsFloat() {
			floats = append(floats, a)
		}
	}
	return frame.PrintAll(e.Stdout, format, []frame.Column[ledger.Account]{
		{Name: "asset", Value: func(a ledger.Account) any { return string(a.Asset) }},
		{Name: "account", Value: func(a ledger.Account) any { return string(a.ID) }},
		{Name: "held", Value: func(a ledger.Account) any { return money.Pesewas(-a.Balance) }},
	}, floats)
}
