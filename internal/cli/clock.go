package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/timekeeping"
)

type clockCommands struct {
	Steps  clockSteps  `cmd:"" help:"List when the clocks of servers were set, newest first."`
	Accept clockAccept `cmd:"" help:"Accept the clock of this machine as it is, where a server on SQLite refuses money because its clock is behind the newest row."`
}

var clockColumns = []column[timekeeping.Step]{
	{"at", func(s timekeeping.Step) any { return s.At }},
	{"node", func(s timekeeping.Step) any { return s.Node }},
	{"by", func(s timekeeping.Step) any {
		if s.By == 0 {
			return "accepted"
		}
		return s.By.String()
	}},
	{"actor", func(s timekeeping.Step) any { return s.Actor }},
	{"reason", func(s timekeeping.Step) any { return s.Reason }},
}

type clockSteps struct {
	common
	Limit count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run lists.
func (c *clockSteps) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		list, err := timekeeping.List(e.ctx, o.db, time.Unix(0, 0), int(c.Limit))
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, clockColumns, list)
	})
}

type clockAccept struct {
	common
	reasoned
}

// Run stores the acceptance, with its entry in the audit log.
func (c *clockAccept) Run(e *env) error {
	reason := strings.TrimSpace(c.Reason)
	if reason == "" {
		return problem.Field("reason", "is required")
	}
	return c.with(e, func(o *opened) error {
		newest, err := app.NewestRow(e.ctx, o.db)
		if err != nil {
			return err
		}
		err = o.act(e.ctx, audit.Entry{Action: "clock.accept", Reason: reason}, func(tx *db.Tx) (any, error) {
			now := o.clock.Now()
			timekeeping.Accept(tx, now, newest, o.actor, reason)
			return map[string]any{"clock": now}, nil
		})
		if err == nil {
			_, err = fmt.Fprintf(e.stderr, "Accepted: servers take money again within %v\n", timekeeping.LookEvery)
		}
		return err
	})
}
