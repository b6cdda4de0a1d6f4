package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

type actsCommands struct {
	List  actsList  `cmd:"" help:"List acts, newest first. They are checked in the console alone."`
	Kinds actsKinds `cmd:"" help:"List the kinds of changes that makola change requests, with their fields."`
	Show  actsShow  `cmd:"" help:"Show one act with who made it and who checked it."`
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

type changeCommand struct {
	common
	reasoned
	Kind string            `arg:"" help:"Kind of change, such as wallet.fund. List kinds and their fields with makola acts kinds."`
	Set  map[string]string `name:"set" mapsep:"none" placeholder:"FIELD=VALUE" help:"Value of a field; --FIELD VALUE is the same. Repeat for more."`
}

// Run requests the change, and prints what became of the request.
func (c *changeCommand) Run(e *env) error {
	forms := changes.Forms()
	n := slices.IndexFunc(forms, func(f changes.Form) bool { return f.Kind == c.Kind })
	if n < 0 {
		return problem.Field("kind", "must be one of those that makola acts kinds lists")
	}
	if c.Kind == changes.KindInvite || c.Kind == changes.KindReset {
		return problem.Field("kind", "prints a link: use makola people invite or makola people reset")
	}
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		for _, name := range []string{changes.FieldTenant, "from", "to"} {
			id := c.Set[name]
			if err := o.known(e.ctx, &id); err != nil {
				return err
			}
			if id != "" {
				c.Set[name] = id
			}
		}
		a := o.changes(secret)
		a.Payments, a.Messaging = o.payments(secret), o.messaging()
		defer a.Payments.Close()
		id := newID()
		if reference := c.Set["reference"]; reference != "" && o.by.Machine == "" {
			waiting, found, err := a.WaitingUnder(e.ctx, c.Kind, c.Set[changes.FieldTenant], reference)
			if err != nil {
				return err
			}
			if found {
				id = waiting.ID
			}
		}
		r, err := a.Do(e.ctx, o.by, c.Kind, id, c.Set, c.Reason)
		return o.asked(e, c.Output, r, err, func(context.Context) error {
			columns := narrow(c.Output, actsColumns, "id", "kind", "state", "sentence")
			if r.Secret != "" { // the text of a key is shown this once
				columns = append(columns[:len(columns):len(columns)], column[changes.Request]{"secret", func(r changes.Request) any { return r.Secret }})
			}
			return printOne(e.stdout, c.Output, columns, r)
		})
	})
}

// fieldFlags writes --FIELD VALUE of a change as --set FIELD=VALUE.
func fieldFlags(args []string) (set []string) {
	if len(args) == 0 || args[0] != "change" {
		return args
	}
	var fields []string
	for _, f := range changes.Forms() {
		if slices.Contains(args, f.Kind) {
			for _, field := range f.Fields {
				fields = append(fields, field.Name)
			}
		}
	}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch {
		case !strings.HasPrefix(args[i], "--") || !slices.Contains(fields, strings.ReplaceAll(name, "-", "_")):
			set = append(set, args[i])
			continue
		case !joined && i+1 < len(args):
			i++
			value = args[i]
		}
		set = append(set, "--set="+strings.ReplaceAll(name, "-", "_")+"="+value)
	}
	return set
}

// fieldOf is a field of a kind, as acts kinds prints it.
type fieldOf struct {
	changes.Form
	changes.Field
}

type actsKinds struct{ common }

// Run lists the kinds that makola change requests, with their fields.
func (c *actsKinds) Run(e *env) error {
	var list []fieldOf
	for _, form := range changes.Forms() {
		for _, field := range form.Fields {
			list = append(list, fieldOf{form, field})
		}
	}
	return printAll(e.stdout, c.Output, []column[fieldOf]{
		{"kind", func(f fieldOf) any { return f.Kind }},
		{"title", func(f fieldOf) any { return f.Title }},
		{"field", func(f fieldOf) any { return f.Name }},
		{"required", func(f fieldOf) any { return f.Required }},
		{"values", func(f fieldOf) any { return strings.Join(f.Options, "|") }},
		{"hint", func(f fieldOf) any { return f.Hint }},
	}, list)
}
