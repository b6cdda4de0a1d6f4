package accounts

import (
	"cmp"
	"context"
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/senderid"
)

// Senders holds the commands of makola senders.
type Senders struct {
	List    sendersList    `cmd:"" help:"List sender IDs in review, or all of one account. The column near shows a similar reserved name."`
	Create  sendersCreate  `cmd:"" help:"Create an approved sender ID, such as one that an account brings with its id."`
	Approve sendersApprove `cmd:"" help:"Approve a sender ID. Servers follow within a second."`
	Reject  sendersReject  `cmd:"" help:"Reject a sender ID. The customer sees the reason."`
}

func senderColumns(names map[string]string) []frame.Column[senderid.Sender] {
	return []frame.Column[senderid.Sender]{
		{Name: "id", Value: func(s senderid.Sender) any { return s.ID }},
		{Name: "tenant", Value: func(s senderid.Sender) any { return s.Tenant }},
		{Name: "customer", Value: func(s senderid.Sender) any { return names[s.Tenant] }},
		{Name: "name", Value: func(s senderid.Sender) any { return s.Name }},
		{Name: "status", Value: func(s senderid.Sender) any { return string(s.Status) }},
		{Name: "class", Value: func(s senderid.Sender) any { return string(s.Class) }},
		{Name: "near", Value: func(s senderid.Sender) any { return senderid.Near(s.Name) }},
		{Name: "description", Value: func(s senderid.Sender) any { return s.Description }},
		{Name: "reason", Value: func(s senderid.Sender) any { return s.Reason }},
		{Name: "created_at", Value: func(s senderid.Sender) any { return s.CreatedAt }},
		{Name: "reviewed_at", Value: func(s senderid.Sender) any { return s.ReviewedAt }},
		{Name: "reviewer", Value: func(s senderid.Sender) any { return s.Reviewer }},
	}
}

type sendersList struct {
	frame.Common
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account whose sender IDs to list, approved ones first, by id or unique name."`
	Limit  frame.Count `name:"limit" default:"100" help:"Maximum number of sender IDs in review."`
}

// Run lists sender IDs.
func (c *sendersList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.Senders().Waiting(e.Ctx, int(c.Limit))
		if c.Tenant != "" {
			list, err = o.Senders().List(e.Ctx, c.Tenant)
		}
		if err != nil {
			return err
		}
		var ids []string
		for _, s := range list {
			ids = append(ids, s.Tenant)
		}
		names, err := o.Named(e.Ctx, ids)
		if err != nil {
			return err
		}
		columns := frame.Narrow(c.Output, senderColumns(names), "id", "customer", "name", "status", "description", "created_at")
		return frame.PrintAll(e.Stdout, c.Output, columns, list)
	})
}

type sendersCreate struct {
	frame.Common
	frame.Writing
	Tenant string `name:"account" aliases:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the account."`
	Name   string `name:"name" required:"" help:"Sender that recipients see, at most 11 characters."`
	ID     string `name:"id" placeholder:"UUID" help:"Id for the account's programs. Default: a generated id."`
	Desc   string `name:"desc" placeholder:"TEXT" help:"Purpose of the sender ID."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log, such as the documents you checked."`
}

// Run makes the sender ID.
func (c *sendersCreate) Run(e *frame.Env) error {
	c.ID = strings.ToLower(cmp.Or(c.ID, frame.NewID()))
	return c.Change(e, &c.Tenant, func(o *frame.Opened, a *changes.Changes, id string) (changes.Request, error) {
		return a.CreateSender(e.Ctx, o.By, id, senderid.Sender{Tenant: c.Tenant, ID: c.ID, Name: c.Name, Description: c.Desc}, c.Reason)
	}, func(o *frame.Opened, _ changes.Request) error { return showSender(e.Ctx, o, e, c.Output, c.ID) })
}

// reviewSender requests the decision on a sender ID.
func reviewSender(c *frame.Common, e *frame.Env, sender string, to senderid.Status, reason string) error {
	return c.Change(e, nil, func(o *frame.Opened, a *changes.Changes, id string) (changes.Request, error) {
		return a.ReviewSender(e.Ctx, o.By, id, sender, to, reason)
	}, func(o *frame.Opened, _ changes.Request) error { return showSender(e.Ctx, o, e, c.Output, sender) })
}

// showSender reads and prints one sender ID.
func showSender(ctx context.Context, o *frame.Opened, e *frame.Env, format, id string) error {
	s, err := o.Senders().Find(ctx, id)
	if err != nil {
		return err
	}
	names, err := o.Named(ctx, []string{s.Tenant})
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, format, senderColumns(names), s)
}

type sendersApprove struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run approves.
func (c *sendersApprove) Run(e *frame.Env) error {
	return reviewSender(&c.Common, e, c.ID, senderid.Approved, c.Reason)
}

type sendersReject struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason for the rejection. The customer sees it."`
}

// Run rejects.
func (c *sendersReject) Run(e *frame.Env) error {
	return reviewSender(&c.Common, e, c.ID, senderid.Rejected, c.Reason)
}
