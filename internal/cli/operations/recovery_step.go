package operations

import (
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

func showRecovery(e *frame.Env, o *frame.Opened, format string) error {
	v, err := recoveryStands(e.Ctx, o)
	if err != nil {
		return err
	}
	if v.Lasts() && v.noJournal {
		e.Warn(fmt.Sprintf("No journal from before the recovery at %s, so the lost changes are unknown. "+
			"Copy acts.jsonl of the old data folder there, or check every key and person with makola recovery access.", o.Journal.Path()))
	}
	return frame.PrintOne(e.Stdout, format, recoveryColumns, v)
}

// recoveryStep is a command that performs a step of the recovery.
type recoveryStep struct {
	frame.Common
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// run makes the step with its audit entry, and prints the new state.
func (c *recoveryStep) run(e *frame.Env, entry audit.Entry, step func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error) error {
	if strings.TrimSpace(c.Reason) == "" {
		return problem.Field("reason", "is required")
	}
	entry.Reason = c.Reason
	return c.With(e, func(o *frame.Opened) error {
		if err := step(o, o.Recovery(), o.Audited(entry)); err != nil {
			return err
		}
		return showRecovery(e, o, c.Output)
	})
}
