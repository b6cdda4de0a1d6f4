package frame

import (
	"log/slog"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Production reports whether the installation is in production mode.
func (o *Opened) Production() bool { return o.production }

// Jobs returns the queue for commands. It runs no jobs: servers run the jobs that it adds.
func (o *Opened) Jobs() *jobs.Queue {
	return jobs.New(o.DB, o.Clock, slog.New(slog.DiscardHandler), jobs.Options{Node: node})
}

// Messaging returns the domain for commands, which perform operators' actions. It sends nothing to a network's
// operator and makes and compares no code, so it needs no secret.
func (o *Opened) Messaging() *messaging.Messaging {
	return messaging.New(messaging.Deps{DB: o.DB, Ledger: o.Ledger, Tenants: o.Tenants, Jobs: o.Jobs(), Answers: o.answers, Senders: o.Senders(), Contacts: o.Contacts(), Clock: o.Clock, Log: slog.New(slog.DiscardHandler)})
}

// Senders returns the sender IDs for commands. They apply the quota of the account, and not the default quota of the
// servers.
func (o *Opened) Senders() *senderid.Store {
	return senderid.New(o.DB, o.Tenants, o.answers, o.Clock, config.Quotas{})
}

// Contacts returns the contacts for commands. They apply the quotas of the account, and not the default quotas of the
// servers.
func (o *Opened) Contacts() *contacts.Store {
	return contacts.New(o.DB, o.Tenants, o.answers, o.Clock, config.Quotas{})
}

// Inbox returns the texts from handsets for commands, which list them and assign numbers to accounts.
func (o *Opened) Inbox() *inbox.Store {
	return inbox.New(inbox.Deps{DB: o.DB, Tenants: o.Tenants, Clock: o.Clock})
}

// Webhooks returns the webhooks for commands, which send nothing. A running server sends the webhooks within seconds.
func (o *Opened) Webhooks(secret config.Secret) *webhook.Webhooks {
	return webhook.New(o.DB, o.Jobs(), o.Clock, slog.New(slog.DiscardHandler), webhook.Options{Secret: secret, Development: !o.Production()})
}

// Routes returns the table of routes for commands, which send nothing to providers.
func (o *Opened) Routes() *route.Table {
	return route.New(o.DB, o.Clock, slog.New(slog.DiscardHandler), app.Providers(), nil)
}

// Payments returns the domain for commands, which perform operators' actions. Commands send nothing to a provider and
// need no route. A running server sends the webhooks.
func (o *Opened) Payments(secret config.Secret) *payments.Payments {
	quiet := slog.New(slog.DiscardHandler)
	queue := o.Jobs()
	return payments.New(payments.Deps{DB: o.DB, Ledger: o.Ledger, Tenants: o.Tenants, Jobs: queue, Clock: o.Clock, Log: quiet, Secret: secret,
		Webhooks: webhook.New(o.DB, queue, o.Clock, quiet, webhook.Options{Secret: secret}), Routes: o.Routes(), Treasury: o.Treasury()})
}

// Batches returns the files of payouts for commands. A server accepts the rows of a batch that a command starts.
func (o *Opened) Batches(secret config.Secret, p *payments.Payments) *batch.Batches {
	quiet, queue := slog.New(slog.DiscardHandler), o.Jobs()
	return batch.New(batch.Deps{DB: o.DB, Ledger: o.Ledger, Tenants: o.Tenants, Payments: p, Treasury: o.Treasury(), Jobs: queue, Recovery: o.Recovery(), Access: o.Access, Routes: o.Routes(), Lookups: lookup.New(o.DB, o.Tenants, o.Routes(), o.Clock),
		Clock: o.Clock, Log: quiet, Secret: secret, Webhooks: webhook.New(o.DB, queue, o.Clock, quiet, webhook.Options{Secret: secret})})
}

// Reconcile returns the statements of providers and banks. A server matches the lines that a command imports. Resolutions of
// exceptions need the payments p. If p is nil, there are no resolutions.
func (o *Opened) Reconcile(p *payments.Payments) *reconcile.Reconcile {
	d := reconcile.Deps{DB: o.DB, Clock: o.Clock, Ledger: o.Ledger, Log: slog.New(slog.DiscardHandler)}
	if p != nil {
		d.Payments, d.Account = p.Reader, p.AccountAt
	}
	return reconcile.New(d)
}

// Treasury moves operators' money.
func (o *Opened) Treasury() *treasury.Treasury {
	return treasury.New(o.DB, o.Ledger, o.Tenants, o.Clock, slog.New(slog.DiscardHandler), o.Routes().CheckFloat)
}

// Recovery is the store of the recovery.
func (o *Opened) Recovery() *recovery.Recovery {
	return recovery.New(o.DB, o.Clock, slog.New(slog.DiscardHandler))
}

// Approvals is the store of requests.
func (o *Opened) Approvals() *changes.Store {
	return changes.NewStore(o.DB, o.Clock, o.Log.Keeping(o.Journal), o.People, o.production)
}

// Changes returns the changes of the caller. A secret of a change is printed and not stored.
func (o *Opened) Changes(secret config.Secret) *changes.Changes {
	return changes.New(changes.Deps{Store: o.Approvals(), Ledger: o.Ledger, Tenants: o.Tenants, Access: o.Access, People: o.People, Senders: o.Senders(), Inbox: o.Inbox(), Webhooks: o.Webhooks(secret),
		Treasury: o.Treasury(), Closing: closing.New(o.DB, o.Ledger, o.Clock), Routes: o.Routes(), Reconcile: o.Reconcile(nil), Jobs: o.Jobs()})
}

// Sealed returns the tables with texts sealed under the keys of the ring.
func (o *Opened) Sealed(ring config.Secret) app.Sealed {
	return app.Sealed{Ring: ring, Webhooks: o.Webhooks(ring), People: identity.New(o.DB, o.Clock, o.Log, identity.Options{Secret: ring}),
		Changes: changes.New(changes.Deps{Store: o.Approvals(), Seal: changes.NewSealer(ring)}), Audit: o.Log.Keyed(ring), Notices: notice.Sealed(o.DB, ring)}
}
