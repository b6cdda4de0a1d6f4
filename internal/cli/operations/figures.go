package operations

import (
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/statement"
)

// Figures holds the commands of makola figures.
type Figures struct {
	Status  figuresStatus  `cmd:"" help:"Show up to when the figures of pages are complete."`
	Rebuild figuresRebuild `cmd:"" help:"Count the figures of pages again from the payments. Servers keep running."`
}

// completeness is the time up to which the figures are complete.
type completeness struct{ to, now time.Time }

var completenessColumns = []frame.Column[completeness]{
	{Name: "complete_to", Value: func(c completeness) any { return c.to }},
	{Name: "behind_seconds", Value: func(c completeness) any {
		if c.to.IsZero() {
			return nil // the figures are counted for the first time
		}
		return int64(max(0, c.now.Sub(c.to)).Seconds())
	}},
}

type figuresStatus struct{ frame.Common }

// Run prints up to when the figures are complete.
func (c *figuresStatus) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return printCompleteness(e, o, c.Output) })
}

type figuresRebuild struct {
	frame.Common
	frame.Reasoned
}

// Run counts the figures again. Servers complete an interrupted run.
func (c *figuresRebuild) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Change(e.Ctx, audit.Entry{Action: "figures.rebuild", Reason: c.Reason}, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		if err := figures.New(o.DB, o.Clock).Rebuild(e.Ctx); err != nil {
			return err
		}
		if err := o.Ledger.SumHoursAgain(e.Ctx); err != nil {
			return err
		}
		if err := statement.SumAgain(e.Ctx, o.DB); err != nil {
			return err
		}
		return printCompleteness(e, o, c.Output)
	})
}

func printCompleteness(e *frame.Env, o *frame.Opened, output string) error {
	to, err := figures.New(o.DB, o.Clock).CountedTo(e.Ctx)
	if err != nil {
		return err
	}
	return frame.PrintAll(e.Stdout, output, completenessColumns, []completeness{{to, o.Clock.Now()}})
}
