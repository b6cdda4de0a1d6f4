package accounts

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// People holds the commands of makola people.
type People struct {
	Create  peopleCreate  `cmd:"" help:"Create a person with a role, and print a link and a code to choose a password. Both work once, for 24 hours."`
	List    peopleList    `cmd:"" help:"List people with their roles and sign-in methods."`
	Invite  peopleInvite  `cmd:"" help:"Give a person a role, and create the person if needed. A person without a password gets a link and a code."`
	Role    peopleRole    `cmd:"" help:"Change or remove a person's role at one place. It applies within a second."`
	Disable peopleDisable `cmd:"" help:"Disable a person. Sessions end within a second."`
	Enable  peopleEnable  `cmd:"" help:"Enable a disabled person."`
	Reset   peopleReset   `cmd:"" help:"Remove a person's password, second factor and recovery codes, end the sessions, and print a new link and code."`
}

// peopleFlags are the flags of every change of a person.
type peopleFlags struct {
	frame.Common
	frame.Writing
	Reason string `name:"reason" placeholder:"TEXT" required:"" help:"Reason, for the audit log."`
}

// linkFlags are the flags of commands that print a link.
type linkFlags struct {
	PublicURL string `name:"public-url" env:"MAKOLA_PUBLIC_URL" placeholder:"URL" help:"Public URL of the server, for the link. Without it the link is a path."`
}

// link is the URL of the page on which the person opens an invitation.
func (f linkFlags) link(by identity.Invitation) string {
	return strings.TrimRight(f.PublicURL, "/") + "/first?" + url.Values{"t": {by.Token}}.Encode()
}

// placeFlags select the place of a role: the installation or an account.
type placeFlags struct {
	Role   string `name:"role" placeholder:"ROLE" required:"" help:"Role, such as owner or support. docs/people.md lists the roles."`
	Tenant string `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the role, by id or unique name. Without it the role is at the installation."`
}

// invited is a printed person, with the link and the code of an invitation.
type invited struct {
	identity.Person
	link, code string
}

func (i invited) print(e *frame.Env, output string) error {
	if i.link != "" {
		warnOfLink(e)
	}
	return frame.PrintOne(e.Stdout, output, []frame.Column[invited]{
		{Name: "id", Value: func(i invited) any { return i.ID }},
		{Name: "email", Value: func(i invited) any { return i.Email }},
		{Name: "name", Value: func(i invited) any { return i.Name }},
		{Name: "link", Value: func(i invited) any { return i.link }},
		{Name: "code", Value: func(i invited) any { return i.code }},
	}, i)
}

// warnOfLink prints how to pass on a link and its code.
func warnOfLink(e *frame.Env) {
	if e.Stderr == nil {
		return
	}
	fmt.Fprintf(e.Stderr, "Send the link to the person, and tell them the code another way, such as by phone. Both work once, within %d hours; five wrong codes revoke both. Whoever has both can sign in as this person.\n"+
		"Nobody else approved this. The person cannot approve your requests until another person has approved a reset for them.\n", int(identity.InvitationLasts/time.Hour))
}

type peopleCreate struct {
	frame.Common
	linkFlags
	placeFlags
	frame.Writing
	Email  string `name:"email" required:"" placeholder:"ADDRESS" help:"E-mail address that the person signs in with."`
	Name   string `name:"name" placeholder:"NAME" help:"Name that others see. Default: the part of the address before the @."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type peopleInvite struct {
	peopleFlags
	linkFlags
	placeFlags
	Email string `arg:"" help:"E-mail address of the person."`
	Name  string `name:"name" placeholder:"NAME" help:"Name of a new person."`
}

// prepareNewPerson is prepareInvitation for a person who was not invited before.
func prepareNewPerson(q *frame.Ask) error {
	if err := prepareInvitation(q); err != nil {
		return err
	}
	_, _, err := findPerson(q.E.Ctx, q.O, q.Values["email"])
	if err == nil {
		return problem.New(problem.Duplicate, "person_exists", "A person with this e-mail address exists. makola people invite adds a role, makola people reset prints a new link")
	}
	if problem.Is(err, problem.NotFound) {
		err = nil
	}
	return err
}

// prepareInvitation uses the e-mail address as the name of a person without a name.
func prepareInvitation(q *frame.Ask) error {
	if q.Values["name"] == "" {
		q.Values["name"], _, _ = strings.Cut(q.Values["email"], "@")
	}
	return q.Accounts()
}

// findPerson finds a person by the e-mail address, with the roles.
func findPerson(ctx context.Context, o *frame.Opened, email string) (p identity.Person, memberships []identity.Membership, err error) {
	err = o.DB.Write(ctx, func(tx *db.Tx) error {
		p, memberships, err = o.People.Locked(tx, email)
		return err
	})
	return p, memberships, err
}

// showPerson prints the person of a change, with the link and the code that it made.
func showPerson(q *frame.Ask) error {
	p, _, err := findPerson(q.E.Ctx, q.O, q.Values["email"])
	if err != nil {
		return err
	}
	answer := invited{Person: p}
	if q.Request.Secret != "" {
		links := linkFlags{PublicURL: q.Line["public-url"]}
		answer.link, answer.code = links.link(identity.Invitation{Token: q.Request.Secret}), q.Request.Code
	}
	return answer.print(q.E, q.Output)
}

type peopleRole struct {
	peopleFlags
	placeFlags
	Email string `arg:"" help:"E-mail address of the person."`
}

// prepareRole reads the person's role at the place, which the change replaces.
func prepareRole(q *frame.Ask) error {
	if err := q.Accounts(); err != nil {
		return err
	}
	_, held, err := findPerson(q.E.Ctx, q.O, q.Values["email"])
	q.Values["before"] = "none"
	for _, m := range held {
		if m.Tenant == q.Values[changes.FieldTenant] {
			q.Values["before"] = string(m.Role)
		}
	}
	return err
}

type peopleDisable struct {
	peopleFlags
	Email string `arg:"" help:"E-mail address of the person."`
}

type peopleEnable struct {
	peopleFlags
	Email string `arg:"" help:"E-mail address of the person."`
}

type peopleReset struct {
	peopleFlags
	linkFlags
	Email string `arg:"" help:"E-mail address of the person."`
}

type peopleList struct {
	frame.Common
	Limit frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

// Run lists people.
func (c *peopleList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		list, err := o.People.People(e.Ctx, int(c.Limit))
		if err != nil {
			return err
		}
		var ids []string
		for _, l := range list {
			for _, m := range l.Memberships {
				ids = append(ids, m.Tenant)
			}
		}
		names, err := o.Named(e.Ctx, ids)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, frame.Narrow(c.Output, peopleColumns(names), "email", "name", "roles", "password", "factor", "independent", "seen_at", "disabled_at"), list)
	})
}

func peopleColumns(names map[string]string) []frame.Column[identity.Listed] {
	return []frame.Column[identity.Listed]{
		{Name: "id", Value: func(l identity.Listed) any { return l.ID }},
		{Name: "email", Value: func(l identity.Listed) any { return l.Email }},
		{Name: "name", Value: func(l identity.Listed) any { return l.Name }},
		{Name: "roles", Value: func(l identity.Listed) any {
			var held []string
			for _, m := range l.Memberships {
				where := "the installation"
				if m.Tenant != roles.Installation {
					where = names[m.Tenant]
				}
				held = append(held, string(m.Role)+" of "+where)
			}
			return held
		}},
		{Name: "password", Value: func(l identity.Listed) any { return l.HasPassword }},
		{Name: "factor", Value: func(l identity.Listed) any { return l.HasFactor }},
		{Name: "created_at", Value: func(l identity.Listed) any { return l.CreatedAt }},
		{Name: "seen_at", Value: func(l identity.Listed) any { return l.SeenAt }},
		{Name: "disabled_at", Value: func(l identity.Listed) any { return l.DisabledAt }},
		{Name: "invited_by", Value: func(l identity.Listed) any { return l.InvitedBy }},
		{Name: "independent", Value: func(l identity.Listed) any { return l.Sponsor == "" }},
	}
}
