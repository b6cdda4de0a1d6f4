package operations

import (
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// Recovery holds the commands of makola recovery.
type Recovery struct {
	Status  recoveryStatus  `cmd:"" help:"Show the state of the recovery, its remaining work, and the changes of operators that the database lost."`
	Begin   recoveryBegin   `cmd:"" help:"Begin a recovery if the database went back in time and servers cannot detect it, such as after a snapshot of the whole machine."`
	Access  recoveryAccess  `cmd:"" help:"List the keys and people to check before customers are admitted."`
	Open    recoveryOpen    `cmd:"" help:"Admit customers, and apply the lost changes of operators again."`
	Skip    recoverySkip    `cmd:"" help:"Skip a provider that is lost for good: its payments continue without its answer."`
	Allow   recoveryAllow   `cmd:"" help:"Allow an account to send campaigns again, and to buy without a reference or Idempotency-Key."`
	Dismiss recoveryDismiss `cmd:"" help:"Remove a conflict from the list after you booked the provider's payment by hand."`
	Claim   recoveryClaim   `cmd:"" help:"Look up payments from a provider's statement. A payment that the provider confirms is adopted, and never sent."`
	Claims  recoveryClaims  `cmd:"" help:"List the claims and their outcomes."`
	End     recoveryEnd     `cmd:"" help:"End the recovery, once nothing is open."`
}

type recoveryStatus struct{ frame.Common }

// Run prints the state.
func (c *recoveryStatus) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return showRecovery(e, o, c.Output) })
}

type recoveryBegin struct {
	recoveryStep
	Since time.Time `name:"since" placeholder:"TIME" help:"Time after which changes may be lost, such as 2026-03-03T09:00:00Z. Leave it out if the time is unknown."`
}

// Run begins a recovery, closed.
func (c *recoveryBegin) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{Action: "recovery.begin"}, func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Begin(e.Ctx, "an operator began it", c.Since, c.Reason, o.Actor, audit, func(tx *db.Tx) error {
			lease.EndAll(tx)
			batch.RecoveryBegan(tx, o.Clock)
			compose.RecoveryBegan(tx)
			return nil
		})
	})
}

type recoveryOpen struct {
	recoveryStep
	ConfirmAccess string `name:"confirm-access" placeholder:"CODE" help:"Confirm that you checked the keys and people of makola recovery access, by the code that it prints."`
}

// Run lets customers in.
func (c *recoveryOpen) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{Action: "recovery.open"}, func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		v, err := recoveryStands(e.Ctx, o)
		if err == nil && v.Closed() {
			err = v.access.confirmed(c.ConfirmAccess)
		}
		if err != nil {
			return err
		}
		return r.Open(e.Ctx, c.Reason, o.Actor, audit)
	})
}

type recoverySkip struct {
	recoveryStep
	Rail string `arg:"" help:"Name of the provider, such as mtn or hubtel."`
	Mode string `name:"mode" enum:"test,live" default:"live" help:"test or live money."`
}

// Run lets payments continue without the answer of a lost provider.
func (c *recoverySkip) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{Action: "recovery.skip", Subject: c.Rail + "/" + c.Mode}, func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Skip(e.Ctx, c.Rail, c.Mode, c.Reason, o.Actor, audit)
	})
}

type recoveryAllow struct {
	recoveryStep
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
}

// Run allows an account's campaigns and purchases.
func (c *recoveryAllow) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{}, func(o *frame.Opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		return r.Allow(e.Ctx, t.ID, c.Reason, o.Actor, o.Audited(audit.Entry{Action: "recovery.allow", Tenant: t.ID, Subject: t.ID, Reason: c.Reason}))
	})
}

type recoveryDismiss struct {
	recoveryStep
	Tenant    string `arg:"" name:"account" help:"Id or unique name of the account."`
	Reference string `arg:"" help:"The account's reference, as in the list of conflicts."`
}

// Run removes a conflict from the list.
func (c *recoveryDismiss) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{}, func(o *frame.Opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.Tenant(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		return r.Dismiss(e.Ctx, t.ID, c.Reference, o.Audited(audit.Entry{Action: "recovery.dismiss", Tenant: t.ID, Subject: c.Reference, Reason: c.Reason}))
	})
}

type recoveryEnd struct {
	recoveryStep
	SignFloats string `name:"sign-floats" required:"" placeholder:"TEXT" help:"Confirm that the floats of makola float show agree with the providers' balances. State the source of the balances."`
}

// Run ends the recovery.
func (c *recoveryEnd) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{}, func(o *frame.Opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		v, err := recoveryStands(e.Ctx, o)
		if err != nil {
			return err
		}
		var left []string
		if v.unsettled > 0 {
			left = append(left, fmt.Sprintf("%d payments from before the recovery are open and not in makola payouts stuck yet", v.unsettled))
		}
		if n := len(v.conflicts); n > 0 {
			left = append(left, fmt.Sprintf("%d conflicts are unresolved", n))
		}
		waiting, err := o.Recovery().Waiting(e.Ctx)
		if err != nil {
			return err
		}
		if n := len(waiting); n > 0 {
			left = append(left, fmt.Sprintf("%d claims wait for providers", n))
		}
		if strings.TrimSpace(c.SignFloats) == "" {
			left = append(left, "the floats are not confirmed")
		}
		undecided, err := batch.Undecided(e.Ctx, o.DB)
		if err != nil {
			return err
		}
		if undecided > 0 {
			left = append(left, fmt.Sprintf("%d rows of paused batches are neither sent nor cancelled", undecided))
		}
		if len(left) > 0 {
			return problem.New(problem.Forbidden, "recovery_unfinished", "The recovery cannot end yet: "+strings.Join(left, ", "))
		}
		entry := audit.Entry{Action: "recovery.end", Reason: c.Reason, Details: map[string]any{"floats": c.SignFloats}}
		return r.End(e.Ctx, c.Reason, o.Actor, o.Audited(entry))
	})
}

type recoveryAccess struct{ frame.Common }

// Run prints the list and the code that confirms it.
func (c *recoveryAccess) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		v, err := recoveryStands(e.Ctx, o)
		if err != nil {
			return err
		}
		if err := frame.PrintAll(e.Stdout, c.Output, accessColumns, v.access.rows); err != nil || len(v.access.rows) == 0 {
			return err
		}
		fmt.Fprintf(e.Stderr, "makola: Once you have checked each of these %d: makola recovery open --confirm-access %s\n", len(v.access.rows), v.access.code())
		return nil
	})
}
