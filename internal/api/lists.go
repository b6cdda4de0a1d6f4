package api

import (
	"net/http"

	"github.com/makola/makola/internal/money"
)

// balance answers what the owning account has, also to a member's key.
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
	w.object("data")
	w.cedis("wallet_balance", money.Pesewas(wallet))
	w.integer("sms_balance", credits)
	w.text("currency", currency)
	w.end()
	w.end()
	return nil
}

// banks lists the banks that this account can pay.
func banks(c *call) error {
	all, err := c.api.Routes.Banks(c.ctx, c.tenant.ID, string(c.tenant.Mode))
	if err != nil {
		return err
	}
	w := c.success("Banks fetched successfully")
	w.list("data")
	for _, b := range all {
		w.object("")
		w.text("id", b.ID)
		w.text("name", b.Name)
		w.text("code", b.Code)
		w.end()
	}
	w.end()
	w.end()
	return nil
}

// networks lists where airtime can be sent to. Its success is a 201.
func networks(c *call) error {
	all, err := c.api.Routes.Networks(c.ctx)
	if err != nil {
		return err
	}
	c.status = http.StatusCreated
	w := c.success("Networks fetched successfully")
	w.list("data")
	for _, n := range all {
		w.object("")
		w.text("id", n.ID)
		w.text("name", n.Name)
		w.text("status", n.Status)
		w.end()
	}
	w.end()
	w.end()
	return nil
}

// services lists what sells data packages.
func services(c *call) error {
	all, err := c.api.Routes.Services(c.ctx)
	if err != nil {
		return err
	}
	w := c.success("Services fetched successfully")
	w.list("data")
	for _, s := range all {
		w.object("")
		w.text("id", s.ID)
		w.text("name", s.Name)
		w.text("network", string(s.Network))
		w.end()
	}
	w.end()
	w.end()
	return nil
}

// walletName answers whose wallet a number is.
func walletName(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	number, network := f.phone("phone_number"), f.network("network", false)
	if err := f.err(); err != nil {
		return err
	}
	name, err := c.api.Enquiries.WalletName(c.ctx, c.caller.Tenant, network, number)
	if err != nil {
		return err
	}
	w := c.success("Name fetched successfully")
	w.object("data")
	w.text("name", name)
	w.text("phone_number", number.Local())
	w.end()
	w.end()
	return nil
}

// bankName answers whose bank account a number is.
func bankName(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	account, bank := f.account("account_number"), f.ours("bank_id")
	unlisted(c, f, "bank_id", bank, "banks", c.api.Routes.Bank)
	if err := f.err(); err != nil {
		return err
	}
	name, err := c.api.Enquiries.BankName(c.ctx, c.caller.Tenant, bank, account)
	if err != nil {
		return err
	}
	w := c.success("Name fetched successfully")
	w.object("data")
	w.text("account_name", name)
	w.text("account_number", account)
	w.text("bank_id", bank)
	w.end()
	w.end()
	return nil
}
