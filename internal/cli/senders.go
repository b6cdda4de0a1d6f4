package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/senderid"
)

type sendersCommands struct {
	List    sendersList    `cmd:"" help:"List the sender IDs that wait for a review, or all of one customer; near is a reserved word that a name comes near."`
	Create  sendersCreate  `cmd:"" help:"Make an approved sender ID, such as one that a customer brings with its id."`
	Approve sendersApprove `cmd:"" help:"Approve a sender ID. Servers follow within a second."`
	Reject  sendersReject  `cmd:"" help:"Reject a sender ID; the customer reads why."`
}

// senders are the sender IDs as an operator reviews them: the customer's own quota holds, the servers' does not.
func (o *opened) senders() *senderid.Store {
	return senderid.New(o.db, o.tenants, o.answers, o.clock, config.Quotas{})
}

func senderColumns(names map[string]string) []column[senderid.Sender] {
	return []column[senderid.Sender]{
		{"id", func(s senderid.Sender) any { return s.ID }},
		{"tenant", func(s senderid.Sender) any { return s.Tenant }},
		{"customer", func(s senderid.Sender) any { return names[s.Tenant] }},
		{"name", func(s senderid.Sender) any { return s.Name }},
		{"status", func(s senderid.Sender) any { return string(s.Status) }},
		{"near", func(s senderid.Sender) any { return senderid.Near(s.Name) }},
		{"description", func(s senderid.Sender) any { return s.Description }},
		{"reason", func(s senderid.Sender) any { return s.Reason }},
		{"created_at", func(s senderid.Sender) any { return s.CreatedAt }},
		{"reviewed_at", func(s senderid.Sender) any { return s.ReviewedAt }},
		{"reviewer", func(s senderid.Sender) any { return s.Reviewer }},
	}
}

type sendersList struct {
	common
	Tenant string `name:"tenant" placeholder:"ID" help:"All of this customer, approved ones first, instead of what waits."`
	Limit  count  `name:"limit" default:"100" help:"Most that are listed of what waits."`
}

// Run lists sender IDs.
func (c *sendersList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.senders().Waiting(e.ctx, int(c.Limit))
		if c.Tenant != "" {
			list, err = o.senders().List(e.ctx, c.Tenant)
		}
		if err != nil {
			return err
		}
		var ids []string
		for _, s := range list {
			ids = append(ids, s.Tenant)
		}
		names, err := o.named(e.ctx, ids)
		if err != nil {
			return err
		}
		columns := narrow(c.Output, senderColumns(names), "id", "customer", "name", "status", "description", "created_at")
		return printAll(e.stdout, c.Output, columns, list)
	})
}

type sendersCreate struct {
	common
	writing
	Tenant string `name:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the customer."`
	Name   string `name:"name" required:"" help:"What recipients see, at most 11 characters."`
	ID     string `name:"id" placeholder:"UUID" help:"The id that the customer's programs send; made when absent."`
	Desc   string `name:"desc" placeholder:"TEXT" help:"Purpose."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log, such as which papers were seen."`
}

// Run makes the sender ID.
func (c *sendersCreate) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		s := senderid.Sender{Tenant: c.Tenant, ID: strings.ToLower(cmp.Or(c.ID, newID())), Name: c.Name, Description: c.Desc}
		r, err := o.changes(config.Secret{}).CreateSender(e.ctx, o.by, newID(), s, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showSender(ctx, e, c.Output, s.ID) })
	})
}

// review decides a sender ID.
func (c *common) review(e *env, id string, to senderid.Status, reason string) error {
	return c.with(e, func(o *opened) error {
		r, err := o.changes(config.Secret{}).ReviewSender(e.ctx, o.by, newID(), id, to, reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showSender(ctx, e, c.Output, id) })
	})
}

// showSender reads and prints one sender ID.
func (o *opened) showSender(ctx context.Context, e *env, format, id string) error {
	s, err := o.senders().Find(ctx, id)
	if err != nil {
		return err
	}
	names, err := o.named(ctx, []string{s.Tenant})
	if err != nil {
		return err
	}
	return printOne(e.stdout, format, senderColumns(names), s)
}

type sendersApprove struct {
	common
	writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run approves.
func (c *sendersApprove) Run(e *env) error {
	return c.review(e, c.ID, senderid.Approved, c.Reason)
}

type sendersReject struct {
	common
	writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why; the customer reads it."`
}

// Run rejects.
func (c *sendersReject) Run(e *env) error {
	return c.review(e, c.ID, senderid.Rejected, c.Reason)
}
