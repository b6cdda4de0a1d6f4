package cli

import (
	"encoding/json"
	"slices"

	"github.com/makola/makola/internal/access"
)

type auditCommands struct {
	List auditList `cmd:"" help:"List acts of operators with what they changed, newest first."`
}

// A change is what an act changed, in the audit log, in units that a person uses. What was not there before is empty.
type change struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// changes are an act's in its details; more is what else is noted.
func changes(list []change, more ...map[string]any) map[string]any {
	details := map[string]any{"changes": list}
	for _, m := range more {
		for name, value := range m {
			details[name] = value
		}
	}
	return details
}

// changed compares a thing before and after an act, in the columns that it is printed with.
func changed[T any](columns []column[T], before, after T, without ...string) (list []change) {
	for _, c := range columns {
		was, is := text(c.value(before)), text(c.value(after))
		if was != is && !slices.Contains(without, c.name) {
			list = append(list, change{c.name, was, is})
		}
	}
	return list
}

// madeOf is changed for what was not there before.
func madeOf[T any](columns []column[T], after T, without ...string) (list []change) {
	for _, c := range columns {
		if is := text(c.value(after)); is != "" && !slices.Contains(without, c.name) {
			list = append(list, change{What: c.name, After: is})
		}
	}
	return list
}

type auditList struct {
	common
	Tenant string `name:"tenant" placeholder:"ID" help:"Only those that concern this customer, by id or unique name."`
	Actor  string `name:"actor" help:"Only those of this operator, such as cli:ama."`
	Action string `name:"action" help:"Only acts of this kind, such as tenant.set."`
	Before string `name:"before" placeholder:"ID" help:"Only those older than this entry."`
	Limit  count  `name:"limit" default:"100" help:"List at most so many."`
}

func auditColumns(names map[string]string) []column[access.Entry] {
	return []column[access.Entry]{
		{"id", func(a access.Entry) any { return a.ID }},
		{"at", func(a access.Entry) any { return a.At }},
		{"actor", func(a access.Entry) any { return a.Actor }},
		{"action", func(a access.Entry) any { return a.Action }},
		{"tenant", func(a access.Entry) any { return a.Tenant }},
		{"customer", func(a access.Entry) any { return names[a.Tenant] }},
		{"subject", func(a access.Entry) any { return a.Subject }},
		{"changes", func(a access.Entry) any { return changesOf(a) }},
		{"reason", func(a access.Entry) any { return a.Reason }},
		{"details", func(a access.Entry) any {
			details, _ := a.Details.(json.RawMessage)
			return details
		}},
	}
}

// changesOf are the changes of an entry, each in one text.
func changesOf(a access.Entry) []string {
	var details struct{ Changes []change }
	raw, _ := a.Details.(json.RawMessage)
	if json.Unmarshal(raw, &details) != nil {
		return nil // of an earlier version, which wrote other details
	}
	var texts []string
	for _, c := range details.Changes {
		texts = append(texts, c.What+": "+cell(c.Before)+" → "+cell(c.After)+";")
	}
	return texts
}

// Run lists the log.
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
		var ids []string
		for _, a := range entries {
			ids = append(ids, a.Tenant)
		}
		names, err := o.named(e.ctx, ids)
		if err != nil {
			return err
		}
		columns := narrow(c.Output, auditColumns(names), "at", "actor", "action", "customer", "changes", "reason")
		return printAll(e.stdout, c.Output, columns, entries)
	})
}
