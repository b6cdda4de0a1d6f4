package funds

import (
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/treasury"
)

// Bank holds the commands of makola bank.
type Bank struct {
	List      bankList      `cmd:"" help:"List the bank accounts of the company with their balances."`
	Add       bankAdd       `cmd:"" help:"Add a bank account of the company."`
	Open      bankOpen      `cmd:"" help:"Record the opening balances of bank accounts, each once."`
	Close     bankClose     `cmd:"" help:"Close a bank account that has no money in the books."`
	TopUp     bankTopUp     `cmd:"" name:"top-up" help:"Record a transfer from a bank account to a float. The money is in transit until it arrives."`
	Settle    bankSettle    `cmd:"" help:"Record a transfer from a float to a bank account. The money is in transit until it arrives."`
	Arrived   bankArrived   `cmd:"" help:"End a transfer in transit: its money arrived, or was returned."`
	Sweep     bankSweep     `cmd:"" help:"Record a withdrawal of earned fees from a bank account, for the company's own use."`
	Transfers bankTransfers `cmd:"" help:"List transfers between bank accounts and floats, newest first."`
}

// bankRow is a bank account with its balance.
type bankRow struct {
	treasury.Bank
	held money.Pesewas
}

type bankList struct{ frame.Common }

// Run lists the bank accounts.
func (c *bankList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printBanks(e, o, c.Output) })
}

func printBanks(e *frame.Env, o *frame.Opened, format string) error {
	list, err := o.Treasury().Banks(e.Ctx)
	if err != nil {
		return err
	}
	rows := make([]bankRow, len(list))
	for i, b := range list {
		balance, err := o.Ledger.Balance(e.Ctx, b.Key())
		if err != nil {
			return err
		}
		rows[i] = bankRow{b, money.Pesewas(-balance)}
	}
	return frame.PrintAll(e.Stdout, format, []frame.Column[bankRow]{
		{Name: "name", Value: func(b bankRow) any { return b.Name }},
		{Name: "bank", Value: func(b bankRow) any { return b.Bank.Bank }},
		{Name: "number", Value: func(b bankRow) any { return b.Ending() }},
		{Name: "mode", Value: func(b bankRow) any { return string(b.Mode) }},
		{Name: "currency", Value: func(bankRow) any { return treasury.Currency }},
		{Name: "closed", Value: func(b bankRow) any { return b.Closed }},
		{Name: "balance", Value: func(b bankRow) any { return b.held }},
	}, rows)
}

type bankAdd struct {
	frame.Common
	frame.Writing
	Name   string `arg:"" help:"Name in the books, such as gcb-main."`
	Bank   string `name:"bank" required:"" placeholder:"TEXT" help:"Bank, such as GCB Bank."`
	Number string `name:"number" required:"" placeholder:"TEXT" help:"Account number. Pages show its last four characters."`
	Mode   string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type bankOpen struct {
	frame.Common
	frame.Writing
	Balances []string `arg:"" help:"Balances, such as gcb-main=12500.00."`
	Mode     string   `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
	Reason   string   `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type bankClose struct {
	frame.Common
	frame.Writing
	Name   string `arg:"" help:"Name of the bank account."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// sendFlags are the flags of transfers between a bank account and a float.
type sendFlags struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Bank     string       `arg:"" help:"Name of the bank account."`
	Provider string       `arg:"" help:"Name of the provider, such as mtn or hubtel."`
	Amount   frame.Amount `arg:"" help:"Amount in GHS."`
	Account  string       `name:"account" enum:"collection,disbursement,services," default:"" help:"Account at the provider. Without it the float is unassigned."`
}

type bankTopUp struct{ sendFlags }

type bankSettle struct{ sendFlags }

type bankArrived struct {
	frame.Common
	frame.Writing
	Transfer string       `arg:"" help:"Id of the transfer."`
	Returned bool         `name:"returned" help:"The money was returned to the account that sent it."`
	Fee      frame.Amount `name:"fee" placeholder:"GHS" help:"Fee that was charged on the way."`
	Reason   string       `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type bankSweep struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Bank   string       `arg:"" help:"Name of the bank account."`
	Amount frame.Amount `arg:"" help:"Amount in GHS."`
}

type bankTransfers struct {
	frame.Common
	Open bool `name:"open" help:"Only money in transit."`
}

// Run lists transfers.
func (c *bankTransfers) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printTransfers(e, o, c.Output, c.Open) })
}

// transfersListed is the maximum number of listed transfers.
const transfersListed = 500

func printTransfers(e *frame.Env, o *frame.Opened, format string, open bool) error {
	list, err := o.Treasury().Transits(e.Ctx, "", transfersListed)
	if open {
		list, err = o.Treasury().OnTheWay(e.Ctx)
	}
	if err != nil {
		return err
	}
	return frame.PrintAll(e.Stdout, format, []frame.Column[treasury.Transit]{
		{Name: "id", Value: func(m treasury.Transit) any { return m.ID }},
		{Name: "asset", Value: func(m treasury.Transit) any { return string(m.Asset) }},
		{Name: "from", Value: func(m treasury.Transit) any { return string(m.Source) }},
		{Name: "to", Value: func(m treasury.Transit) any { return string(m.Target) }},
		{Name: "amount", Value: func(m treasury.Transit) any { return m.Amount }},
		{Name: "fee", Value: func(m treasury.Transit) any { return m.Fee }},
		{Name: "state", Value: func(m treasury.Transit) any { return string(m.State) }},
		{Name: "reference", Value: func(m treasury.Transit) any { return m.Reference }},
		{Name: "sent_at", Value: func(m treasury.Transit) any { return m.SentAt }},
	}, list)
}
