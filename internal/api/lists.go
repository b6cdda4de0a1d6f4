package api

import (
	"net/http"

	"github.com/makola/makola/internal/money"
)

// balance returns the balances of the account. A key that belongs to a member of the account gets them, too.
func balance(c *call) error {
	wallet, err := c.api.Ledger.Balance(c.ctx, c.tenant.Wallet())
	if err != nil {
		return err
	}
	credits, err := c.api.Ledger.Balance(c.ctx, c.tenant.SMSCredits())
	if err != nil {
		return err
	}
	w := c.success("Balance fetched successfully")
	w.Object("data")
	w.Cedis("wallet_balance", money.Pesewas(wallet))
	w.Integer("sms_balance", credits)
	w.Text("currency", currency)
	w.End()
	w.End()
	return nil
}

// banks lists the banks that this account can pay.
func banks(c *call) error {
	all, err := c.api.Routes.Banks(c.ctx, c.tenant.ID, string(c.tenant.Mode))
	if err != nil {
		return err
	}
	w := c.success("Banks fetched successfully")
	w.List("data")
	for _, b := range all {
		w.Object("")
		w.Text("id", b.ID)
		w.Text("name", b.Name)
		w.Text("code", b.Code)
		w.End()
	}
	w.End()
	w.End()
	return nil
}

// networks lists the networks to which airtime can be sent. A success has the status 201.
func networks(c *call) error {
	all, err := c.api.Routes.Networks(c.ctx)
	if err != nil {
		return err
	}
	c.status = http.StatusCreated
	w := c.success("Networks fetched successfully")
	w.List("data")
	for _, n := range all {
		w.Object("")
		w.Text("id", n.ID)
		w.Text("name", n.Name)
		w.Text("status", n.Status)
		w.End()
	}
	w.End()
	w.End()
	return nil
}

// services lists the services that sell data packages.
func services(c *call) error {
	all, err := c.api.Routes.Services(c.ctx)
	if err != nil {
		return err
	}
	w := c.success("Services fetched successfully")
	w.List("data")
	for _, s := range all {
		w.Object("")
		w.Text("id", s.ID)
		w.Text("name", s.Name)
		w.Text("network", string(s.Network))
		w.End()
	}
	w.End()
	w.End()
	return nil
}

// walletName returns the name of a wallet's holder.
func walletName(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	number, network := f.phone("phone_number"), f.network("network", false)
	if err := f.err(); err != nil {
		return err
	}
	name, err := c.api.Lookups.WalletName(c.ctx, c.caller.Tenant, network, number)
	if err != nil {
		return err
	}
	w := c.success("Name fetched successfully")
	w.Object("data")
	w.Text("name", name)
	w.Text("phone_number", number.Local())
	w.End()
	w.End()
	return nil
}

// bankName returns the name of a bank account's holder.
func bankName(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	account, bank := f.account("account_number"), f.ours("bank_id")
	unlisted(c.ctx, f, "bank_id", bank, "banks", c.api.Routes.Bank)
	if err := f.err(); err != nil {
		return err
	}
	name, err := c.api.Lookups.BankName(c.ctx, c.caller.Tenant, bank, account)
	if err != nil {
		return err
	}
	w := c.success("Name fetched successfully")
	w.Object("data")
	w.Text("account_name", name)
	w.Text("account_number", account)
	w.Text("bank_id", bank)
	w.End()
	w.End()
	return nil
}
