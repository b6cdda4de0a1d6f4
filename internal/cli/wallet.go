package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

type walletCommands struct {
	Show     walletShow     `cmd:"" help:"Show a customer's balances."`
	Fund     walletFund     `cmd:"" help:"Put money into a wallet: the customer paid us outside of Makola."`
	Adjust   walletAdjust   `cmd:"" help:"Correct a wallet: put an amount in or, with --take, take it out."`
	Transfer walletTransfer `cmd:"" help:"Move money between two customers' wallets."`
	Recover  walletRecover  `cmd:"" help:"Take back what a customer owes since a reversal, as far as the wallet covers it."`
}

// payments is what commands use of the domain: operators' verbs. Nothing is sent to a provider from
// here, and no route is needed; webhooks go out from a server that runs.
func (o *opened) payments(secret config.Secret) *payments.Payments {
	quiet := slog.New(slog.DiscardHandler)
	queue := o.jobs()
	return payments.New(payments.Deps{DB: o.db, Ledger: o.ledger, Tenants: o.tenants, Jobs: queue, Clock: o.clock, Log: quiet, Secret: secret,
		Webhooks: webhook.New(o.db, queue, o.clock, quiet, webhook.Options{Secret: secret}), Routes: o.routes(), Treasury: o.treasury()})
}

// treasury moves operators' money.
func (o *opened) treasury() *treasury.Treasury {
	return treasury.New(o.db, o.ledger, o.tenants, o.clock, slog.New(slog.DiscardHandler), o.routes().CheckFloat)
}

// withPayments opens the database and the domain.
func (c *common) withPayments(e *env, work func(*opened, *payments.Payments) error) error {
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		p := o.payments(secret)
		defer p.Close()
		return work(o, p)
	})
}

// audited gives what writes an operator's act into the transaction that does it.
func (o *opened) audited(entry audit.Entry) func(*db.Tx) error {
	entry.ID, entry.Actor = newID(), o.actor
	return func(tx *db.Tx) error { return o.audit(tx, entry) }
}

// walletView is what a customer has.
type walletView struct {
	tenant  tenant.Tenant
	wallet  money.Pesewas
	owes    money.Pesewas // since reversals that the wallet did not cover
	credits int64
}

var walletColumns = []column[walletView]{
	{"tenant", func(w walletView) any { return w.tenant.ID }},
	{"name", func(w walletView) any { return w.tenant.Name }},
	{"mode", func(w walletView) any { return string(w.tenant.Mode) }},
	{"wallet", func(w walletView) any { return w.wallet }},
	{"owes", func(w walletView) any { return w.owes }},
	{"sms_credits", func(w walletView) any { return w.credits }},
}

// printWallet reads and prints a customer's balances.
func printWallet(e *env, o *opened, format, id string) error {
	t, err := o.tenant(e.ctx, id)
	if err != nil {
		return err
	}
	wallet, err := o.ledger.Balance(e.ctx, t.Wallet())
	if err != nil {
		return err
	}
	credits, err := o.ledger.Balance(e.ctx, t.SMSCredits())
	if err != nil {
		return err
	}
	debt, err := o.ledger.Balance(e.ctx, ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)})
	if err != nil {
		return err
	}
	return printOne(e.stdout, format, walletColumns, walletView{tenant: t, wallet: money.Pesewas(wallet), owes: money.Pesewas(-debt), credits: credits})
}

type walletShow struct {
	common
	Tenant string `arg:"" help:"Id or unique name of the customer."`
}

// Run shows balances.
func (c *walletShow) Run(e *env) error {
	return c.with(e, func(o *opened) error { return printWallet(e, o, c.Output, c.Tenant) })
}

type walletFund struct {
	common
	orderFlags
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Amount amount `arg:"" help:"Amount in cedis, such as 250.00."`
}

// Run funds a wallet.
func (c *walletFund) Run(e *env) error {
	return c.move(e, c.orderFlags, c.Tenant, c.Amount.or(0), changes.KindFund, (*changes.Changes).FundUnder)
}

type walletAdjust struct {
	common
	orderFlags
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Amount amount `arg:"" help:"Amount in cedis."`
	Take   bool   `name:"take" help:"Take the amount out of the wallet instead of putting it in."`
}

// Run corrects a wallet.
func (c *walletAdjust) Run(e *env) error {
	by := c.Amount.or(0)
	if c.Take {
		by = -by
	}
	return c.move(e, c.orderFlags, c.Tenant, by, changes.KindAdjust, (*changes.Changes).AdjustUnder)
}

// move orders money into a customer's wallet, or out of it below zero, and prints what the customer has then.
func (c *common) move(e *env, flags orderFlags, tenantID string, by money.Pesewas, kind string, request mover) error {
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		t, err := o.tenant(e.ctx, tenantID)
		if err != nil {
			return err
		}
		sentence := fmt.Sprintf("Put %s into the wallet of %s", worth(t.Money(), int64(by)), called(t))
		if by < 0 {
			sentence = fmt.Sprintf("Take %s out of the wallet of %s", worth(t.Money(), int64(-by)), called(t))
		}
		w, err := o.order(e, order{orderFlags: flags, kind: kind, tenant: t.ID, sentence: sentence, sides: []side{walletOf(t, by)}})
		if err != nil {
			return err
		}
		a := o.changes(secret)
		show := func(context.Context) error { return printWallet(e, o, c.Output, t.ID) }
		return w.do(e, c.Output, a, show, func(id, reference string) (changes.Request, error) {
			return request(a, e.ctx, o.by, id, reference, t.ID, by, flags.Reason)
		})
	})
}

// mover requests such a movement.
type mover func(a *changes.Changes, ctx context.Context, by changes.By, id, reference, tenant string, amount money.Pesewas, reason string) (changes.Request, error)

// called is a customer as a person knows it, with what tells it from others of its name.
func called(t tenant.Tenant) string { return fmt.Sprintf("%s (%s, %s)", t.Name, t.Mode, t.ID) }

// walletOf is the side of an order that changes a customer's wallet.
func walletOf(t tenant.Tenant, by money.Pesewas) side {
	return side{"wallet of " + t.Name, t.Wallet(), int64(by)}
}

type walletTransfer struct {
	common
	orderFlags
	writing
	From   string `arg:"" help:"Id or unique name of the customer who gives."`
	To     string `arg:"" help:"Id or unique name of the customer who gets."`
	Amount amount `arg:"" help:"Amount in cedis."`
}

// Run moves money between two wallets.
func (c *walletTransfer) Run(e *env) error {
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		from, err := o.tenant(e.ctx, c.From)
		if err != nil {
			return err
		}
		to, err := o.tenant(e.ctx, c.To)
		if err != nil {
			return err
		}
		by := c.Amount.or(0)
		w, err := o.order(e, order{orderFlags: c.orderFlags, kind: changes.KindTransfer, tenant: from.ID,
			sentence: fmt.Sprintf("Move %s from the wallet of %s to the wallet of %s", worth(from.Money(), int64(by)), called(from), called(to)),
			sides:    []side{walletOf(to, by), walletOf(from, -by)}})
		if err != nil {
			return err
		}
		a := o.changes(config.Secret{})
		a.Payments = p
		var r changes.Request
		show := func(ctx context.Context) error {
			if o.by.Machine != "" {
				return o.showPayment(ctx, e, c.Output, p, r.Made)
			}
			return printWallet(e, o, c.Output, from.ID)
		}
		return w.do(e, c.Output, a, show, func(id, reference string) (changes.Request, error) {
			r, err = a.Transfer(e.ctx, o.by, id, reference, from.ID, to.ID, by, c.Reason)
			return r, err
		})
	})
}

type walletRecover struct {
	common
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run takes back what is owed.
func (c *walletRecover) Run(e *env) error {
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		r, err := o.changes(secret).Recover(e.ctx, o.by, newID(), t.ID, c.Reason)
		return o.asked(e, c.Output, r, err, func(context.Context) error { return printWallet(e, o, c.Output, t.ID) })
	})
}

type floatCommands struct {
	Add  floatAdd  `cmd:"" help:"Book money that was paid in at a provider, or with --take taken out there."`
	Show floatShow `cmd:"" help:"Show what the ledger says that each account at a provider holds for us."`
}

type floatAdd struct {
	common
	orderFlags
	writing
	Provider string `arg:"" help:"Name of the provider: mtn or hubtel."`
	Amount   amount `arg:"" help:"Amount in cedis."`
	Mode     string `name:"mode" enum:"live,test" default:"live" help:"live or test money."`
	Account  string `name:"account" enum:"collection,disbursement,services," default:"" help:"The account at the provider. Without it the money is in none of them: unassigned."`
	Take     bool   `name:"take" help:"The money was taken out."`
}

// Run books added float.
func (c *floatAdd) Run(e *env) error {
	by, what := c.Amount.or(0), "put in"
	if c.Take {
		by, what = -by, "taken out"
	}
	at := treasury.Float{Provider: c.Provider, Account: c.Account, Mode: tenant.Mode(c.Mode)}
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		w, err := o.order(e, order{orderFlags: c.orderFlags, kind: changes.KindAddFloat,
			sentence: fmt.Sprintf("Book that %s were %s at %s", worth(at.Key().Asset, int64(c.Amount.or(0))), what, at),
			sides:    []side{{"float at " + at.String(), at.Key(), int64(by)}}})
		if err != nil {
			return err
		}
		a := o.changes(secret)
		return w.do(e, c.Output, a, func(context.Context) error { return printFloats(e, o, c.Output) }, func(id, reference string) (changes.Request, error) {
			return a.AddFloat(e.ctx, o.by, id, reference, at, by, c.Reason)
		})
	})
}

type floatShow struct{ common }

// Run shows floats: money at a provider is a negative balance of its account.
func (c *floatShow) Run(e *env) error {
	return c.with(e, func(o *opened) error { return printFloats(e, o, c.Output) })
}

func printFloats(e *env, o *opened, format string) error {
	all, err := o.ledger.TrialBalance(e.ctx)
	if err != nil {
		return err
	}
	var floats []ledger.Account
	for _, a := range all {
		if a.ID.IsFloat() {
			floats = append(floats, a)
		}
	}
	return printAll(e.stdout, format, []column[ledger.Account]{
		{"asset", func(a ledger.Account) any { return string(a.Asset) }},
		{"account", func(a ledger.Account) any { return string(a.ID) }},
		{"held", func(a ledger.Account) any { return money.Pesewas(-a.Balance) }},
	}, floats)
}

// unassigned finds live money at a provider that is in none of the accounts there.
func (d *doctor) unassigned(ctx context.Context, o *opened) {
	const check = "floats"
	var ids []ledger.AccountID
	for _, name := range app.Providers() {
		ids = append(ids, ledger.Float(name))
	}
	balances, err := o.ledger.Balances(ctx, ledger.GHS, ids)
	if err != nil {
		d.fail(check, err.Error(), "look at the database's log")
		return
	}
	found := len(d.found)
	for _, id := range ids {
		if held := -balances[id]; held != 0 {
			d.warn(check, fmt.Sprintf("%s of %s are in none of the accounts at the provider", ledger.GHS.Text(held), id),
				"compare with the provider's balances, and move it by makola float add with --take and with --account")
		}
	}
	if len(d.found) == found {
		d.ok(check, "all money is in an account at its provider")
	}
}
