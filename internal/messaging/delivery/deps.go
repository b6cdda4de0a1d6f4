package delivery

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

const (
	// freshness is the maximum age of a cached value.
	freshness = time.Second
	// cached is the maximum number of values in each cache.
	cached = 10_000
)

// Deps are the dependencies of Delivery.
type Deps struct {
	DB     *db.DB
	Ledger *ledger.Ledger
	Jobs   *jobs.Queue
	Codes  *otp.Codes
	Watch  *recovery.Watch // records commits; nil in commands and tests
	Clock  *clock.Clock
	Log    *slog.Logger
	// SMS has the rail of each mode. If another node has the connections of a rail, the rail returns
	// provider.ErrElsewhere. That node then delivers the messages that are accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend makes campaign messages that a crash left unknown be sent again. Some may then arrive twice. One-time
	// passwords are never sent again.
	Resend bool
	// Validity is how long mobile operators try to deliver a campaign's message. 0 sets no limit. They try to deliver
	// a one-time password until it expires.
	Validity time.Duration
	// KeepTexts is how long the text of a finished campaign is kept. 0 means for ever.
	KeepTexts time.Duration
	// Hours are the hours in which promotional texts are sent.
	Hours config.Hours
	// OptedOut returns the numbers of a list that opted out of the tenant's campaigns. nil in tests: none did.
	OptedOut func(ctx context.Context, tenant string, list []msisdn.MSISDN) (map[msisdn.MSISDN]bool, error)
	// Recovery keeps campaigns back while the database may have lost the record of messages that were sent. It is nil
	// in tests that have no recovery.
	Recovery *recovery.Recovery
}

// systemic reports whether an error concerns the database and not a single request, so that splitting the batch would
// not help.
func systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}
