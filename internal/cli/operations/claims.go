package operations

import (
	"os"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/recovery"
)

type recoveryClaim struct {
	recoveryStep
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	File   string `arg:"" type:"existingfile" help:"CSV or XLSX file with the columns kind (payout, collection or topup), reference, amount, party, channel and, for a bank, bank_id."`
	frame.TableFlags
}

// Run stores the claims. A server adopts the payments that the provider confirms, and sends nothing.
func (c *recoveryClaim) Run(e *frame.Env) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // an error of closing is ignored, because the file was only read
	return c.run(e, audit.Entry{}, func(o *frame.Opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		claims, report, err := recovery.ReadClaims(file, c.Options(), t.ID, o.Actor)
		if err != nil {
			return err
		}
		frame.Note(e.Stderr, report)
		return r.Make(e.Ctx, claims, o.Audited(audit.Entry{Action: "recovery.claim", Tenant: t.ID, Subject: t.ID, Reason: c.Reason}))
	})
}

type recoveryClaims struct{ frame.Common }

var claimColumns = []frame.Column[recovery.Claim]{
	{Name: "state", Value: func(c recovery.Claim) any { return string(c.State) }},
	{Name: "tenant", Value: func(c recovery.Claim) any { return c.Tenant }},
	{Name: "kind", Value: func(c recovery.Claim) any { return c.Kind }},
	{Name: "reference", Value: func(c recovery.Claim) any { return c.Reference }},
	{Name: "amount", Value: func(c recovery.Claim) any { return money.Pesewas(c.Amount) }},
	{Name: "channel", Value: func(c recovery.Claim) any { return c.Channel }},
	{Name: "party", Value: func(c recovery.Claim) any { return c.Party }},
	{Name: "bank_id", Value: func(c recovery.Claim) any { return c.Bank }},
	{Name: "why", Value: func(c recovery.Claim) any { return c.Why }},
	{Name: "at", Value: func(c recovery.Claim) any { return c.At }},
}

// Run lists the claims with their outcomes.
func (c *recoveryClaims) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		all, err := o.Recovery().Claims(e.Ctx)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, claimColumns, all)
	})
}
