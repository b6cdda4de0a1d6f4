package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/recovery"
)

// After a restore, keys that were revoked and people who were disabled since the backup are active again. If the
// journal has such actions, they are listed. Without a journal every live key and every person is listed. Customers
// are admitted only after an operator confirmed the list.

// maxReviewed is the maximum number of listed people. tenantsAtOnce is the number of accounts that are read
// at once.
const (
	maxReviewed   = 10_000
	tenantsAtOnce = 500
)

// accessRow is one key, person or forgotten change to check.
type accessRow struct {
	kind, tenant, id, name, state, why string
}

var accessColumns = []frame.Column[accessRow]{
	{Name: "kind", Value: func(r accessRow) any { return r.kind }},
	{Name: "tenant", Value: func(r accessRow) any { return r.tenant }},
	{Name: "id", Value: func(r accessRow) any { return r.id }},
	{Name: "name", Value: func(r accessRow) any { return r.name }},
	{Name: "state", Value: func(r accessRow) any { return r.state }},
	{Name: "why", Value: func(r accessRow) any { return r.why }},
}

// accessReview is the list to check before customers are let in.
type accessReview struct{ rows []accessRow }

// code identifies the list, so that an operator confirms exactly the printed list.
func (r accessReview) code() string {
	sum := sha256.New()
	for _, row := range r.rows {
		fmt.Fprintf(sum, "%q\n", []string{row.kind, row.tenant, row.id, row.state, row.why})
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// confirmed returns an error until the list was confirmed by its code.
func (r accessReview) confirmed(code string) error {
	switch {
	case len(r.rows) == 0 || strings.EqualFold(code, r.code()):
		return nil
	case code == "":
		return problem.New(problem.Forbidden, "access_unconfirmed", fmt.Sprintf("Check %d keys or people first: run makola recovery access, "+
			"revoke keys and disable people again where needed, then confirm with --confirm-access and the printed code", len(r.rows)))
	}
	return problem.Field("confirm-access", "does not match the current list. Run makola recovery access again")
}

// accessToReview lists the keys and people that the journal names since the backup, or all of them without a journal.
func accessToReview(ctx context.Context, o *frame.Opened, v recoveryView) (r accessReview, err error) {
	if !v.Closed() {
		return r, nil
	}
	for _, a := range v.forgotten {
		if a.OfAccess() {
			r.rows = append(r.rows, accessRow{"act", a.Tenant, a.Subject, a.Action, "forgotten", fmt.Sprintf("by %s at %s: %s", a.Actor, a.At.UTC().Format(time.RFC3339), a.Reason)})
		}
	}
	if !v.noJournal {
		return r, nil
	}
	const unknown = "no journal: this key or person may have been revoked or disabled since the backup"
	now := o.Clock.Now()
	for last := ""; ; {
		tenants, err := o.Tenants.List(ctx, last, tenantsAtOnce)
		if err != nil {
			return r, err
		}
		for _, t := range tenants {
			keys, err := o.Access.Keys(ctx, t.ID)
			if err != nil {
				return r, err
			}
			for _, k := range keys {
				if state := k.State(now); state == "active" {
					r.rows = append(r.rows, accessRow{"key", t.ID, k.ID, k.Hint, state, unknown})
				}
			}
			last = t.ID
		}
		if len(tenants) < tenantsAtOnce {
			break
		}
	}
	people, err := o.People.People(ctx, maxReviewed)
	for _, p := range people {
		if p.DisabledAt.IsZero() {
			r.rows = append(r.rows, accessRow{"person", "", p.ID, p.Email, "enabled", unknown})
		}
	}
	return r, err
}

// recoveryView is the printed state of the recovery.
type recoveryView struct {
	recovery.State
	conflicts []recovery.Conflict
	unsettled int64
	forgotten []audit.Noted
	gone      []recovery.Account
	journal   string // path of the journal, or that it is missing
	noJournal bool
	access    accessReview
}

var recoveryColumns = []frame.Column[recoveryView]{
	{Name: "phase", Value: func(v recoveryView) any {
		if v.Phase == recovery.PhaseNone {
			return "none"
		}
		return string(v.Phase)
	}},
	{Name: "cause", Value: func(v recoveryView) any { return v.Cause }},
	{Name: "begun_at", Value: func(v recoveryView) any { return v.BegunAt }},
	{Name: "since", Value: func(v recoveryView) any { return v.Since }},
	{Name: "actor", Value: func(v recoveryView) any { return v.Actor }},
	{Name: "reason", Value: func(v recoveryView) any { return v.Reason }},
	{Name: "skipped", Value: func(v recoveryView) any { rails, _ := v.Exceptions(); return rails }},
	{Name: "allowed", Value: func(v recoveryView) any { _, tenants := v.Exceptions(); return tenants }},
	{Name: "unsettled", Value: func(v recoveryView) any { return v.unsettled }},
	{Name: "conflicts", Value: func(v recoveryView) any {
		return texts(v.conflicts, func(c recovery.Conflict) string {
			return fmt.Sprintf("%s %s %s GHS %s at %s: %s", c.Tenant, c.Kind, c.Reference, money.Pesewas(c.Amount), c.Rail, c.Why)
		})
	}},
	{Name: "forgotten_acts", Value: func(v recoveryView) any {
		return texts(v.forgotten, func(a audit.Noted) string {
			return strings.Join([]string{a.At.Format(time.RFC3339), a.Actor, a.Action, a.Tenant, a.Subject, a.Reason, string(a.Details)}, " ")
		})
	}},
	{Name: "journal", Value: func(v recoveryView) any { return v.journal }},
	{Name: "access_to_confirm", Value: func(v recoveryView) any { return len(v.access.rows) }},
	{Name: "accounts_gone", Value: func(v recoveryView) any {
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

// recoveryStands reads the state of the recovery.
func recoveryStands(ctx context.Context, o *frame.Opened) (v recoveryView, err error) {
	r := o.Recovery()
	if v.State, err = r.State(ctx); err != nil {
		return v, err
	}
	if v.conflicts, err = r.Conflicts(ctx); err != nil {
		return v, err
	}
	if err := readJournal(ctx, o, &v); err != nil || !v.Lasts() {
		return v, err
	}
	if v.access, err = accessToReview(ctx, o, v); err != nil {
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

// readJournal returns the actions in this machine's journal that the audit log lacks. In a recovery a journal without
// entries from before the recovery is treated as missing, because it began in a new data folder.
func readJournal(ctx context.Context, o *frame.Opened, v *recoveryView) error {
	acts, err := o.Journal.Read()
	if err != nil {
		return err
	}
	v.journal = o.Journal.Path()
	if len(acts) == 0 || v.Lasts() && !acts[0].At.Before(v.BegunAt) {
		v.journal, v.noJournal = "missing: "+v.journal, true
	}
	return o.DB.Read(ctx, func(tx *db.Tx) error {
		v.forgotten = nil
		for _, a := range acts {
			there, err := o.Log.Landed(tx, a.Tenant, a.ID)
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
