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

// Deps are the dependencies of Messaging.
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
	Secret   config.Secret // the keys for one-time passwords are derived from it
	// SMS has the rail of each mode. Requests of a tenant whose mode has no rail get Unavailable. If another node has
	// the connections of a rail, the rail returns provider.ErrElsewhere. That node then delivers the messages that
	// are accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend makes campaign messages that a crash left unknown be sent again. Some may then arrive twice. One-time
	// passwords are never sent again.
	Resend bool
	// Validity is how long mobile operators try to deliver a campaign's message. 0 sets no limit. They try to deliver
	// a one-time password until it expires.
	Validity time.Duration
	// KeepOTPs is how long the row of a one-time password is kept after it expired. 0 means 7 days.
	KeepOTPs time.Duration
	// KeepTexts is how long the text of a finished campaign is kept. 0 means for ever.
	KeepTexts time.Duration
	// Quotas limit what one tenant stores. A field of 0 means no limit.
	Quotas config.Quotas
	// OTPTap configures the closing of number ranges to which too few one-time passwords are verified. If Sends is 0,
	// no range is closed.
	OTPTap config.OTPTap
	// Hours are the hours in which texts of promotional sender IDs are sent.
	Hours config.Hours
	// Recovery delays campaigns while a restored database may lack messages that were sent. It is nil in tests
	// without a recovery.
	Recovery *recovery.Recovery
}
