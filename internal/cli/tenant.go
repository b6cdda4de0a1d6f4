package cli

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

type tenantCommands struct {
	Create tenantCreate `cmd:"" help:"Make a customer, with its wallet and its SMS credits."`
	List   tenantList   `cmd:"" help:"List customers."`
	Show   tenantShow   `cmd:"" help:"Show one customer with its balances and payout addresses."`
	Set    tenantSet    `cmd:"" help:"Change a customer. Servers follow within a second."`
}

// tenantFlags are what create and set have in common.
type tenantFlags struct {
	Collections   toggle         `name:"collections" placeholder:"on|off" help:"Whether it may collect mobile money."`
	Blocked       toggle         `name:"blocked" placeholder:"on|off" help:"Refuse everything but status checks."`
	Payouts       toggle         `name:"payouts" placeholder:"on|off" help:"Whether it may send payouts."`
	PayoutIP      []netip.Prefix `name:"payout-ip" placeholder:"CIDR" help:"Address or range that may send payouts; repeat for more. Replaces the whole list."`
	FeeBearer     string         `name:"fee-bearer" enum:"merchant,customer," default:"" placeholder:"merchant|customer" help:"Who bears the charges of collections."`
	Listed        string         `name:"listed" enum:"payouts,spending," default:"" placeholder:"payouts|spending" help:"What is taken from the addresses of --payout-ip alone: payouts, or airtime, data and messages as well."`
	Duplicates    string         `name:"duplicates" enum:"refuse,repeat," default:"" placeholder:"refuse|repeat" help:"What a request is answered whose reference was used before: refused, or the same one hears for a day what became of it."`
	TransferLimit amount         `name:"transfer-limit" placeholder:"CEDIS" help:"Most that one transfer to a wallet may move."`
	BankLimit     amount         `name:"bank-transfer-limit" placeholder:"CEDIS" help:"Most that one transfer to a bank account may move."`
	Quotas        quotaFlags     `embed:"" prefix:"quota-"`
}

// settings says what the flags ask for in the words of acts. none empties the list of addresses.
func (f tenantFlags) settings(addresses []netip.Prefix, none bool) map[string]string {
	values := map[string]string{}
	for name, flag := range map[string]toggle{changes.Blocked: f.Blocked, "collections": f.Collections, "payouts": f.Payouts} {
		if flag.value != nil {
			values[name] = map[bool]string{true: "on", false: "off"}[*flag.value]
		}
	}
	for name, flag := range map[string]amount{"transfer_limit": f.TransferLimit, "bank_transfer_limit": f.BankLimit} {
		if flag.value != nil {
			values[name] = flag.value.String()
		}
	}
	for name, word := range map[string]string{"fee_bearer": f.FeeBearer, "listed": f.Listed, "duplicates": f.Duplicates} {
		if word != "" {
			values[name] = word
		}
	}
	for name, flag := range map[string]quota{"quota_contacts": f.Quotas.Contacts, "quota_groups": f.Quotas.Groups, "quota_sender_ids": f.Quotas.Senders, "quota_campaigns": f.Quotas.Campaigns} {
		if flag.value != nil {
			values[name] = flag.value.String()
		}
	}
	if len(addresses) > 0 || none {
		values[changes.PayoutIPs] = strings.Join(textsOf(addresses), " ")
	}
	return values
}

// quotaFlags are the bounds of what a customer stores.
type quotaFlags struct {
	Contacts  quota `name:"contacts" placeholder:"N|none|default" help:"Most contacts, over all its groups; default: what the server's MAKOLA_QUOTA_CONTACTS says."`
	Groups    quota `name:"groups" placeholder:"N|none|default" help:"Most contact groups."`
	Senders   quota `name:"sender-ids" placeholder:"N|none|default" help:"Most sender IDs, those rejected among them."`
	Campaigns quota `name:"campaigns" placeholder:"N|none|default" help:"Most campaigns under way at once, of those with more than 10 recipients."`
}

// tenantView is a customer as it is printed.
type tenantView struct {
	tenant.Tenant
	payoutIPs []string
	wallet    money.Pesewas
	credits   int64
}

func tenantColumns() []column[tenantView] {
	return []column[tenantView]{
		{"id", func(t tenantView) any { return t.ID }},
		{"name", func(t tenantView) any { return t.Name }},
		{"mode", func(t tenantView) any { return string(t.Mode) }},
		{"collections", func(t tenantView) any { return t.CollectionsEnabled }},
		{"blocked", func(t tenantView) any { return t.Blocked }},
		{"payouts", func(t tenantView) any { return !t.PayoutsStopped }},
		{"transfer_limit", func(t tenantView) any { return t.PayoutLimitWallet }},
		{"bank_transfer_limit", func(t tenantView) any { return t.PayoutLimitBank }},
		{"fee_bearer", func(t tenantView) any { return string(t.FeeBearer) }},
		{"listed", func(t tenantView) any { return string(t.Listed) }},
		{"duplicates", func(t tenantView) any { return string(t.Duplicates) }},
		{"created_at", func(t tenantView) any { return t.CreatedAt }},
	}
}

func tenantDetails() []column[tenantView] {
	return append(tenantColumns(),
		column[tenantView]{"updated_at", func(t tenantView) any { return t.UpdatedAt }},
		column[tenantView]{"payout_ips", func(t tenantView) any { return t.payoutIPs }},
		column[tenantView]{"quota_contacts", func(t tenantView) any { return t.Quotas.Contacts.String() }},
		column[tenantView]{"quota_groups", func(t tenantView) any { return t.Quotas.Groups.String() }},
		column[tenantView]{"quota_sender_ids", func(t tenantView) any { return t.Quotas.Senders.String() }},
		column[tenantView]{"quota_campaigns", func(t tenantView) any { return t.Quotas.Campaigns.String() }},
		column[tenantView]{"wallet", func(t tenantView) any { return t.wallet }},
		column[tenantView]{"sms_credits", func(t tenantView) any { return t.credits }},
	)
}

// view reads what is printed of a customer beside its own row.
func (o *opened) view(ctx context.Context, t tenant.Tenant) (tenantView, error) {
	v := tenantView{Tenant: t}
	list, err := o.access.PayoutIPs(ctx, t.ID)
	if err != nil {
		return v, err
	}
	v.payoutIPs = textsOf(list)
	balance, err := o.ledger.Balance(ctx, t.Wallet())
	if err != nil {
		return v, err
	}
	v.wallet = money.Pesewas(balance)
	v.credits, err = o.ledger.Balance(ctx, t.SMSCredits())
	return v, err
}

type tenantCreate struct {
	common
	tenantFlags
	reasoned
	Name string `arg:"" help:"Name of the customer."`
	Mode string `name:"mode" enum:"test,live" required:"" help:"test money or live money; it never changes."`
	ID   string `name:"id" help:"Id of the customer; made when empty."`
}

// Run makes the customer.
func (c *tenantCreate) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		id := cmp.Or(c.ID, newID())
		r, err := o.changes(config.Secret{}).CreateTenant(e.ctx, o.by, newID(), id, c.Name, c.Mode, c.settings(c.PayoutIP, false), c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.printTenant(ctx, e, c.Output, id) })
	})
}

type tenantList struct {
	common
	After string `name:"after" placeholder:"ID" help:"List those whose ids come after this one."`
	Limit count  `name:"limit" default:"100" help:"List at most so many."`
}

// Run lists customers.
func (c *tenantList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		all, err := o.tenants.List(e.ctx, c.After, int(c.Limit))
		if err != nil {
			return err
		}
		views := make([]tenantView, len(all))
		for i, t := range all {
			views[i].Tenant = t
		}
		return printAll(e.stdout, c.Output, tenantColumns(), views)
	})
}

type tenantShow struct {
	common
	ID string `arg:"" help:"Id or unique name of the customer."`
}

// Run shows one customer.
func (c *tenantShow) Run(e *env) error {
	return c.with(e, func(o *opened) error { return o.printTenant(e.ctx, e, c.Output, c.ID) })
}

// printTenant reads and prints one customer.
func (o *opened) printTenant(ctx context.Context, e *env, format, id string) error {
	t, err := o.tenant(ctx, id)
	if err != nil {
		return err
	}
	view, err := o.view(ctx, t)
	if err != nil {
		return err
	}
	return printOne(e.stdout, format, tenantDetails(), view)
}

type tenantSet struct {
	common
	tenantFlags
	writing
	ID         string  `arg:"" help:"Id or unique name of the customer."`
	Name       *string `name:"name" help:"New name."`
	NoPayoutIP bool    `name:"no-payout-ip" help:"Empty the list of payout addresses: no payout is accepted."`
	Reason     string  `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run changes the customer.
func (c *tenantSet) Run(e *env) error {
	if len(c.PayoutIP) > 0 && c.NoPayoutIP {
		return usage("--payout-ip and --no-payout-ip exclude each other")
	}
	values := c.settings(c.PayoutIP, c.NoPayoutIP)
	if c.Name != nil {
		values["name"] = *c.Name
	}
	if len(values) == 0 {
		return usage("Nothing to change: say at least one flag")
	}
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.ID); err != nil {
			return err
		}
		r, err := o.changes(config.Secret{}).SetTenant(e.ctx, o.by, newID(), c.ID, values, c.Reason)
		show := func(ctx context.Context) error { return o.printTenant(ctx, e, c.Output, c.ID) }
		if err != nil && problem.From(err).Code == "nothing_changed" {
			return show(e.ctx)
		}
		return o.asked(e, c.Output, r, err, show)
	})
}
