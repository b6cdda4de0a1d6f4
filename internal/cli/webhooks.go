package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/webhook"
)

type webhooksCommands struct {
	List     webhooksList     `cmd:"" help:"List the events of a customer, newest first, or the failed ones of all."`
	Attempts webhooksAttempts `cmd:"" help:"Show the attempts of an event that were not answered with 2xx."`
	Replay   webhooksReplay   `cmd:"" help:"Send events again: the same bytes under the same webhook-id. Those from which a person was erased are refused, or left out with --failed."`
	Secret   webhooksSecret   `cmd:"" help:"Show the secret that a customer verifies our signatures with, or replace it."`
}

// webhooks is what commands use of the package: nothing is sent from here. A
// server that runs does that within seconds.
func (o *opened) webhooks(secret config.Secret) *webhook.Webhooks {
	return webhook.New(o.db, o.jobs(), o.clock, slog.New(slog.DiscardHandler), webhook.Options{Secret: secret})
}

type webhooksList struct {
	common
	Tenant  string `name:"tenant" placeholder:"ID" help:"Events of this customer. Needed, except with --state failed."`
	Subject string `name:"subject" placeholder:"ID" help:"Only those about this payment."`
	State   string `name:"state" enum:"pending,delivered,failed,superseded," default:"" placeholder:"STATE" help:"pending, delivered, failed or superseded."`
	Limit   count  `name:"limit" default:"100" help:"List at most so many."`
}

func deliveryColumns(names map[string]string) []column[webhook.Delivery] {
	return []column[webhook.Delivery]{
		{"id", func(d webhook.Delivery) any { return d.ID }},
		{"tenant", func(d webhook.Delivery) any { return d.Tenant }},
		{"customer", func(d webhook.Delivery) any { return names[d.Tenant] }},
		{"subject", func(d webhook.Delivery) any { return d.Subject }},
		{"kind", func(d webhook.Delivery) any { return string(d.Kind) }},
		{"state", func(d webhook.Delivery) any { return string(d.State) }},
		{"attempts", func(d webhook.Delivery) any { return int64(d.Attempts) }},
		{"status", func(d webhook.Delivery) any { return int64(d.Status) }},
		{"took_ms", func(d webhook.Delivery) any { return d.Took.Milliseconds() }},
		{"created_at", func(d webhook.Delivery) any { return d.CreatedAt }},
		{"ended_at", func(d webhook.Delivery) any { return d.EndedAt }},
		{"url", func(d webhook.Delivery) any { return d.URL }},
		{"error", func(d webhook.Delivery) any { return d.Error }},
	}
}

// Run lists events. The bodies are too wide for a table.
func (c *webhooksList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.webhooks(config.Secret{}).List(e.ctx, webhook.Filter{
			Tenant: c.Tenant, Subject: c.Subject, State: webhook.State(c.State), Limit: int(c.Limit),
		})
		if err != nil {
			return err
		}
		var ids []string
		for _, d := range list {
			ids = append(ids, d.Tenant)
		}
		names, err := o.named(e.ctx, ids)
		if err != nil {
			return err
		}
		columns := append(deliveryColumns(names), column[webhook.Delivery]{"body", func(d webhook.Delivery) any { return d.Body }})
		columns = narrow(c.Output, columns, "created_at", "customer", "subject", "kind", "state", "attempts", "status", "error", "id")
		return printAll(e.stdout, c.Output, columns, list)
	})
}

type webhooksAttempts struct {
	common
	Tenant string `name:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the customer."`
	ID     string `arg:"" help:"Id of the event, the webhook-id."`
}

// Run lists the failed attempts of an event.
func (c *webhooksAttempts) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.webhooks(config.Secret{}).Attempts(e.ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		columns := []column[webhook.Attempt]{
			{"number", func(a webhook.Attempt) any { return int64(a.Number) }},
			{"at", func(a webhook.Attempt) any { return a.At }},
			{"status", func(a webhook.Attempt) any { return int64(a.Status) }},
			{"took_ms", func(a webhook.Attempt) any { return a.Took.Milliseconds() }},
			{"error", func(a webhook.Attempt) any { return a.Error }},
		}
		if c.Output != "table" {
			columns = append(columns, column[webhook.Attempt]{"answer", func(a webhook.Attempt) any { return a.Answer }})
		}
		return printAll(e.stdout, c.Output, columns, list)
	})
}

type webhooksReplay struct {
	common
	writing
	Tenant string        `name:"tenant" required:"" placeholder:"ID" help:"Id or unique name of the customer."`
	IDs    []string      `arg:"" optional:"" name:"id" help:"Ids of the events, the webhook-ids. Delivered ones are sent again, too, and those that wait for their next attempt have it now."`
	Failed bool          `name:"failed" help:"All that were given up."`
	Since  time.Duration `name:"since" default:"24h" placeholder:"DURATION" help:"With --failed: given up in this time."`
	Limit  count         `name:"limit" default:"1000" help:"With --failed: at most so many, the oldest first."`
	Reason string        `name:"reason" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run sends events again.
func (c *webhooksReplay) Run(e *env) error {
	if c.Failed == (len(c.IDs) > 0) {
		return usage("Name events by their ids, or say --failed")
	}
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		hooks := o.webhooks(config.Secret{})
		var done webhook.Replayed
		entry := audit.Entry{Action: "webhook.replay", Tenant: c.Tenant, Subject: c.Tenant, Reason: c.Reason}
		err := o.act(e.ctx, entry, func(tx *db.Tx) (details any, err error) {
			if c.Failed {
				done, err = hooks.ReplayFailedIn(tx, c.Tenant, o.clock.Now().Add(-c.Since), int(c.Limit))
			} else {
				done.Events, err = hooks.ReplayIn(tx, c.Tenant, c.IDs...)
			}
			return map[string]any{"events": c.IDs, "failed": c.Failed, "replayed": done.Events}, err
		})
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, []column[webhook.Replayed]{
			{"replayed", func(r webhook.Replayed) any { return int64(r.Events) }},
			{"erased", func(r webhook.Replayed) any { return int64(r.Erased) }},
		}, done)
	})
}

type webhooksSecret struct {
	common
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Rotate bool   `name:"rotate" help:"Make a new one. The one before signs beside it for 24 hours."`
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the audit log; needed with --rotate."`
}

// Validate refuses a new secret without a reason.
func (c *webhooksSecret) Validate() error {
	if c.Rotate && strings.TrimSpace(c.Reason) == "" {
		return errors.New("--rotate needs a --reason")
	}
	return nil
}

// Run shows or rotates a secret. Both are in the audit log: who has seen it can sign in the house's name.
func (c *webhooksSecret) Run(e *env) error {
	return c.withSecret(e, func(o *opened, secret config.Secret) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		hooks := o.webhooks(secret)
		show := func(ctx context.Context) error { return c.show(ctx, e, hooks) }
		if c.Rotate {
			act, err := o.changes(secret).RotateSecret(e.ctx, o.by, newID(), c.Tenant, c.Reason)
			return o.asked(e, c.Output, act, err, show)
		}
		entry := audit.Entry{Action: "webhook.read_secret", Tenant: c.Tenant, Subject: c.Tenant, Reason: c.Reason}
		if err := o.act(e.ctx, entry, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return err
		}
		return show(e.ctx)
	})
}

// show prints the secret.
func (c *webhooksSecret) show(ctx context.Context, e *env, hooks *webhook.Webhooks) error {
	s, err := hooks.Secret(ctx, c.Tenant)
	if err != nil {
		return err
	}
	return printOne(e.stdout, c.Output, []column[webhook.Secret]{
		{"secret", func(s webhook.Secret) any { return s.Current }},
		{"made_at", func(s webhook.Secret) any { return s.MadeAt }},
		{"former", func(s webhook.Secret) any { return s.Former }},
		{"former_until", func(s webhook.Secret) any { return s.FormerUntil }},
	}, s)
}
