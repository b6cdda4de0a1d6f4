// Package funds holds the commands about money: wallets, floats, credits, prices, payments and providers. Package
// frame shows and confirms movements of money; package changes applies every change.
//
// Files, each above those that it uses:
//
//	aliases.go                     the commands that request a change
//	providers.go, catalogue.go     providers, pauses and routes; networks, services, banks and prefixes
//	provider_checks.go             the test of a provider's set-up
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
	"fmt"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// Wallet holds the commands of makola wallet.
type Wallet struct {
	Show     walletShow     `cmd:"" help:"Show the balances of an account."`
	Fund     walletFund     `cmd:"" help:"Add money to a wallet after the account paid it outside of Makola."`
	Adjust   walletAdjust   `cmd:"" help:"Correct a wallet: add an amount or, with --take, take it out."`
	Transfer walletTransfer `cmd:"" help:"Move money from one account's wallet to another's."`
	Recover  walletRecover  `cmd:"" help:"Collect an account's debt after a reversal from its wallet, up to the balance."`
}

// walletView is the printed balances of an account.
type walletView struct {
	tenant  tenant.Tenant
	wallet  money.Pesewas
	owes    money.Pesewas // debt of reversals that the wallet did not cover
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
	Bank   string       `name:"bank" placeholder:"NAME" help:"Bank account of the company that received the money. Required if the company has one in the books."`
	Slip   string       `name:"slip" placeholder:"NUMBER" help:"Number of the bank's deposit slip. Each slip can be used for one deposit."`
	Line   string       `name:"line" placeholder:"ID" help:"Line of the bank's imported statement, instead of a slip. A line pays for one deposit."`
}

type walletAdjust struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Tenant string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Amount frame.Amount `arg:"" help:"Amount in GHS."`
	Take   bool         `name:"take" help:"Take the amount out of the wallet."`
}

// called returns the name of an account with its mode and id.
func called(t tenant.Tenant) string { return fmt.Sprintf("%s (%s, %s)", t.Name, t.Mode, t.ID) }

type walletTransfer struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	From   string       `arg:"" help:"Id or unique name of the account that pays."`
	To     string       `arg:"" help:"Id or unique name of the account that receives."`
	Amount frame.Amount `arg:"" help:"Amount in GHS."`
}

type walletRecover struct {
	frame.Common
	frame.Writing
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
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
