package operations

import (
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// Recovery holds the commands of makola recovery.
type Recovery struct {
	Status  recoveryStatus  `cmd:"" help:"Whether a recovery lasts, what it waits for, and which acts of operators the database has forgotten."`
	Begin   recoveryBegin   `cmd:"" help:"Begin a recovery: the database went back in time in a way that servers cannot see, such as a snapshot of the whole machine."`
	Access  recoveryAccess  `cmd:"" help:"List the keys and people to check before customers are let in."`
	Open    recoveryOpen    `cmd:"" help:"Let customers in: what operators had done is done again."`
	Skip    recoverySkip    `cmd:"" help:"Let payments through without the answer of a provider that is gone for good."`
	Allow   recoveryAllow   `cmd:"" help:"Let a customer's campaigns go, and its purchases that neither a reference nor an Idempotency-Key names."`
	Dismiss recoveryDismiss `cmd:"" help:"Take a conflict off the list: what the provider has done is booked by hand, such as a data package whose price is forgotten."`
	Claim   recoveryClaim   `cmd:"" help:"Have a server look for what a provider's statement has and no client sends again: it is adopted where the provider knows it, and never sent."`
	Claims  recoveryClaims  `cmd:"" help:"List the claims and what became of each."`
	End     recoveryEnd     `cmd:"" help:"End the recovery, when nothing of it is left."`
}

type recoveryStatus struct{ frame.Common }

// Run prints what is known.
func (c *recoveryStatus) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error { return showRecovery(e, o, c.Output) })
}

type recoveryBegin struct {
	recoveryStep
	Since time.Time `name:"since" placeholder:"TIME" help:"What was committed after this moment may be forgotten, such as 2026-03-03T09:00:00Z; absent: not known."`
}

// Run begins a recovery, closed.
func (c *recoveryBegin) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{Action: "recovery.begin"}, func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Begin(e.Ctx, "an operator said so", c.Since, c.Reason, o.Actor, audit, func(tx *db.Tx) error {
			lease.EndAll(tx)
			batch.RecoveryBegan(tx, o.Clock)
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
	Rail string `arg:"" help:"Name of the provider: mtn or hubtel."`
	Mode string `name:"mode" enum:"test,live" default:"live" help:"test or live money."`
}

// Run lets payments through without a provider's answer.
func (c *recoverySkip) Run(e *frame.Env) error {
	return c.run(e, audit.Entry{Action: "recovery.skip", Subject: c.Rail + "/" + c.Mode}, func(o *frame.Opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Skip(e.Ctx, c.Rail, c.Mode, c.Reason, o.Actor, audit)
	})
}

type recoveryAllow struct {
	recoveryStep
	Tenant string `arg:"" help:"Id or unique name of the customer."`
}

// Run lets a customer through.
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
	Tenant    string `arg:"" help:"Id or unique name of the customer."`
	Reference string `arg:"" help:"The customer's reference, as the list of conflicts has it."`
}

// Run takes a conflict off the list.
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
	SignFloats string `name:"sign-floats" required:"" placeholder:"TEXT" help:"What the floats of makola float show were compared with, such as the providers' balances of an hour: they agree, or you answer for the difference."`
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
			left = append(left, fmt.Sprintf("%d payments of before are open and not in payouts stuck yet", v.unsettled))
		}
		if n := len(v.conflicts); n > 0 {
			left = append(left, fmt.Sprintf("%d conflicts wait", n))
		}
		waiting, err := o.Recovery().Waiting(e.Ctx)
		if err != nil {
			return err
		}
		if n := len(waiting); n > 0 {
			left = append(left, fmt.Sprintf("%d claims wait for the providers", n))
		}
		if strings.TrimSpace(c.SignFloats) == "" {
			left = append(left, "the floats are not signed")
		}
		undecided, err := batch.Undecided(e.Ctx, o.DB)
		if err != nil {
			return err
		}
		if undecided > 0 {
			left = append(left, fmt.Sprintf("%d rows of batches that the recovery paused are neither sent nor cancelled", undecided))
		}
		if len(left) > 0 {
			return problem.New(problem.Forbidden, "recovery_unfinished", "The recovery is not done: "+strings.Join(left, ", "))
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
		fmt.Fprintf(e.Stderr, "makola: When each of these %d may work: makola recovery open --confirm-access %s\n", len(v.access.rows), v.access.code())
		return nil
	})
}
