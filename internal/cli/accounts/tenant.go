// Package accounts holds the commands about accounts and people.
//
// Files, each above those that it uses:
//
//	aliases.go                            the commands that request a change
//	tenant.go, key.go                     accounts; API keys
//	people.go, approvals.go               people and their roles; change requests
//	audit.go, privacy.go                  the audit log; the export and erasure of a person's data
//	webhooks.go                           deliveries of events
//	senders.go, campaigns.go, otp.go      sender IDs; campaigns; closed ranges of numbers
//	contacts.go, incoming.go              groups, imports and opt-outs; texts from handsets
package accounts

import (
	"context"
	"net/netip"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// Tenant holds the commands of makola account.
type Tenant struct {
	Create tenantCreate `cmd:"" help:"Create an account, with its wallet and its SMS credits."`
	List   tenantList   `cmd:"" help:"List accounts."`
	Show   tenantShow   `cmd:"" help:"Show an account with its balances and payout addresses."`
	Set    tenantSet    `cmd:"" help:"Change an account. It applies within a second."`
}

// tenantFlags are the flags that create and set share.
type tenantFlags struct {
	Collections   frame.Toggle   `name:"collections" placeholder:"on|off" help:"Allow or stop collections of mobile money."`
	Blocked       frame.Toggle   `name:"blocked" placeholder:"on|off" help:"Refuse every request except status checks."`
	Payouts       frame.Toggle   `name:"payouts" placeholder:"on|off" help:"Allow or stop payouts."`
	PayoutIP      []netip.Prefix `name:"payout-ip" placeholder:"CIDR" help:"Address or range that may send payouts. May be repeated; replaces the whole list."`
	FeeBearer     string         `name:"fee-bearer" enum:"merchant,customer," default:"" placeholder:"merchant|customer" help:"Party that pays the charges of collections."`
	Listed        string         `name:"listed" enum:"payouts,spending," default:"" placeholder:"payouts|spending" help:"Requests that must come from an address of --payout-ip: payouts, or also airtime, data and messages."`
	Duplicates    string         `name:"duplicates" enum:"refuse,repeat," default:"" placeholder:"refuse|repeat" help:"Answer to a request with a used reference: refuse it, or repeat the first answer for a day."`
	RefundAirtime string         `name:"refund-airtime" enum:"wallet,payer," default:"" placeholder:"wallet|payer" help:"Recipient of the refund if airtime that was paid by mobile money fails: payer or wallet."`
	Email         string         `name:"email" placeholder:"ADDRESS" help:"E-mail address of the account, for providers of collections that require one."`
	Voucher       frame.Toggle   `name:"voucher" placeholder:"on|off" help:"Allow providers of collections that need a voucher of the payer (Telecel). The account's clients must send the voucher."`
	TransferLimit frame.Amount   `name:"transfer-limit" placeholder:"CEDIS" help:"Maximum amount of one payout to a wallet."`
	BankLimit     frame.Amount   `name:"bank-transfer-limit" placeholder:"CEDIS" help:"Maximum amount of one payout to a bank account."`
	Quotas        quotaFlags     `embed:"" prefix:"quota-"`
}

// quotaFlags limit the number of stored rows of an account.
type quotaFlags struct {
	Contacts  frame.Quota `name:"contacts" placeholder:"N|none|default" help:"Maximum number of contacts, over all groups; default uses the server's MAKOLA_QUOTA_CONTACTS."`
	Groups    frame.Quota `name:"groups" placeholder:"N|none|default" help:"Maximum number of contact groups."`
	Senders   frame.Quota `name:"sender-ids" placeholder:"N|none|default" help:"Maximum number of sender IDs, rejected ones included."`
	Campaigns frame.Quota `name:"campaigns" placeholder:"N|none|default" help:"Maximum number of open campaigns with more than 10 recipients."`
}

// tenantView is a customer as it is printed.
type tenantView struct {
	tenant.Tenant
	payoutIPs []string
	wallet    money.Pesewas
	credits   int64
}

func tenantColumns() []frame.Column[tenantView] {
	return []frame.Column[tenantView]{
		{Name: "id", Value: func(t tenantView) any { return t.ID }},
		{Name: "name", Value: func(t tenantView) any { return t.Name }},
		{Name: "mode", Value: func(t tenantView) any { return string(t.Mode) }},
		{Name: "collections", Value: func(t tenantView) any { return t.CollectionsEnabled }},
		{Name: "blocked", Value: func(t tenantView) any { return t.Blocked }},
		{Name: "payouts", Value: func(t tenantView) any { return !t.PayoutsStopped }},
		{Name: "transfer_limit", Value: func(t tenantView) any { return t.PayoutLimitWallet }},
		{Name: "bank_transfer_limit", Value: func(t tenantView) any { return t.PayoutLimitBank }},
		{Name: "fee_bearer", Value: func(t tenantView) any { return string(t.FeeBearer) }},
		{Name: "listed", Value: func(t tenantView) any { return string(t.Listed) }},
		{Name: "duplicates", Value: func(t tenantView) any { return string(t.Duplicates) }},
		{Name: "created_at", Value: func(t tenantView) any { return t.CreatedAt }},
	}
}

func tenantDetails() []frame.Column[tenantView] {
	return append(tenantColumns(),
		frame.Column[tenantView]{Name: "updated_at", Value: func(t tenantView) any { return t.UpdatedAt }},
		frame.Column[tenantView]{Name: "payout_ips", Value: func(t tenantView) any { return t.payoutIPs }},
		frame.Column[tenantView]{Name: "quota_contacts", Value: func(t tenantView) any { return t.Quotas.Contacts.String() }},
		frame.Column[tenantView]{Name: "quota_groups", Value: func(t tenantView) any { return t.Quotas.Groups.String() }},
		frame.Column[tenantView]{Name: "quota_sender_ids", Value: func(t tenantView) any { return t.Quotas.Senders.String() }},
		frame.Column[tenantView]{Name: "quota_campaigns", Value: func(t tenantView) any { return t.Quotas.Campaigns.String() }},
		frame.Column[tenantView]{Name: "wallet", Value: func(t tenantView) any { return t.wallet }},
		frame.Column[tenantView]{Name: "sms_credits", Value: func(t tenantView) any { return t.credits }},
	)
}

// viewTenant reads the addresses and balances that are printed with an account.
func viewTenant(ctx context.Context, o *frame.Opened, t tenant.Tenant) (tenantView, error) {
	v := tenantView{Tenant: t}
	list, err := o.Access.PayoutIPs(ctx, t.ID)
	if err != nil {
		return v, err
	}
	v.payoutIPs = frame.TextsOf(list)
	balance, err := o.Ledger.Balance(ctx, t.Wallet())
	if err != nil {
		return v, err
	}
	v.wallet = money.Pesewas(balance)
	v.credits, err = o.Ledger.Balance(ctx, t.SMSCredits())
	return v, err
}

type tenantCreate struct {
	frame.Common
	tenantFlags
	frame.Reasoned
	Name string `arg:"" help:"Name of the account."`
	Mode string `name:"mode" enum:"test,live" required:"" help:"Mode of the account: test or live money. It cannot be changed."`
	ID   string `name:"id" help:"Id of the new account. Default: a generated id."`
}

type tenantList struct {
	frame.Common
	After string      `name:"after" placeholder:"ID" help:"List accounts whose ids come after this one."`
	Limit frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

// Run lists customers.
func (c *tenantList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		all, err := o.Tenants.List(e.Ctx, c.After, int(c.Limit))
		if err != nil {
			return err
		}
		views := make([]tenantView, len(all))
		for i, t := range all {
			views[i].Tenant = t
		}
		return frame.PrintAll(e.Stdout, c.Output, tenantColumns(), views)
	})
}

type tenantShow struct {
	frame.Common
	ID string `arg:"" help:"Id or unique name of the account."`
}

// Run shows one customer.
func (c *tenantShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printTenant(e.Ctx, o, e, c.Output, c.ID) })
}

// printTenant reads and prints one customer.
func printTenant(ctx context.Context, o *frame.Opened, e *frame.Env, format, id string) error {
	t, err := o.Tenant(ctx, id)
	if err != nil {
		return err
	}
	view, err := viewTenant(ctx, o, t)
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, format, tenantDetails(), view)
}

type tenantSet struct {
	frame.Common
	tenantFlags
	frame.Writing
	ID         string  `arg:"" help:"Id or unique name of the account."`
	Name       *string `name:"name" help:"New name of the account."`
	NoPayoutIP bool    `name:"no-payout-ip" help:"Remove all payout addresses. No payout is accepted then."`
	Reason     string  `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Check refuses flags that exclude each other.
func (c *tenantSet) Check() error {
	if len(c.PayoutIP) > 0 && c.NoPayoutIP {
		return frame.Usage("--payout-ip and --no-payout-ip exclude each other: leave one out")
	}
	return nil
}

// prepareSettings refuses a change without any setting.
func prepareSettings(q *frame.Ask) error {
	if len(q.Values) == 1 { // the account
		return frame.Usage("Nothing to change. Give at least one flag, such as --blocked on")
	}
	return q.Accounts()
}
