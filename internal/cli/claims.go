package cli

import (
	"os"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/recovery"
)

type recoveryClaim struct {
	recoveryStep
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	File   string `arg:"" type:"existingfile" help:"CSV or XLSX with the columns kind (payout, collection or topup), reference, amount, party, channel and, for a bank, bank_id."`
	tableFlags
}

// Run writes the claims down. A server adopts what a provider has, and sends nothing.
func (c *recoveryClaim) Run(e *env) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	return c.run(e, audit.Entry{}, func(o *opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		claims, report, err := recovery.ReadClaims(file, c.options(), t.ID, o.actor)
		if err != nil {
			return err
		}
		note(e.stderr, report)
		return r.Make(e.ctx, claims, o.audited(audit.Entry{Action: "recovery.claim", Tenant: t.ID, Subject: t.ID, Reason: c.Reason}))
	})
}

type recoveryClaims struct{ common }

var claimColumns = []column[recovery.Claim]{
	{"state", func(c recovery.Claim) any { return string(c.State) }},
	{"tenant", func(c recovery.Claim) any { return c.Tenant }},
	{"kind", func(c recovery.Claim) any { return c.Kind }},
	{"reference", func(c recovery.Claim) any { return c.Reference }},
	{"amount", func(c recovery.Claim) any { return money.Pesewas(c.Amount) }},
	{"channel", func(c recovery.Claim) any { return c.Channel }},
	{"party", func(c recovery.Claim) any { return c.Party }},
	{"bank_id", func(c recovery.Claim) any { return c.Bank }},
	{"why", func(c recovery.Claim) any { return c.Why }},
	{"at", func(c recovery.Claim) any { return c.At }},
}

// Run lists the claims and what became of each.
func (c *recoveryClaims) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		all, err := o.recovery().Claims(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, claimColumns, all)
	})
}
