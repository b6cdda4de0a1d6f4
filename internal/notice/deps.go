package notice

import (
	"context"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps are the dependencies of Notices.
type Deps struct {
	DB      *db.DB
	Jobs    *jobs.Queue
	People  *identity.Identity
	Tenants *tenant.Store
	Clock   *clock.Clock
	Log     *slog.Logger
	Audit   *audit.Log
	SMTP    config.SMTP
	// Seal keeps the texts of messages with a link; nil: none are sent.
	Seal *config.Sealer
	// PublicURL is the address of this server in links, without a slash at its end; empty: messages have no links.
	PublicURL string
	// Request returns a change request as its readers see it.
	Request func(ctx context.Context, id string) (Request, error)
	// Watch reports the conditions that last. It runs before each round of messages.
	Watch func(ctx context.Context) error
	// Ways are the channels besides mail.
	Ways config.Notices
	// Poster sends to the hook; nil: there is none.
	Poster *webhook.Poster
	// Text sends an SMS to a number, once for an id; nil: none are sent.
	Text func(ctx context.Context, id, number, text string) error
}

// Notices notifies people. It is safe for concurrent use.
type Notices struct {
	Deps
	pauses []time.Duration // between the attempts of a message; the last one repeats
}

// Request is a change request as its readers see it.
type Request struct {
	Place       string           // whose people decide about it
	Title       string           // its kind, a noun
	Account     string           // the name of the account that it is about; empty: none
	Amount      money.Pesewas    // 0: no money
	Requester   string           // how people know who made it
	Barred      []string         // the ids of people who may not approve it: who made it, or has the key that did
	RequesterID string           // the id of who made it
	Approver    roles.Permission // that an approver needs
	Waits       bool             // for an approval
	Decided     bool             // by somebody else than its requester
	About       string           // the e-mail address of the person whom it changes; empty: none
	Note        string           // why it was rejected, or failed
}
