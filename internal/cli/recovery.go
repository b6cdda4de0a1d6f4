package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

type recoveryCommands struct {
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

// recovery is the store of the recovery.
func (o *opened) recovery() *recovery.Recovery {
	return recovery.New(o.db, o.clock, slog.New(slog.DiscardHandler))
}

// recoveryLine says on stderr that a recovery lasts.
func (o *opened) recoveryLine(e *env) error {
	s, err := o.recovery().State(e.ctx)
	if err == nil && s.Lasts() {
		fmt.Fprintf(e.stderr, "makola: A recovery lasts (%s) since %s: %s. See makola recovery status.\n", s.Phase, s.BegunAt.UTC().Format(time.RFC3339), cell(s.Cause))
	}
	return err
}

// recoveryView is what is known of the recovery.
type recoveryView struct {
	recovery.State
	conflicts []recovery.Conflict
	unsettled int64
	forgotten []audit.Noted
	gone      []recovery.Account
	journal   string // where it is, or that it is missing
	noJournal bool
	access    accessReview
}

var recoveryColumns = []column[recoveryView]{
	{"phase", func(v recoveryView) any {
		if v.Phase == recovery.PhaseNone {
			return "none"
		}
		return string(v.Phase)
	}},
	{"cause", func(v recoveryView) any { return v.Cause }},
	{"begun_at", func(v recoveryView) any { return v.BegunAt }},
	{"since", func(v recoveryView) any { return v.Since }},
	{"actor", func(v recoveryView) any { return v.Actor }},
	{"reason", func(v recoveryView) any { return v.Reason }},
	{"skipped", func(v recoveryView) any { rails, _ := v.Exceptions(); return rails }},
	{"allowed", func(v recoveryView) any { _, tenants := v.Exceptions(); return tenants }},
	{"unsettled", func(v recoveryView) any { return v.unsettled }},
	{"conflicts", func(v recoveryView) any {
		return texts(v.conflicts, func(c recovery.Conflict) string {
			return fmt.Sprintf("%s %s %s GHS %s at %s: %s", c.Tenant, c.Kind, c.Reference, money.Pesewas(c.Amount), c.Rail, c.Why)
		})
	}},
	{"forgotten_acts", func(v recoveryView) any {
		return texts(v.forgotten, func(a audit.Noted) string {
			return strings.Join([]string{a.At.Format(time.RFC3339), a.Actor, a.Action, a.Tenant, a.Subject, a.Reason, string(a.Details)}, " ")
		})
	}},
	{"journal", func(v recoveryView) any { return v.journal }},
	{"access_to_confirm", func(v recoveryView) any { return len(v.access.rows) }},
	{"accounts_gone", func(v recoveryView) any {
		return texts(v.gone, func(a recovery.Account) string { return a.Rail + "/" + a.Mode + " " + a.Fingerprint })
	}},
}

func texts[T any](list []T, text func(T) string) []string {
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = text(one)
	}
	return all
}

// recoveryStands reads what is known of the recovery.
func (o *opened) recoveryStands(ctx context.Context) (v recoveryView, err error) {
	r := o.recovery()
	if v.State, err = r.State(ctx); err != nil {
		return v, err
	}
	if v.conflicts, err = r.Conflicts(ctx); err != nil {
		return v, err
	}
	if err := o.readJournal(ctx, &v); err != nil || !v.Lasts() {
		return v, err
	}
	if v.access, err = o.accessToReview(ctx, v); err != nil {
		return v, err
	}
	if v.unsettled, err = r.Unsettled(ctx, v.State); err != nil {
		return v, err
	}
	used, err := r.Accounts(ctx)
	for _, a := range used {
		if a.SeenAt.Before(v.BegunAt) {
			v.gone = append(v.gone, a)
		}
	}
	return v, err
}

// readJournal finds the acts that were written down on this machine and that the audit log does not have. In a recovery a
// journal is missing that has nothing from before it: it began in a new data folder.
func (o *opened) readJournal(ctx context.Context, v *recoveryView) error {
	acts, err := o.journal.Read()
	if err != nil {
		return err
	}
	v.journal = o.journal.Path()
	if len(acts) == 0 || v.Lasts() && !acts[0].At.Before(v.BegunAt) {
		v.journal, v.noJournal = "missing: "+v.journal, true
	}
	return o.db.Read(ctx, func(tx *db.Tx) error {
		v.forgotten = nil
		for _, a := range acts {
			there, err := o.log.Landed(tx, a.Tenant, a.ID)
			if err != nil {
				return err
			}
			if !there {
				v.forgotten = append(v.forgotten, a)
			}
		}
		return nil
	})
}

type recoveryStatus struct{ common }

// Run prints what is known.
func (c *recoveryStatus) Run(e *env) error {
	return c.with(e, func(o *opened) error { return showRecovery(e, o, c.Output) })
}

func showRecovery(e *env, o *opened, format string) error {
	v, err := o.recoveryStands(e.ctx)
	if err != nil {
		return err
	}
	if v.Lasts() && v.noJournal {
		e.warn(fmt.Sprintf("There is no journal of before the recovery at %s: acts of operators that the backup has forgotten are not known here. "+
			"Copy acts.jsonl of the old data folder there, or check every key and person with makola recovery access.", o.journal.Path()))
	}
	return printOne(e.stdout, format, recoveryColumns, v)
}

// recoveryStep is a command that moves the recovery.
type recoveryStep struct {
	common
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// run makes the step, with its entry in the audit log, and prints what is then.
func (c *recoveryStep) run(e *env, entry audit.Entry, step func(o *opened, r *recovery.Recovery, audit func(*db.Tx) error) error) error {
	if strings.TrimSpace(c.Reason) == "" {
		return problem.Field("reason", "is required")
	}
	entry.Reason = c.Reason
	return c.with(e, func(o *opened) error {
		if err := step(o, o.recovery(), o.audited(entry)); err != nil {
			return err
		}
		return showRecovery(e, o, c.Output)
	})
}

type recoveryBegin struct {
	recoveryStep
	Since time.Time `name:"since" placeholder:"TIME" help:"What was committed after this moment may be forgotten, such as 2026-03-03T09:00:00Z; absent: not known."`
}

// Run begins a recovery, closed.
func (c *recoveryBegin) Run(e *env) error {
	return c.run(e, audit.Entry{Action: "recovery.begin"}, func(o *opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Begin(e.ctx, "an operator said so", c.Since, c.Reason, o.actor, audit, func(tx *db.Tx) error {
			lease.EndAll(tx)
			batch.RecoveryBegan(tx, o.clock)
			return nil
		})
	})
}

type recoveryOpen struct {
	recoveryStep
	ConfirmAccess string `name:"confirm-access" placeholder:"CODE" help:"Confirm that you checked the keys and people of makola recovery access, by the code that it prints."`
}

// Run lets customers in.
func (c *recoveryOpen) Run(e *env) error {
	return c.run(e, audit.Entry{Action: "recovery.open"}, func(o *opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		v, err := o.recoveryStands(e.ctx)
		if err == nil && v.Closed() {
			err = v.access.confirmed(c.ConfirmAccess)
		}
		if err != nil {
			return err
		}
		return r.Open(e.ctx, c.Reason, o.actor, audit)
	})
}

type recoverySkip struct {
	recoveryStep
	Rail string `arg:"" help:"Name of the provider: mtn or hubtel."`
	Mode string `name:"mode" enum:"test,live" default:"live" help:"test or live money."`
}

// Run lets payments through without a provider's answer.
func (c *recoverySkip) Run(e *env) error {
	return c.run(e, audit.Entry{Action: "recovery.skip", Subject: c.Rail + "/" + c.Mode}, func(o *opened, r *recovery.Recovery, audit func(*db.Tx) error) error {
		return r.Skip(e.ctx, c.Rail, c.Mode, c.Reason, o.actor, audit)
	})
}

type recoveryAllow struct {
	recoveryStep
	Tenant string `arg:"" help:"Id or unique name of the customer."`
}

// Run lets a customer through.
func (c *recoveryAllow) Run(e *env) error {
	return c.run(e, audit.Entry{}, func(o *opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		return r.Allow(e.ctx, t.ID, c.Reason, o.actor, o.audited(audit.Entry{Action: "recovery.allow", Tenant: t.ID, Subject: t.ID, Reason: c.Reason}))
	})
}

type recoveryDismiss struct {
	recoveryStep
	Tenant    string `arg:"" help:"Id or unique name of the customer."`
	Reference string `arg:"" help:"The customer's reference, as the list of conflicts has it."`
}

// Run takes a conflict off the list.
func (c *recoveryDismiss) Run(e *env) error {
	return c.run(e, audit.Entry{}, func(o *opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		return r.Dismiss(e.ctx, t.ID, c.Reference, o.audited(audit.Entry{Action: "recovery.dismiss", Tenant: t.ID, Subject: c.Reference, Reason: c.Reason}))
	})
}

type recoveryEnd struct {
	recoveryStep
	SignFloats string `name:"sign-floats" required:"" placeholder:"TEXT" help:"What the floats of makola float show were compared with, such as the providers' balances of an hour: they agree, or you answer for the difference."`
}

// Run ends the recovery.
func (c *recoveryEnd) Run(e *env) error {
	return c.run(e, audit.Entry{}, func(o *opened, r *recovery.Recovery, _ func(*db.Tx) error) error {
		v, err := o.recoveryStands(e.ctx)
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
		waiting, err := o.recovery().Waiting(e.ctx)
		if err != nil {
			return err
		}
		if n := len(waiting); n > 0 {
			left = append(left, fmt.Sprintf("%d claims wait for the providers", n))
		}
		if strings.TrimSpace(c.SignFloats) == "" {
			left = append(left, "the floats are not signed")
		}
		undecided, err := batch.Undecided(e.ctx, o.db)
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
		return r.End(e.ctx, c.Reason, o.actor, o.audited(entry))
	})
}
