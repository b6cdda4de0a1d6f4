package accounts

import (
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Approvals holds the commands of makola approvals.
type Approvals struct {
	List   approvalsList   `cmd:"" help:"List change requests, newest first. Approve them in the console."`
	Kinds  approvalsKinds  `cmd:"" help:"List the kinds of changes that makola change can request, with their fields."`
	Show   approvalsShow   `cmd:"" help:"Show a change request with its requester and its approvers."`
	Policy approvalsPolicy `cmd:"" help:"Show how many approvals each kind of change needs."`
}

type approvalsList struct {
	frame.Common
	State  string      `name:"state" enum:"waiting,done,rejected,withdrawn,expired,failed," default:"" placeholder:"STATE" help:"State of the requests, such as waiting."`
	Tenant string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account that the entries are about, by id or unique name."`
	Before string      `name:"before" placeholder:"ID" help:"List requests older than the request with this id."`
	Limit  frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

// Run lists change requests.
func (c *approvalsList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.Approvals().List(e.Ctx, changes.Filter{AllPlaces: true, Tenant: c.Tenant, State: changes.State(c.State), Before: c.Before, Limit: int(c.Limit)})
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, frame.RequestColumns, "made_at", "state", "sentence", "maker", "reason", "note"), list)
	})
}

type approvalsShow struct {
	frame.Common
	ID string `arg:"" help:"Id of the change request."`
}

// Run shows a change request.
func (c *approvalsShow) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		request, err := o.Approvals().Get(e.Ctx, c.ID)
		if err != nil {
			return err
		}
		columns := append(frame.RequestColumns[:len(frame.RequestColumns):len(frame.RequestColumns)], frame.Column[changes.Request]{Name: "checked_by", Value: func(a changes.Request) any {
			var by []string
			for _, check := range a.Checks {
				by = append(by, check.Name)
			}
			return by
		}})
		return frame.PrintOne(e.Stdout, c.Output, columns, request)
	})
}

// Change holds the commands of makola change.
type Change struct {
	frame.Common
	frame.Reasoned
	linkFlags
	Kind string            `arg:"" help:"Kind of the change, such as wallet.fund. makola approvals kinds lists all with their fields."`
	Set  map[string]string `name:"set" mapsep:"none" placeholder:"FIELD=VALUE" help:"Value of a field; --FIELD VALUE is the same. May be repeated."`
}

// Run requests the change and prints the outcome of the request.
func (c *Change) Run(e *frame.Env) error {
	if _, known := changes.FormOf(c.Kind); !known {
		return problem.Field("kind", "is unknown. makola approvals kinds lists all kinds")
	}
	return frame.Alias{Kind: c.Kind, Fixed: c.Set, Sealed: true, Show: func(q *frame.Ask) error {
		columns := frame.Narrow(c.Output, frame.RequestColumns, "id", "kind", "state", "sentence")
		columns = append(columns[:len(columns):len(columns)], c.made(e, q.Request)...)
		return frame.PrintOne(e.Stdout, c.Output, columns, q.Request)
	}}.Request(e, &c.Common, map[string]string{"reason": c.Reason})
}

// made returns the columns of a change's secret result: the text of a key, or a link with its code. They are shown once.
func (c *Change) made(e *frame.Env, r changes.Request) []frame.Column[changes.Request] {
	switch {
	case r.Secret == "":
		return nil
	case changes.HasLink(r):
		warnOfLink(e)
		return []frame.Column[changes.Request]{
			{Name: "link", Value: func(r changes.Request) any { return c.link(identity.Invitation{Token: r.Secret}) }},
			{Name: "code", Value: func(r changes.Request) any { return r.Code }},
		}
	}
	return []frame.Column[changes.Request]{{Name: "secret", Value: func(r changes.Request) any { return r.Secret }}}
}

// FieldFlags writes --FIELD VALUE of a change as --set FIELD=VALUE.
func FieldFlags(args []string) (set []string) {
	if len(args) == 0 || args[0] != "change" {
		return args
	}
	var form changes.Form
	for _, word := range args {
		if of, is := changes.FormOf(word); is {
			form = of
		}
	}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		field := frame.FieldOf(form, name)
		switch {
		case !strings.HasPrefix(args[i], "--") || field == "":
			set = append(set, args[i])
			continue
		case !joined && i+1 < len(args):
			i++
			value = args[i]
		}
		set = append(set, "--set="+field+"="+value)
	}
	return set
}

// fieldOf is a field of a kind in the output of approvals kinds.
type fieldOf struct {
	changes.Form
	changes.Field
}

type approvalsKinds struct{ frame.Common }

// Run lists the kinds that makola change requests, with their fields.
func (c *approvalsKinds) Run(e *frame.Env) error {
	var list []fieldOf
	for _, form := range changes.Forms() {
		for _, field := range form.Fields {
			list = append(list, fieldOf{form, field})
		}
	}
	return frame.PrintAll(e.Stdout, c.Output, []frame.Column[fieldOf]{
		{Name: "kind", Value: func(f fieldOf) any { return f.Kind }},
		{Name: "title", Value: func(f fieldOf) any { return f.Title }},
		{Name: "field", Value: func(f fieldOf) any { return f.Name }},
		{Name: "required", Value: func(f fieldOf) any { return f.Required }},
		{Name: "values", Value: func(f fieldOf) any { return strings.Join(f.Options, "|") }},
		{Name: "hint", Value: func(f fieldOf) any { return f.Hint }},
	}, list)
}

type approvalsPolicy struct {
	frame.Common
	Tenant string `name:"account" aliases:"tenant" placeholder:"ID" help:"Account, by id or unique name: shows its policy, and the installation's policy for requests about it. Default: the installation's policy."`
}

// inForceAt is the policy in force at a place in the output of approvals policy.
type inForceAt struct {
	place string
	changes.InForce
}

var policyColumns = []frame.Column[inForceAt]{
	{Name: "place", Value: func(i inForceAt) any { return i.place }},
	{Name: "kind", Value: func(i inForceAt) any { return i.Kind }},
	{Name: "title", Value: func(i inForceAt) any { return i.Title }},
	{Name: "by_key", Value: func(i inForceAt) any { return i.ByKey }},
	{Name: "from", Value: func(i inForceAt) any { return i.From }},
	{Name: "in_force", Value: func(i inForceAt) any { return i.Text }},
	{Name: "alone", Value: func(i inForceAt) any { return i.Alone }},
	{Name: "requesters", Value: func(i inForceAt) any { return i.Requesters }},
}

// Run prints the policy in force, by the function that decides about each request.
func (c *approvalsPolicy) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		places := []string{roles.Installation}
		if c.Tenant != "" {
			places = append(places, c.Tenant)
		}
		var list []inForceAt
		for _, place := range places {
			rows, err := o.Changes(config.Secret{}).InForceAt(e.Ctx, place, c.Tenant)
			if err != nil {
				return err
			}
			for _, one := range rows {
				list = append(list, inForceAt{map[bool]string{true: "installation", false: place}[place == roles.Installation], one})
			}
		}
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, policyColumns, "place", "kind", "by_key", "in_force", "alone", "requesters"), list)
	})
}
