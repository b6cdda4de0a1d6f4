package cli

import (
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/privacy"
)

type privacyCommands struct {
	Export privacyExport `cmd:"" help:"Print what is known of a mobile number: payments, messages, contacts, of all customers."`
	Erase  privacyErase  `cmd:"" help:"Take a person off everything that is over: what moved stays, who it was goes. There is no way back."`
}

func (o *opened) privacy() privacy.Deps {
	return privacy.Deps{DB: o.db, Payments: book.NewReader(o.db, o.ledger, o.clock), Messaging: o.messaging(), Contacts: o.contacts(), Routes: o.routes()}
}

var foundColumns = []column[privacy.Found]{
	{"what", func(f privacy.Found) any { return f.What }},
	{"tenant", func(f privacy.Found) any { return f.Tenant }},
	{"id", func(f privacy.Found) any { return f.ID }},
	{"name", func(f privacy.Found) any { return f.Name }},
	{"detail", func(f privacy.Found) any { return f.Detail }},
	{"reference", func(f privacy.Found) any { return f.Reference }},
	{"at", func(f privacy.Found) any { return f.At }},
}

type privacyExport struct {
	common
	Number string `arg:"" help:"The person's mobile number."`
}

// Run prints. A backup that is older than an erasure has more.
func (c *privacyExport) Run(e *env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		found := []privacy.Found{}
		err := o.privacy().Export(e.ctx, numbers[0], func(f privacy.Found) error { found = append(found, f); return nil })
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, foundColumns, found)
	})
}

var erasureColumns = []column[privacy.Erasure]{
	{"payments", func(r privacy.Erasure) any { return int64(r.Payments) }},
	{"messages", func(r privacy.Erasure) any { return int64(r.Messages) }},
	{"contacts", func(r privacy.Erasure) any { return int64(r.Contacts) }},
	{"exchanges", func(r privacy.Erasure) any { return int64(r.Exchanges) }},
	{"left", func(r privacy.Erasure) any { return int64(r.Left) }},
}

type privacyErase struct {
	common
	writing
	Number string `arg:"" help:"The person's mobile number."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log, which gets the number masked."`
}

// Run erases, after the audit log has that it begins: the person of a token is looked at there.
func (c *privacyErase) Run(e *env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		entry := audit.Entry{Action: "privacy.erase", Subject: numbers[0].Masked(), Reason: c.Reason}
		if err := o.act(e.ctx, entry, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		done, err := o.privacy().Erase(e.ctx, numbers[0])
		if err != nil {
			return err
		}
		if done.Left > 0 {
			fmt.Fprintf(e.stderr, "%d are not over and keep the number: give the command again later\n", done.Left)
		}
		return printOne(e.stdout, c.Output, erasureColumns, done)
	})
}
