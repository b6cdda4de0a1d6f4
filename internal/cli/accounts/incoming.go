package accounts

import (
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/inbox"
)

// Incoming holds the commands of makola incoming.
type Incoming struct {
	List    incomingList    `cmd:"" help:"List texts from handsets, newest first."`
	Numbers incomingNumbers `cmd:"" help:"List numbers, short codes and keywords with their accounts."`
}

type incomingList struct {
	frame.Common
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the texts, by id or unique name. Default: all texts, also texts without an account."`
	Before string      `name:"before" placeholder:"ID" help:"List texts older than the text with this id."`
	Limit  frame.Count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run lists texts.
func (c *incomingList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		f := inbox.Filter{All: c.Tenant == "", Before: c.Before, Limit: int(c.Limit)}
		if !f.All {
			if err := o.Known(e.Ctx, &c.Tenant); err != nil {
				return err
			}
			f.Tenant = c.Tenant
		}
		list, err := o.Inbox().Texts(e.Ctx, f)
		if err != nil {
			return err
		}
		columns := []frame.Column[inbox.Text]{
			{Name: "id", Value: func(t inbox.Text) any { return t.ID }},
			{Name: "tenant", Value: func(t inbox.Text) any { return t.Tenant }},
			{Name: "mode", Value: func(t inbox.Text) any { return string(t.Mode) }},
			{Name: "from", Value: func(t inbox.Text) any { return t.From }},
			{Name: "to", Value: func(t inbox.Text) any { return t.To }},
			{Name: "keyword", Value: func(t inbox.Text) any { return t.Keyword }},
			{Name: "text", Value: func(t inbox.Text) any { return t.Message }},
			{Name: "encoding", Value: func(t inbox.Text) any { return string(t.Encoding) }},
			{Name: "parts", Value: func(t inbox.Text) any { return t.Parts }},
			{Name: "missing", Value: func(t inbox.Text) any { return t.Missing }},
			{Name: "opt_out", Value: func(t inbox.Text) any { return string(t.Word) }},
			{Name: "answer", Value: func(t inbox.Text) any { return string(t.Answer) }},
			{Name: "received_at", Value: func(t inbox.Text) any { return t.ReceivedAt }},
		}
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, columns, "id", "tenant", "from", "to", "text", "opt_out", "received_at"), list)
	})
}

type incomingNumbers struct {
	frame.Common
	Tenant string `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the numbers, by id or unique name. Default: all accounts."`
}

// Run lists numbers.
func (c *incomingNumbers) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if c.Tenant != "" {
			if err := o.Known(e.Ctx, &c.Tenant); err != nil {
				return err
			}
		}
		list, err := o.Inbox().Numbers(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[inbox.Number]{
			{Name: "mode", Value: func(n inbox.Number) any { return string(n.Mode) }},
			{Name: "number", Value: func(n inbox.Number) any { return n.Number }},
			{Name: "keyword", Value: func(n inbox.Number) any { return n.Keyword }},
			{Name: "tenant", Value: func(n inbox.Number) any { return n.Tenant }},
			{Name: "answers", Value: func(n inbox.Number) any { return n.Answers }},
			{Name: "created_at", Value: func(n inbox.Number) any { return n.CreatedAt }},
		}, list)
	})
}
