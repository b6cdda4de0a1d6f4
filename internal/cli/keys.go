package cli

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

type keysCommands struct {
	Status keysStatus `cmd:"" help:"List the master keys by their names, and count what is sealed under each."`
	Rotate keysRotate `cmd:"" help:"Seal everything under the first key of the ring, beside the servers. It may be broken off and begun again."`
}

// sealed is what is sealed under the keys of the ring.
func (o *opened) sealed(ring config.Secret) app.Sealed {
	return app.Sealed{Ring: ring, Webhooks: o.webhooks(ring), People: identity.New(o.db, o.clock, o.log, identity.Options{Secret: ring}),
		Changes: changes.New(changes.Deps{Store: o.approvals(), Seal: changes.NewSealer(ring)}), Audit: o.log.Keyed(ring)}
}

var masterKeyColumns = []column[app.KeyUse]{
	{"key", func(k app.KeyUse) any { return k.Name }},
	{"active", func(k app.KeyUse) any { return k.Active }},
	{"in_ring", func(k app.KeyUse) any { return k.InRing }},
	{"references", func(k app.KeyUse) any { return k.Reference }},
	{"webhook_secrets", func(k app.KeyUse) any { return k.Webhooks }},
	{"second_factors", func(k app.KeyUse) any { return k.Factors }},
	{"act_secrets", func(k app.KeyUse) any { return k.ActSecrets }},
	{"audit_keys", func(k app.KeyUse) any { return k.AuditKeys }},
	{"sealed", func(k app.KeyUse) any { return k.Total() }},
}

type keysStatus struct{ common }

// Run counts what is sealed under each key.
func (c *keysStatus) Run(e *env) error {
	return c.withSecret(e, func(o *opened, ring config.Secret) error {
		keys, err := o.sealed(ring).Keys(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, masterKeyColumns, keys)
	})
}

type keysRotate struct {
	common
	reasoned
}

// Run seals everything under the active key, and fails where something is left under another one.
func (c *keysRotate) Run(e *env) error {
	return c.withSecret(e, func(o *opened, ring config.Secret) error {
		sealed := o.sealed(ring)
		if err := sealed.Check(e.ctx); err != nil {
			return err
		}
		before, err := sealed.Keys(e.ctx)
		if err != nil {
			return err
		}
		total := int64(0)
		for _, k := range before[1:] {
			total += k.Total()
		}
		entry := audit.Entry{Action: "keys.rotate", Subject: ring.Active(), Reason: c.Reason}
		if err := o.act(e.ctx, entry, func(*db.Tx) (any, error) {
			return withChanges(nil, map[string]any{"to": ring.Active(), "to_seal": total}), nil
		}); err != nil {
			return err
		}
		done := int64(0)
		err = sealed.Reseal(e.ctx, func(what string, n int64) {
			if done += n; n > 0 {
				fmt.Fprintf(e.stderr, "%s: %d of %d sealed under %s\n", what, done, total, ring.Active())
			}
		})
		if err != nil {
			return err
		}
		return c.proved(e.ctx, e, sealed)
	})
}

// proved prints the counts, and fails where a server that does not know of the active key has sealed something meanwhile.
func (c *keysRotate) proved(ctx context.Context, e *env, sealed app.Sealed) error {
	keys, err := sealed.Keys(ctx)
	if err != nil {
		return err
	}
	if err := printAll(e.stdout, c.Output, masterKeyColumns, keys); err != nil {
		return err
	}
	for _, k := range keys[1:] {
		if k.Total() > 0 {
			return problem.New(problem.InProgress, "sealed_under_another", fmt.Sprintf(
				"%d are still sealed under key %s: a server seals under it; give every server the same ring, and run this again", k.Total(), k.Name))
		}
	}
	return nil
}
