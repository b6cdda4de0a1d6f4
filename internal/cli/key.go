package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

type keyCommands struct {
	Create keyCreate `cmd:"" help:"Make a key and print it, this once."`
	Set    keySet    `cmd:"" help:"Change what a key may spend in a day."`
	List   keyList   `cmd:"" help:"List the keys of a customer."`
	Rotate keyRotate `cmd:"" help:"Replace a key by a new one; both work for a while."`
	Revoke keyRevoke `cmd:"" help:"End a key within a second, for good."`
}

type keyFlags struct {
	common
	Tenant string `name:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the customer."`
}

// keyView is a key as it is printed; the key itself only where it was made.
type keyView struct {
	access.Key
	text  string
	state string
}

func keyColumns() []column[keyView] {
	return []column[keyView]{
		{"id", func(k keyView) any { return k.ID }},
		{"hint", func(k keyView) any { return k.Hint }},
		{"state", func(k keyView) any { return k.state }},
		{"member", func(k keyView) any { return k.Member }},
		{"label", func(k keyView) any { return k.Label }},
		{"scopes", func(k keyView) any {
			scopes := make([]string, len(k.Scopes))
			for i, s := range k.Scopes {
				scopes[i] = string(s)
			}
			return scopes
		}},
		{"daily", func(k keyView) any { return k.Daily }},
		{"created_at", func(k keyView) any { return k.CreatedAt }},
		{"expires_at", func(k keyView) any { return k.ExpiresAt }},
		{"revoked_at", func(k keyView) any { return k.RevokedAt }},
		{"replaced_by", func(k keyView) any { return k.ReplacedBy }},
	}
}

// printMinted prints a new key. The warning goes to stderr, so that a script
// reads the record alone.
func printMinted(e *env, format string, m access.Minted, now time.Time) error {
	columns := append([]column[keyView]{{"key", func(k keyView) any { return k.text }}}, keyColumns()...)
	if err := printOne(e.stdout, format, columns, keyView{m.Key, m.Text, m.Key.State(now)}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stderr, "The key is not stored and will not be shown again.")
	return err
}

// printKey prints a new key that an act made, found by its text.
func (o *opened) printKey(ctx context.Context, e *env, flags keyFlags, text string) error {
	made, err := o.access.Authenticate(ctx, text)
	if err != nil {
		return err
	}
	k, err := o.key(ctx, made.Tenant, made.KeyID)
	if err != nil {
		return err
	}
	return printMinted(e, flags.Output, access.Minted{Key: k, Text: text}, o.clock.Now())
}

// showKey prints a key.
func (o *opened) showKey(ctx context.Context, e *env, flags keyFlags, id string) error {
	t, err := o.tenant(ctx, flags.Tenant)
	if err != nil {
		return err
	}
	k, err := o.key(ctx, t.ID, id)
	if err != nil {
		return err
	}
	return printOne(e.stdout, flags.Output, keyColumns(), keyView{Key: k, state: k.State(o.clock.Now())})
}

// key finds a key of a customer.
func (o *opened) key(ctx context.Context, tenantID, id string) (access.Key, error) {
	keys, err := o.access.Keys(ctx, tenantID)
	if err != nil {
		return access.Key{}, err
	}
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return access.Key{}, problem.New(problem.NotFound, "key_not_found", "API key not found")
}

type keyCreate struct {
	keyFlags
	writing
	Member  string         `name:"member" placeholder:"EMAIL" help:"Person whose key it is, by e-mail address or id, with a role at the customer. They approve no payout that it asks for."`
	Label   string         `name:"label" placeholder:"TEXT" help:"Free text that tells keys apart. It names nobody."`
	Scope   []string       `name:"scope" placeholder:"SCOPE" help:"Right of the key: all, read, collect, payout, airtime, sms, otp, contacts, webhooks. Repeat for more; all without."`
	Expires *time.Duration `name:"expires-in" placeholder:"DURATION" help:"How long the key works, such as 720h; without end when absent."`
	Daily   amount         `name:"daily" placeholder:"GHS" help:"What it may take out of the wallet in a day, with charges; 0 or absent: all that is there."`
	Reason  string         `name:"reason" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run makes a key.
func (c *keyCreate) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		t, err := o.tenant(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		of := changes.KeyOrder{Member: c.Member, Label: c.Label, Daily: c.Daily.or(0)}
		if c.Expires != nil {
			if of.Expiry = *c.Expires; of.Expiry == 0 { // which means no end
				return usage("--expires-in must be in the future")
			}
		}
		for _, s := range c.Scope {
			of.Scopes = append(of.Scopes, access.Scope(s))
		}
		r, err := o.changes(config.Secret{}).CreateKey(e.ctx, o.by, newID(), t.ID, of, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.printKey(ctx, e, c.keyFlags, r.Secret) })
	})
}

type keySet struct {
	keyFlags
	writing
	ID     string `arg:"" help:"Id of the key."`
	Daily  amount `name:"daily" required:"" placeholder:"GHS" help:"What it may take out of the wallet in a day, with charges, in force within a second; 0: all that is there."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run changes a key.
func (c *keySet) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		r, err := o.changes(config.Secret{}).SetKey(e.ctx, o.by, newID(), c.Tenant, c.ID, c.Daily.or(0), c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showKey(ctx, e, c.keyFlags, c.ID) })
	})
}

type keyList struct{ keyFlags }

// Run lists keys.
func (c *keyList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		keys, err := o.access.Keys(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		views := make([]keyView, len(keys))
		for i, k := range keys {
			views[i] = keyView{Key: k, state: k.State(o.clock.Now())}
		}
		return printAll(e.stdout, c.Output, keyColumns(), views)
	})
}

type keyRotate struct {
	keyFlags
	writing
	ID      string        `arg:"" help:"Id of the key."`
	Overlap time.Duration `name:"overlap" default:"24h" help:"How long the old key works beside the new one, at most 168h."`
	Reason  string        `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run rotates a key.
func (c *keyRotate) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		r, err := o.changes(config.Secret{}).RotateKey(e.ctx, o.by, newID(), c.Tenant, c.ID, c.Overlap, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.printKey(ctx, e, c.keyFlags, r.Secret) })
	})
}

type keyRevoke struct {
	keyFlags
	writing
	ID     string `arg:"" help:"Id of the key."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run revokes a key.
func (c *keyRevoke) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		r, err := o.changes(config.Secret{}).RevokeKey(e.ctx, o.by, newID(), c.Tenant, c.ID, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error { return o.showKey(ctx, e, c.keyFlags, c.ID) })
	})
}
