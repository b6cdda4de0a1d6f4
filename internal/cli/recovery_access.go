package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/problem"
)

// After a restore, keys that were revoked and people who were disabled since the backup are back. Where the journal has such
// acts, they are listed. Where there is no journal, every live key and every person is. Customers are let in only after
// somebody confirmed the list.

// maxReviewed is how many people are listed, tenantsAtOnce how many accounts are read at a time.
const (
	maxReviewed   = 10_000
	tenantsAtOnce = 500
)

// accessRow is one key, person or forgotten act to check.
type accessRow struct {
	kind, tenant, id, name, state, why string
}

var accessColumns = []column[accessRow]{
	{"kind", func(r accessRow) any { return r.kind }},
	{"tenant", func(r accessRow) any { return r.tenant }},
	{"id", func(r accessRow) any { return r.id }},
	{"name", func(r accessRow) any { return r.name }},
	{"state", func(r accessRow) any { return r.state }},
	{"why", func(r accessRow) any { return r.why }},
}

// accessReview is the list to check before customers are let in.
type accessReview struct{ rows []accessRow }

// code identifies the list, so that a confirmation is of the list that was printed.
func (r accessReview) code() string {
	sum := sha256.New()
	for _, row := range r.rows {
		fmt.Fprintf(sum, "%q\n", []string{row.kind, row.tenant, row.id, row.state, row.why})
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// confirmed refuses to go on before the list was confirmed by its code.
func (r accessReview) confirmed(code string) error {
	switch {
	case len(r.rows) == 0 || strings.EqualFold(code, r.code()):
		return nil
	case code == "":
		return problem.New(problem.Forbidden, "access_unconfirmed", fmt.Sprintf("%d keys or people must be checked first: run makola recovery access, "+
			"revoke and disable again what must not work, then confirm with --confirm-access and the code that it prints", len(r.rows)))
	}
	return problem.Field("confirm-access", "is not the code of the present list: run makola recovery access again")
}

// accessToReview lists, in a recovery, what the journal says was changed since the backup, or everything where there is no
// journal.
func (o *opened) accessToReview(ctx context.Context, v recoveryView) (r accessReview, err error) {
	if !v.Closed() {
		return r, nil
	}
	for _, a := range v.forgotten {
		if a.OfAccess() {
			r.rows = append(r.rows, accessRow{"act", a.Tenant, a.Subject, a.Action, "forgotten", fmt.Sprintf("by %s at %s: %s", a.Actor, a.At.UTC().Format("2006-01-02 15:04Z"), a.Reason)})
		}
	}
	if !v.noJournal {
		return r, nil
	}
	const unknown = "there is no journal: it may have been revoked or disabled since the backup"
	now := o.clock.Now()
	for last := ""; ; {
		tenants, err := o.tenants.List(ctx, last, tenantsAtOnce)
		if err != nil {
			return r, err
		}
		for _, t := range tenants {
			keys, err := o.access.Keys(ctx, t.ID)
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
	people, err := o.people.People(ctx, maxReviewed)
	for _, p := range people {
		if p.DisabledAt.IsZero() {
			r.rows = append(r.rows, accessRow{"person", "", p.ID, p.Email, "enabled", unknown})
		}
	}
	return r, err
}

type recoveryAccess struct{ common }

// Run prints the list and the code that confirms it.
func (c *recoveryAccess) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		v, err := o.recoveryStands(e.ctx)
		if err != nil {
			return err
		}
		if err := printAll(e.stdout, c.Output, accessColumns, v.access.rows); err != nil || len(v.access.rows) == 0 {
			return err
		}
		fmt.Fprintf(e.stderr, "makola: When each of these %d may work: makola recovery open --confirm-access %s\n", len(v.access.rows), v.access.code())
		return nil
	})
}
