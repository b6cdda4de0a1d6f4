package cli

import (
	"encoding/json"

	"github.com/makola/makola/internal/access"
)

type auditCommands struct {
	List auditList `cmd:"" help:"List acts of operators, newest first."`
}

type auditList struct {
	common
	Tenant string `name:"tenant" placeholder:"ID" help:"Only those that concern this customer."`
	Actor  string `name:"actor" help:"Only those of this operator, such as cli:ama."`
	Action string `name:"action" help:"Only acts of this kind, such as tenant.set."`
	Before string `name:"before" placeholder:"ID" help:"Only those older than this entry."`
	Limit  count  `name:"limit" default:"100" help:"List at most so many."`
}

func auditColumns() []column[access.Entry] {
	return []column[access.Entry]{
		{"id", func(a access.Entry) any { return a.ID }},
		{"at", func(a access.Entry) any { return a.At }},
		{"actor", func(a access.Entry) any { return a.Actor }},
		{"action", func(a access.Entry) any { return a.Action }},
		{"tenant", func(a access.Entry) any { return a.Tenant }},
		{"subject", func(a access.Entry) any { return a.Subject }},
		{"reason", func(a access.Entry) any { return a.Reason }},
	}
}

// Run lists the log. The details are too wide for a table.
func (c *auditList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		entries, err := o.access.AuditLog(e.ctx, access.AuditFilter{
			Tenant: c.Tenant, Actor: c.Actor, Action: c.Action, Before: c.Before, Limit: int(c.Limit),
		})
		if err != nil {
			return err
		}
		columns := auditColumns()
		if c.Output != "table" {
			columns = append(columns, column[access.Entry]{"details", func(a access.Entry) any {
				details, _ := a.Details.(json.RawMessage)
				return details
			}})
		}
		return printAll(e.stdout, c.Output, columns, entries)
	})
}
