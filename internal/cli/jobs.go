package cli

import (
	"context"
	"log/slog"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/jobs"
)

type jobsCommands struct {
	List  jobsList  `cmd:"" help:"List jobs that are not finished, oldest first."`
	Dead  jobsDead  `cmd:"" help:"List dead letters: jobs that were given up."`
	Rerun jobsRerun `cmd:"" help:"Give a dead letter another life. A server takes it within seconds."`
	Depth jobsDepth `cmd:"" help:"Count jobs by kind."`
}

// jobs is the queue as commands use it: it runs nothing, and what it adds is
// for the servers.
func (o *opened) jobs() *jobs.Queue {
	return jobs.New(o.db, o.clock, slog.New(slog.DiscardHandler), jobs.Options{Node: node})
}

type jobsFlags struct {
	common
	Kind    string `name:"kind" help:"Only jobs of this kind."`
	Subject string `name:"subject" placeholder:"ID" help:"Only jobs about this."`
	After   string `name:"after" placeholder:"ID" help:"Only those that follow this job."`
	Limit   count  `name:"limit" default:"100" help:"List at most so many."`
}

func (c *jobsFlags) list(e *env, dead bool) error {
	return c.with(e, func(o *opened) error {
		list, err := o.jobs().List(e.ctx, jobs.Filter{Kind: c.Kind, Subject: c.Subject, Dead: dead, After: c.After, Limit: int(c.Limit)})
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, jobColumns(c.Output, dead), list)
	})
}

func jobColumns(format string, dead bool) []column[jobs.Listed] {
	columns := []column[jobs.Listed]{
		{"id", func(j jobs.Listed) any { return j.ID }},
		{"kind", func(j jobs.Listed) any { return j.Kind }},
		{"subject", func(j jobs.Listed) any { return j.Subject }},
		{"node", func(j jobs.Listed) any { return j.Node }},
		{"run_at", func(j jobs.Listed) any { return j.RunAt }},
		{"tries", func(j jobs.Listed) any { return int64(j.Tries) }},
		{"created_at", func(j jobs.Listed) any { return j.CreatedAt }},
		{"error", func(j jobs.Listed) any { return j.LastError }},
	}
	if dead {
		columns = append(columns, column[jobs.Listed]{"dead_at", func(j jobs.Listed) any { return j.DeadAt }})
	}
	if format != "table" {
		columns = append(columns, column[jobs.Listed]{"payload", func(j jobs.Listed) any {
			if len(j.Payload) == 0 {
				return nil
			}
			return j.Payload
		}})
	}
	return columns
}

type jobsList struct{ jobsFlags }

// Run lists the jobs that are alive.
func (c *jobsList) Run(e *env) error { return c.list(e, false) }

type jobsDead struct{ jobsFlags }

// Run lists the dead letters.
func (c *jobsDead) Run(e *env) error { return c.list(e, true) }

type jobsRerun struct {
	common
	writing
	ID     string `arg:"" help:"Id of the dead letter."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run gives a dead letter another life.
func (c *jobsRerun) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		show := func(context.Context) error {
			return printOne(e.stdout, c.Output, []column[string]{{"rerun", func(id string) any { return id }}}, c.ID)
		}
		r, err := o.changes(config.Secret{}).Rerun(e.ctx, o.by, newID(), c.ID, c.Reason)
		return o.asked(e, c.Output, r, err, show)
	})
}

type jobsDepth struct{ common }

// Run counts the jobs.
func (c *jobsDepth) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		depths, err := o.jobs().Depth(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, []column[jobs.Depth]{
			{"kind", func(d jobs.Depth) any { return d.Kind }},
			{"alive", func(d jobs.Depth) any { return d.Alive }},
			{"due", func(d jobs.Depth) any { return d.Due }},
			{"dead", func(d jobs.Depth) any { return d.Dead }},
			{"oldest", func(d jobs.Depth) any { return d.Oldest }},
		}, depths)
	})
}
