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
	// Seal seals the texts of messages with a link. If it is nil, no links are sent.
	Seal *config.Sealer
	// PublicURL is the address of this server in links, without a slash at its end. If it is empty, messages have
	// no links.
	PublicURL string
	// Request returns a change request as its readers see it.
	Request func(ctx context.Context, id string) (Request, error)
	// Watch reports the current conditions. It runs before each round of messages.
	Watch func(ctx context.Context) error
	// Ways are the channels other than mail.
	Ways config.Notices
	// Poster sends requests to the hook. It is nil without a hook.
	Poster *webhook.Poster
	// Text sends an SMS to a number, once for each id. If it is nil, no SMS are sent.
	Text func(ctx context.Context, id, number, text string) error
}

// Notices notifies people. It is safe for concurrent use.
type Notices struct {
	Deps
	pauses []time.Duration // pauses between the attempts of a message; the last one repeats
}

// Request is a change request as its readers see it.
type Request struct {
	Place       string           // place whose people decide about it
	Title       string           // title of its kind, a noun
	Account     string           // name of the account that it concerns; empty: none
	Amount      money.Pesewas    // 0: no money
	Requester   string           // name of the requester for people
	Barred      []string         // ids of the people who may not approve it: the requester, or the person of the requesting key
	RequesterID string           // id of the requester
	Approver    roles.Permission // permission that an approver needs
	Waits       bool             // the request waits for an approval
	Decided     bool             // a person other than the requester approved it
	About       string           // e-mail address of the person whom it changes; empty: none
	Note        string           // reason of the rejection or failure
}
