package operations

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Keys holds the commands of makola keys.
type Keys struct {
	Status keysStatus `cmd:"" help:"List the master keys by name, with the number of secrets sealed under each."`
	Rotate keysRotate `cmd:"" help:"Seal all secrets under the first master key of the ring. Servers keep running; an interrupted run can be repeated."`
}

var masterKeyColumns = []frame.Column[app.KeyUse]{
	{Name: "key", Value: func(k app.KeyUse) any { return k.Name }},
	{Name: "active", Value: func(k app.KeyUse) any { return k.Active }},
	{Name: "in_ring", Value: func(k app.KeyUse) any { return k.InRing }},
	{Name: "references", Value: func(k app.KeyUse) any { return k.Reference }},
	{Name: "webhook_secrets", Value: func(k app.KeyUse) any { return k.Webhooks }},
	{Name: "second_factors", Value: func(k app.KeyUse) any { return k.Factors }},
	{Name: "act_secrets", Value: func(k app.KeyUse) any { return k.RequestSecrets }},
	{Name: "audit_keys", Value: func(k app.KeyUse) any { return k.AuditKeys }},
	{Name: "notices", Value: func(k app.KeyUse) any { return k.Notices }},
	{Name: "sealed", Value: func(k app.KeyUse) any { return k.Total() }},
}

type keysStatus struct{ frame.Common }

// Run counts the secrets sealed under each key.
func (c *keysStatus) Run(e *frame.Env) error {
	return c.WithSecret(e, func(o *frame.Opened, ring config.Secret) error {
		keys, err := o.Sealed(ring).Keys(e.Ctx)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, masterKeyColumns, keys)
	})
}

type keysRotate struct {
	frame.Common
	frame.Reasoned
}

// Run seals everything under the active key. It fails if a value remains under another key.
func (c *keysRotate) Run(e *frame.Env) error {
	return c.WithSecret(e, func(o *frame.Opened, ring config.Secret) error {
		sealed := o.Sealed(ring)
		if err := sealed.Check(e.Ctx); err != nil {
			return err
		}
		before, err := sealed.Keys(e.Ctx)
		if err != nil {
			return err
		}
		total := int64(0)
		for _, k := range before[1:] {
			total += k.Total()
		}
		entry := audit.Entry{Action: "keys.rotate", Subject: ring.Active(), Reason: c.Reason}
		if err := o.Change(e.Ctx, entry, func(*db.Tx) (any, error) {
			return frame.WithChanges(nil, map[string]any{"to": ring.Active(), "to_seal": total}), nil
		}); err != nil {
			return err
		}
		done := int64(0)
		err = sealed.Reseal(e.Ctx, func(what string, n int64) {
			if done += n; n > 0 {
				fmt.Fprintf(e.Stderr, "%s: %d of %d sealed under %s\n", what, done, total, ring.Active())
			}
		})
		if err != nil {
			return err
		}
		return c.proved(e.Ctx, e, sealed)
	})
}

// proved prints the counts. It fails if a server without the active key sealed something in the meantime.
func (c *keysRotate) proved(ctx context.Context, e *frame.Env, sealed app.Sealed) error {
	keys, err := sealed.Keys(ctx)
	if err != nil {
		return err
	}
	if err := frame.PrintAll(e.Stdout, c.Output, masterKeyColumns, keys); err != nil {
		return err
	}
	for _, k := range keys[1:] {
		if k.Total() > 0 {
			return problem.New(problem.InProgress, "sealed_under_another", fmt.Sprintf(
				"%d are still sealed under key %s, because a server uses this key: give every server the same ring, and run the command again", k.Total(), k.Name))
		}
	}
	return nil
}
