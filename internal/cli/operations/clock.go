package operations

import (
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/timekeeping"
)

// Clock holds the commands of makola clock.
type Clock struct {
	Steps  clockSteps  `cmd:"" help:"List changes of servers' clocks, newest first."`
	Accept clockAccept `cmd:"" help:"Accept the clock of this machine. Use it if a server on SQLite refuses money because its clock is behind the newest row."`
}

var clockColumns = []frame.Column[timekeeping.Step]{
	{Name: "at", Value: func(s timekeeping.Step) any { return s.At }},
	{Name: "node", Value: func(s timekeeping.Step) any { return s.Node }},
	{Name: "by", Value: func(s timekeeping.Step) any {
		if s.By == 0 {
			return "accepted"
		}
		return s.By.String()
	}},
	{Name: "actor", Value: func(s timekeeping.Step) any { return s.Actor }},
	{Name: "reason", Value: func(s timekeeping.Step) any { return s.Reason }},
}

type clockSteps struct {
	frame.Common
	Limit frame.Count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run lists.
func (c *clockSteps) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		list, err := timekeeping.List(e.Ctx, o.DB, time.Unix(0, 0), int(c.Limit))
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, clockColumns, list)
	})
}

type clockAccept struct {
	frame.Common
	frame.Reasoned
}

// Run stores the acceptance, with its entry in the audit log.
func (c *clockAccept) Run(e *frame.Env) error {
	reason := strings.TrimSpace(c.Reason)
	if reason == "" {
		return problem.Field("reason", "is required")
	}
	return c.With(e, func(o *frame.Opened) error {
		newest, err := app.NewestRow(e.Ctx, o.DB)
		if err != nil {
			return err
		}
		err = o.Change(e.Ctx, audit.Entry{Action: "clock.accept", Reason: reason}, func(tx *db.Tx) (any, error) {
			now := o.Clock.Now()
			timekeeping.Accept(tx, now, newest, o.Actor, reason)
			return map[string]any{"clock": now}, nil
		})
		if err == nil {
			_, err = fmt.Fprintf(e.Stderr, "Accepted. Servers accept money requests again within %v\n", timekeeping.LookEvery)
		}
		return err
	})
}
