package accounts

import (
	"errors"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/webhook"
)

// Webhooks holds the commands of makola webhooks.
type Webhooks struct {
	List     webhooksList     `cmd:"" help:"List events: of one account, newest first, or with --state failed of all accounts."`
	Attempts webhooksAttempts `cmd:"" help:"List the failed attempts to deliver an event."`
	Replay   webhooksReplay   `cmd:"" help:"Send events again, with the same body and webhook-id. Events of erased people are refused, or skipped with --failed."`
	Secret   webhooksSecret   `cmd:"" help:"Show or replace the secret that signs an account's webhooks."`
}

type webhooksList struct {
	frame.Common
	Tenant  string      `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the events, by id or unique name. Required, except with --state failed."`
	Subject string      `name:"subject" placeholder:"ID" help:"Id of the payment whose webhooks to list."`
	State   string      `name:"state" enum:"pending,delivered,failed,superseded," default:"" placeholder:"STATE" help:"State of the events: pending, delivered, failed or superseded."`
	Limit   frame.Count `name:"limit" default:"100" help:"Maximum number of rows."`
}

func deliveryColumns(names map[string]string) []frame.Column[webhook.Delivery] {
	return []frame.Column[webhook.Delivery]{
		{Name: "id", Value: func(d webhook.Delivery) any { return d.ID }},
		{Name: "tenant", Value: func(d webhook.Delivery) any { return d.Tenant }},
		{Name: "customer", Value: func(d webhook.Delivery) any { return names[d.Tenant] }},
		{Name: "subject", Value: func(d webhook.Delivery) any { return d.Subject }},
		{Name: "kind", Value: func(d webhook.Delivery) any { return string(d.Kind) }},
		{Name: "state", Value: func(d webhook.Delivery) any { return string(d.State) }},
		{Name: "attempts", Value: func(d webhook.Delivery) any { return int64(d.Attempts) }},
		{Name: "status", Value: func(d webhook.Delivery) any { return int64(d.Status) }},
		{Name: "took_ms", Value: func(d webhook.Delivery) any { return d.Took.Milliseconds() }},
		{Name: "created_at", Value: func(d webhook.Delivery) any { return d.CreatedAt }},
		{Name: "ended_at", Value: func(d webhook.Delivery) any { return d.EndedAt }},
		{Name: "url", Value: func(d webhook.Delivery) any { return d.URL }},
		{Name: "error", Value: func(d webhook.Delivery) any { return d.Error }},
	}
}

// Run lists events. The bodies are too wide for a table.
func (c *webhooksList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.Webhooks(config.Secret{}).List(e.Ctx, webhook.Filter{
			Tenant: c.Tenant, Subject: c.Subject, State: webhook.State(c.State), Limit: int(c.Limit),
		})
		if err != nil {
			return err
		}
		var ids []string
		for _, d := range list {
			ids = append(ids, d.Tenant)
		}
		names, err := o.Named(e.Ctx, ids)
		if err != nil {
			return err
		}
		columns := append(deliveryColumns(names), frame.Column[webhook.Delivery]{Name: "body", Value: func(d webhook.Delivery) any { return d.Body }})
		columns = frame.Narrow(c.Output, columns, "created_at", "customer", "subject", "kind", "state", "attempts", "status", "error", "id")
		return frame.PrintAll(e.Stdout, c.Output, columns, list)
	})
}

type webhooksAttempts struct {
	frame.Common
	Tenant string `name:"account" aliases:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the account."`
	ID     string `arg:"" help:"Id of the event, the webhook-id."`
}

// Run lists the failed attempts of an event.
func (c *webhooksAttempts) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.Webhooks(config.Secret{}).Attempts(e.Ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		columns := []frame.Column[webhook.Attempt]{
			{Name: "number", Value: func(a webhook.Attempt) any { return int64(a.Number) }},
			{Name: "at", Value: func(a webhook.Attempt) any { return a.At }},
			{Name: "status", Value: func(a webhook.Attempt) any { return int64(a.Status) }},
			{Name: "took_ms", Value: func(a webhook.Attempt) any { return a.Took.Milliseconds() }},
			{Name: "error", Value: func(a webhook.Attempt) any { return a.Error }},
		}
		if c.Output != "table" {
			columns = append(columns, frame.Column[webhook.Attempt]{Name: "answer", Value: func(a webhook.Attempt) any { return a.Answer }})
		}
		return frame.PrintAll(e.Stdout, c.Output, columns, list)
	})
}

type webhooksReplay struct {
	frame.Common
	frame.Writing
	Tenant string        `name:"account" aliases:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the account."`
	IDs    []string      `arg:"" optional:"" name:"id" help:"Ids of the events (webhook-id). Delivered events are sent again. Pending events are sent at once."`
	Failed bool          `name:"failed" help:"Replay all failed events."`
	Since  time.Duration `name:"since" default:"24h" placeholder:"DURATION" help:"With --failed: events that failed within this period."`
	Limit  frame.Count   `name:"limit" default:"1000" help:"With --failed: maximum number of events, oldest first."`
	Reason string        `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run sends events again.
func (c *webhooksReplay) Run(e *frame.Env) error {
	if c.Failed == (len(c.IDs) > 0) {
		return frame.Usage("Give the ids of events, or --failed")
	}
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		hooks := o.Webhooks(config.Secret{})
		var done webhook.Replayed
		entry := audit.Entry{Action: "webhook.replay", Tenant: c.Tenant, Subject: c.Tenant, Reason: c.Reason}
		err := o.Change(e.Ctx, entry, func(tx *db.Tx) (details any, err error) {
			if c.Failed {
				done, err = hooks.ReplayFailedIn(tx, c.Tenant, o.Clock.Now().Add(-c.Since), int(c.Limit))
			} else {
				done.Events, err = hooks.ReplayIn(tx, c.Tenant, c.IDs...)
			}
			return map[string]any{"events": c.IDs, "failed": c.Failed, "replayed": done.Events}, err
		})
		if err != nil {
			return err
		}
		return frame.PrintOne(e.Stdout, c.Output, []frame.Column[webhook.Replayed]{
			{Name: "replayed", Value: func(r webhook.Replayed) any { return int64(r.Events) }},
			{Name: "erased", Value: func(r webhook.Replayed) any { return int64(r.Erased) }},
		}, done)
	})
}

type webhooksSecret struct {
	frame.Common
	frame.Writing
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Rotate bool   `name:"rotate" help:"Create a new secret. The old one also signs for 24 hours."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log. Required with --rotate."`
}

// Validate refuses a new secret without a reason.
func (c *webhooksSecret) Validate() error {
	if c.Rotate && strings.TrimSpace(c.Reason) == "" {
		return errors.New("--rotate needs --reason TEXT")
	}
	return nil
}

// Run shows or rotates a secret and writes it into the audit log, because whoever has seen the secret can sign
// webhooks of this installation.
func (c *webhooksSecret) Run(e *frame.Env) error {
	if c.Rotate {
		return frame.Alias{Kind: changes.KindRotateSecret, Sealed: true, Show: func(q *frame.Ask) error {
			return c.show(e, q.Changes.Webhooks, q.Values[changes.FieldTenant])
		}}.Request(e, &c.Common, map[string]string{"account": c.Tenant, "reason": c.Reason})
	}
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		entry := audit.Entry{Action: "webhook.read_secret", Tenant: c.Tenant, Subject: c.Tenant, Reason: c.Reason}
		if err := o.Change(e.Ctx, entry, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		return c.show(e, o.Webhooks(secret), c.Tenant)
	})
}

// show prints the secret.
func (c *webhooksSecret) show(e *frame.Env, hooks *webhook.Webhooks, account string) error {
	s, err := hooks.Secret(e.Ctx, account)
	if err != nil {
		return err
	}
	return frame.PrintOne(e.Stdout, c.Output, []frame.Column[webhook.Secret]{
		{Name: "secret", Value: func(s webhook.Secret) any { return s.Current }},
		{Name: "made_at", Value: func(s webhook.Secret) any { return s.MadeAt }},
		{Name: "former", Value: func(s webhook.Secret) any { return s.Former }},
		{Name: "former_until", Value: func(s webhook.Secret) any { return s.FormerUntil }},
	}, s)
}
