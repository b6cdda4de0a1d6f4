package delivery

import (
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

const (
	// freshness is the greatest age of a cached value.
	freshness = time.Second
	// cached is the number of values that each cache holds.
	cached = 10_000
)

// Deps are the parts that New needs.
type Deps struct {
	DB     *db.DB
	Ledger *ledger.Ledger
	Jobs   *jobs.Queue
	Codes  *otp.Codes
	Watch  *recovery.Watch // notes commits; nil in commands and tests
	Clock  *clock.Clock
	Log    *slog.Logger
	// SMS are the rails by mode. A rail whose connections are on another node returns provider.ErrElsewhere, and that
	// node delivers the messages that are accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend repeats campaign messages that a crash left unknown. Some may then arrive twice. One-time passwords are
	// never sent again.
	Resend bool
	// Validity is how long operators try to deliver a campaign's message; 0 sets no end. A one-time password is tried
	// until it expires.
	Validity time.Duration
	// KeepTexts is how long the text of a finished campaign is kept; 0 keeps it for ever.
	KeepTexts time.Duration
	// Recovery keeps campaigns back while the database may have lost the record of messages that were sent. It is nil
	// in tests that have no recovery.
	Recovery *recovery.Recovery
}

// systemic errors concern the database and not a request of the batch: splitting the batch would not help.
func systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}
