package cli

import (
	"log/slog"

	"github.com/makola/makola/internal/messaging"
)

// messaging is what commands use of the domain: operators' verbs. Nothing is sent to an operator of a
// network from here, and no code is made or compared, so that no secret is needed.
func (o *opened) messaging() *messaging.Messaging {
	return messaging.New(messaging.Deps{DB: o.db, Ledger: o.ledger, Tenants: o.tenants, Jobs: o.jobs(), Answers: o.answers, Senders: o.senders(), Contacts: o.contacts(), Clock: o.clock, Log: slog.New(slog.DiscardHandler)})
}

// withMessaging opens the database and the domain.
func (c *common) withMessaging(e *env, work func(*opened, *messaging.Messaging) error) error {
	return c.with(e, func(o *opened) error {
		m := o.messaging()
		defer m.Close()
		return work(o, m)
	})
}
