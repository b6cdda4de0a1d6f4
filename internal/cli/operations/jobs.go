package operations

import (
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/jobs"
)

// Jobs holds the commands of makola jobs.
type Jobs struct {
	List  jobsList  `cmd:"" help:"List unfinished jobs, oldest first."`
	Dead  jobsDead  `cmd:"" help:"List dead letters: jobs that were given up."`
	Rerun jobsRerun `cmd:"" help:"Run a dead letter again. A server starts it within seconds."`
	Depth jobsDepth `cmd:"" help:"Count jobs by kind."`
}

type jobsFlags struct {
	frame.Common
	Kind    string      `name:"kind" help:"Kind of the jobs."`
	Subject string      `name:"subject" placeholder:"ID" help:"Id of the payment, campaign or event of the job."`
	After   string      `name:"after" placeholder:"ID" help:"List jobs that come after the job with this id."`
	Limit   frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

func (c *jobsFlags) list(e *frame.Env, dead bool) error {
	return c.With(e, func(o *frame.Opened) error {
		list, err := o.Jobs().List(e.Ctx, jobs.Filter{Kind: c.Kind, Subject: c.Subject, Dead: dead, After: c.After, Limit: int(c.Limit)})
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, jobColumns(c.Output, dead), list)
	})
}

func jobColumns(format string, dead bool) []frame.Column[jobs.Listed] {
	columns := []frame.Column[jobs.Listed]{
		{Name: "id", Value: func(j jobs.Listed) any { return j.ID }},
		{Name: "kind", Value: func(j jobs.Listed) any { return j.Kind }},
		{Name: "subject", Value: func(j jobs.Listed) any { return j.Subject }},
		{Name: "node", Value: func(j jobs.Listed) any { return j.Node }},
		{Name: "run_at", Value: func(j jobs.Listed) any { return j.RunAt }},
		{Name: "tries", Value: func(j jobs.Listed) any { return int64(j.Tries) }},
		{Name: "created_at", Value: func(j jobs.Listed) any { return j.CreatedAt }},
		{Name: "error", Value: func(j jobs.Listed) any { return j.LastError }},
	}
	if dead {
		columns = append(columns, frame.Column[jobs.Listed]{Name: "dead_at", Value: func(j jobs.Listed) any { return j.DeadAt }})
	}
	if format != "table" {
		columns = append(columns, frame.Column[jobs.Listed]{Name: "payload", Value: func(j jobs.Listed) any {
			if len(j.Payload) == 0 {
				return nil
			}
			return j.Payload
		}})
	}
	return columns
}

type jobsList struct{ jobsFlags }

// Run lists the jobs without dead letters.
func (c *jobsList) Run(e *frame.Env) error { return c.list(e, false) }

type jobsDead struct{ jobsFlags }

// Run lists the dead letters.
func (c *jobsDead) Run(e *frame.Env) error { return c.list(e, true) }

type jobsRerun struct {
	frame.Common
	frame.Writing
	ID     string `arg:"" help:"Id of the dead letter."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Aliases has the commands that request a change of one kind, by command name.
var Aliases = map[string]frame.Alias{"jobs rerun": {Kind: changes.KindRerun, Fields: map[string]string{"id": "job"}, Show: showRerun}}

// showRerun prints the id of a job that runs again.
func showRerun(q *frame.Ask) error {
	return frame.PrintOne(q.E.Stdout, q.Output, []frame.Column[string]{{Name: "rerun", Value: func(id string) any { return id }}}, q.Values["job"])
}

type jobsDepth struct{ frame.Common }

// Run counts the jobs.
func (c *jobsDepth) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		depths, err := o.Jobs().Depth(e.Ctx)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[jobs.Depth]{
			{Name: "kind", Value: func(d jobs.Depth) any { return d.Kind }},
			{Name: "alive", Value: func(d jobs.Depth) any { return d.Alive }},
			{Name: "due", Value: func(d jobs.Depth) any { return d.Due }},
			{Name: "dead", Value: func(d jobs.Depth) any { return d.Dead }},
			{Name: "oldest", Value: func(d jobs.Depth) any { return d.Oldest }},
		}, depths)
	})
}
