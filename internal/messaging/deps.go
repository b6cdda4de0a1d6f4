package messaging

import (
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// Deps is everything that the domain needs.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Jobs     *jobs.Queue
	Answers  *idempotency.Answers
	Senders  *senderid.Store
	Contacts *contacts.Store
	Watch    *recovery.Watch // observes commits; nil in commands and tests
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret // the keys of one-time passwords are derived from it
	// SMS are the rails by mode. A tenant of a mode without a rail is refused as Unavailable. A rail whose
	// connections are on another node answers provider.ErrElsewhere, and that node delivers the messages that are
	// accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend has campaign messages that a crash left unknown sent again, so that some may arrive twice. One-time
	// passwords are never sent again.
	Resend bool
	// Validity is how long operators try to deliver a campaign's message; 0 sets no end. A one-time password is tried
	// until it expires.
	Validity time.Duration
	// KeepOTPs is how long the row of a one-time password stays after it expired; 0 is 7 days.
	KeepOTPs time.Duration
	// KeepTexts is how long the text of a campaign that is over stays; 0 is for ever.
	KeepTexts time.Duration
	// Quotas bound what one tenant stores; a member of 0 is no bound.
	Quotas config.Quotas
	// OTPTap closes ranges of numbers to which too few one-time passwords are verified; Sends of 0: never.
	OTPTap config.OTPTap
	// Recovery delays campaigns while a restored database may lack messages that were sent. It is nil in tests
	// without a recovery.
	Recovery *recovery.Recovery
}
