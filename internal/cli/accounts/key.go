package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/problem"
)

// Key holds the commands of makola key.
type Key struct {
	Create keyCreate `cmd:"" help:"Create a key and print it. It is shown only once."`
	Set    keySet    `cmd:"" help:"Change the daily limit of a key."`
	List   keyList   `cmd:"" help:"List the keys of an account."`
	Rotate keyRotate `cmd:"" help:"Replace a key with a new one. The old key works until the end of the overlap."`
	Revoke keyRevoke `cmd:"" help:"Revoke a key for good. It stops working within a second."`
}

type keyFlags struct {
	frame.Common
	Tenant string `name:"account" aliases:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the account."`
}

// keyView is a printed key. It contains the text of the key only when the key has just been made.
type keyView struct {
	access.Key
	text  string
	state string
}

func keyColumns() []frame.Column[keyView] {
	return []frame.Column[keyView]{
		{Name: "id", Value: func(k keyView) any { return k.ID }},
		{Name: "hint", Value: func(k keyView) any { return k.Hint }},
		{Name: "state", Value: func(k keyView) any { return k.state }},
		{Name: "member", Value: func(k keyView) any { return k.Member }},
		{Name: "label", Value: func(k keyView) any { return k.Label }},
		{Name: "scopes", Value: func(k keyView) any {
			scopes := make([]string, len(k.Scopes))
			for i, s := range k.Scopes {
				scopes[i] = string(s)
			}
			return scopes
		}},
		{Name: "daily", Value: func(k keyView) any { return k.Daily }},
		{Name: "created_at", Value: func(k keyView) any { return k.CreatedAt }},
		{Name: "expires_at", Value: func(k keyView) any { return k.ExpiresAt }},
		{Name: "revoked_at", Value: func(k keyView) any { return k.RevokedAt }},
		{Name: "replaced_by", Value: func(k keyView) any { return k.ReplacedBy }},
	}
}

// printMinted prints a new key. The warning goes to stderr, so that stdout has only the record.
func printMinted(e *frame.Env, format string, m access.Minted, now time.Time) error {
	columns := append([]frame.Column[keyView]{{Name: "key", Value: func(k keyView) any { return k.text }}}, keyColumns()...)
	if err := frame.PrintOne(e.Stdout, format, columns, keyView{m.Key, m.Text, m.Key.State(now)}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stderr, "Store the key now. It is shown only once.")
	return err
}

// showNewKey prints the new key that a change made, found by its text.
func showNewKey(q *frame.Ask) error {
	made, err := q.O.Access.Authenticate(q.E.Ctx, q.Request.Secret)
	if err != nil {
		return err
	}
	k, err := findKey(q.E.Ctx, q.O, made.Tenant, made.KeyID)
	if err != nil {
		return err
	}
	return printMinted(q.E, q.Output, access.Minted{Key: k, Text: q.Request.Secret}, q.O.Clock.Now())
}

// showKey prints the key of a change.
func showKey(q *frame.Ask) error {
	k, err := findKey(q.E.Ctx, q.O, q.Values[changes.FieldTenant], q.Values["key"])
	if err != nil {
		return err
	}
	return frame.PrintOne(q.E.Stdout, q.Output, keyColumns(), keyView{Key: k, state: k.State(q.O.Clock.Now())})
}

// findKey finds a key of a customer.
func findKey(ctx context.Context, o *frame.Opened, tenantID, id string) (access.Key, error) {
	keys, err := o.Access.Keys(ctx, tenantID)
	if err != nil {
		return access.Key{}, err
	}
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return access.Key{}, problem.New(problem.NotFound, "key_not_found", "API key not found. makola key list lists the keys of the account")
}

type keyCreate struct {
	keyFlags
	frame.Writing
	Member  string         `name:"member" placeholder:"EMAIL" help:"Member of the account who uses the key, by e-mail address or id. They cannot approve payouts of this key."`
	Label   string         `name:"label" placeholder:"TEXT" help:"Free text to distinguish keys. It does not name a person."`
	Scope   []string       `name:"scope" placeholder:"SCOPE" help:"Scope of the key: all, read, collect, payout, batches, airtime, sms, otp, contacts or webhooks. Repeat the flag for several. Default: all."`
	Expires *time.Duration `name:"expires-in" placeholder:"DURATION" help:"Validity of the key, such as 720h. Default: no end."`
	Daily   frame.Amount   `name:"daily" placeholder:"GHS" help:"Daily spending limit of the key, including charges; 0 is no limit."`
	Reason  string         `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Check refuses an expiry of zero, because the change would read it as a key that never expires.
func (c *keyCreate) Check() error {
	if c.Expires != nil && *c.Expires == 0 {
		return frame.Usage("--expires-in must be longer than 0s")
	}
	return nil
}

type keySet struct {
	keyFlags
	frame.Writing
	ID     string       `arg:"" help:"Id of the key."`
	Daily  frame.Amount `name:"daily" required:"" placeholder:"GHS" help:"Daily spending limit of the key, including charges; 0 is no limit. It applies within a second."`
	Reason string       `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type keyList struct{ keyFlags }

// Run lists keys.
func (c *keyList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		keys, err := o.Access.Keys(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		views := make([]keyView, len(keys))
		for i, k := range keys {
			views[i] = keyView{Key: k, state: k.State(o.Clock.Now())}
		}
		return frame.PrintAll(e.Stdout, c.Output, keyColumns(), views)
	})
}

type keyRotate struct {
	keyFlags
	frame.Writing
	ID      string        `arg:"" help:"Id of the key."`
	Overlap time.Duration `name:"overlap" default:"24h" help:"How long the old key stays valid, at most 168h."`
	Reason  string        `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type keyRevoke struct {
	keyFlags
	frame.Writing
	ID     string `arg:"" help:"Id of the key."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}
