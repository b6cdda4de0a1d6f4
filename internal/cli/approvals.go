package cli

import (
	"encoding/json"

	"github.com/makola/makola/internal/changes"
)

type actsCommands struct {
	List actsList `cmd:"" help:"List acts, newest first. They are checked in the console alone."`
	Show actsShow `cmd:"" help:"Show one act with who made it and who checked it."`
}

// approvals is the store of acts.
func (o *opened) approvals() *changes.Store {
	return changes.NewStore(o.db, o.clock, o.log.Keeping(o.journal), o.people, o.production)
}

var actsColumns = []column[changes.Request]{
	{"id", func(a changes.Request) any { return a.ID }},
	{"kind", func(a changes.Request) any { return a.Kind }},
	{"state", func(a changes.Request) any { return string(a.State) }},
	{"sentence", func(a changes.Request) any { return a.Sentence }},
	{"tenant", func(a changes.Request) any { return a.Tenant }},
	{"place", func(a changes.Request) any { return a.Place }},
	{"amount", func(a changes.Request) any { return a.Amount }},
	{"reason", func(a changes.Request) any { return a.Reason }},
	{"maker", func(a changes.Request) any { return a.MakerName }},
	{"origin", func(a changes.Request) any { return a.Origin }},
	{"checkers_needed", func(a changes.Request) any { return int64(a.Needs) }},
	{"made_at", func(a changes.Request) any { return a.MadeAt }},
	{"expires_at", func(a changes.Request) any { return a.ExpiresAt }},
	{"ended_at", func(a changes.Request) any { return a.EndedAt }},
	{"note", func(a changes.Request) any { return a.Note }},
	{"digest", func(a changes.Request) any { return a.Digest }},
	{"payload", func(a changes.Request) any { return json.RawMessage(a.Payload) }},
}

type actsList struct {
	common
	State  string `name:"state" enum:"waiting,done,rejected,withdrawn,expired,failed," default:"" placeholder:"STATE" help:"Only those in this state, such as waiting."`
	Tenant string `name:"tenant" placeholder:"ID" help:"Only those that concern this customer, by id or unique name."`
	Before string `name:"before" placeholder:"ID" help:"Only those older than this act."`
	Limit  count  `name:"limit" default:"100" help:"List at most so many."`
}

// Run lists acts.
func (c *actsList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.approvals().List(e.ctx, changes.Filter{AllPlaces: true, Tenant: c.Tenant, State: changes.State(c.State), Before: c.Before, Limit: int(c.Limit)})
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, narrow(c.Output, actsColumns, "made_at", "state", "sentence", "maker", "reason", "note"), list)
	})
}

type actsShow struct {
	common
	ID string `arg:"" help:"Id of the act."`
}

// Run shows an act.
func (c *actsShow) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		act, err := o.approvals().Get(e.ctx, c.ID)
		if err != nil {
			return err
		}
		columns := append(actsColumns[:len(actsColumns):len(actsColumns)], column[changes.Request]{"checked_by", func(a changes.Request) any {
			var by []string
			for _, check := range a.Checks {
				by = append(by, check.Name)
			}
			return by
		}})
		return printOne(e.stdout, c.Output, columns, act)
	})
}
