// Package messaging sends texts for tenants: it keeps the names they send under (which operators
// review), their contacts and the numbers that want no messages, prices and charges campaigns and
// one-time passwords in SMS credits, hands each segment to an operator through an SMS rail, and knows
// what became of it.
//
// A campaign is accepted in one transaction (its row, its recipients in chunks, the charge, the jobs),
// delivered chunk by chunk with a mark before each submit, and refunded once for what no operator
// accepted. SMPP has no idempotency key: what was written and not answered is unknown and is sent
// again only where a setting says so, a one-time password never.
package messaging

import (
	"context"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/fresh"
)

// senderFreshness is how old a cached sender ID may be.
const senderFreshness = time.Second

// cachedSenders is how many sender IDs a node remembers.
const cachedSenders = 10_000

// Deps is what messaging stands on.
type Deps struct {
	DB    *db.DB
	Clock *clock.Clock
}

// Messaging is the domain. It is safe for concurrent use.
type Messaging struct {
	db      *db.DB
	clock   *clock.Clock
	senders *fresh.Cache[senderKey, Sender]
}

// New builds the domain.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, clock: d.Clock}
	m.senders = fresh.New(d.Clock, senderFreshness, cachedSenders, func(ctx context.Context, k senderKey) (Sender, error) {
		return m.loadSender(ctx, k)
	})
	return m
}
