package accounts

import (
	"cmp"
	"strings"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/senderid"
)

// Senders holds the commands of makola senders.
type Senders struct {
	List    sendersList    `cmd:"" help:"List sender IDs in review, or all of one account. A reserved name that looks similar is in column NEAR."`
	Create  sendersCreate  `cmd:"" help:"Create an approved sender ID, for example one that an account brings from another system with its id."`
	Approve sendersApprove `cmd:"" help:"Approve a sender ID. It applies within a second."`
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
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the sender IDs, by id or unique name. Approved ones come first."`
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
	ID     string `name:"id" placeholder:"UUID" help:"Id of the new sender ID in the interface. Default: a generated id."`
	Desc   string `name:"desc" placeholder:"TEXT" help:"Purpose of the sender ID."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log, such as the documents you checked."`
}

// prepareSender generates an id for a sender ID without one.
func prepareSender(q *frame.Ask) error {
	q.Values["id"] = strings.ToLower(cmp.Or(q.Values["id"], frame.NewID()))
	return q.Accounts()
}

// showSender prints the sender ID of a change.
func showSender(q *frame.Ask) error {
	s, err := q.O.Senders().Find(q.E.Ctx, cmp.Or(q.Values["id"], q.Values["sender"]))
	if err != nil {
		return err
	}
	names, err := q.O.Named(q.E.Ctx, []string{s.Tenant})
	if err != nil {
		return err
	}
	return frame.PrintOne(q.E.Stdout, q.Output, senderColumns(names), s)
}

type sendersApprove struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type sendersReject struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id of the sender ID."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason for the rejection. The customer sees it."`
}
