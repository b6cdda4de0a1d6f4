package frame

import (
	"context"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/timekeeping"
)

// errNobody refuses a change in production without a token or --break-glass.
func errNobody() error {
	return problem.New(problem.Forbidden, "token_needed", "Nothing was done: in production a change needs a personal token. Create one in the console (Your account), "+
		"and set it with "+config.EnvToken+" or --token-file. In an emergency: --break-glass --reason TEXT")
}

// authorise determines the caller, and refuses a caller without permission. Without a token the caller is the user of
// this machine, whose requests need no approver: in development, before there are people, and with --break-glass.
func (o *Opened) authorise(e *Env) (err error) {
	if o.production, err = o.Installation.Production(e.Ctx); err != nil {
		return err
	}
	a := e.Authority
	if a == nil {
		return nil
	}
	if err := o.journalReady(); err != nil {
		return err
	}
	if o.production && moneyCommands[a.command] {
		newest := func(ctx context.Context) (time.Time, error) { return app.NewestRow(ctx, o.DB) }
		if err := timekeeping.Check(e.Ctx, o.DB, o.Clock, newest); err != nil {
			return err
		}
	}
	o.reason = a.reason
	if a.breakGlass {
		if a.tokenFile != "" {
			return Usage("--break-glass and --token-file exclude each other: leave one out")
		}
		if a.reason == "" {
			return Usage("--break-glass needs --reason TEXT")
		}
		o.Actor = audit.BreakGlass + LoggedIn()
		o.By.Machine = o.Actor
		return nil
	}
	token, err := a.token()
	if err != nil {
		return err
	}
	if token == "" {
		people, err := o.People.SetUp(e.Ctx)
		if err == nil && people && o.production {
			err = errNobody()
		}
		return err
	}
	v, err := o.People.Bearer(e.Ctx, token)
	if err != nil {
		return err
	}
	o.By = changes.By{Visitor: v, Origin: Origin(), Place: roles.Installation}
	o.Actor, o.permission = v.Person.Email, Needs[a.command]
	if a.reason == "" {
		return problem.Field("reason", "is required with a personal token")
	}
	return o.DB.Write(e.Ctx, o.allow)
}

// allow refuses, in tx, a person whose token or role does not allow the command now.
func (o *Opened) allow(tx *db.Tx) error {
	return o.Approvals().Allow(tx, o.By, o.permission)
}
