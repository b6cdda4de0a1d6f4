package messaging

import (
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

const (
	// freshness is how old what is cached may be.
	freshness = time.Second
	// cached is how many of each a node remembers.
	cached = 10_000
)

// Deps is what messaging stands on.
type Deps struct {
	DB      *db.DB
	Ledger  *ledger.Ledger
	Tenants *tenant.Store
	Jobs    *jobs.Queue
	Answers *idempotency.Answers
	Senders *senderid.Store
	Watch   *recovery.Watch // nil: nobody watches (commands, tests)
	Clock   *clock.Clock
	Log     *slog.Logger
	Secret  config.Secret // the keys of one-time passwords are derived from it
	// SMS are the rails by mode. A tenant of a mode without one is refused with Unavailable. A rail whose
	// connection another node has says provider.ErrElsewhere: that node delivers what is accepted here.
	SMS map[tenant.Mode]provider.SMSSender
	// Resend says that campaign messages whose fate a crash left unknown are sent again, so that some
	// may come twice. One-time passwords never are.
	Resend bool
	// Validity is how long operators try to deliver a message of a campaign; 0: as long as they like. A one-time
	// password is tried until it expires.
	Validity time.Duration
	// Quotas bound what one tenant stores; a member of 0 is no bound.
	Quotas config.Quotas
	// OTPTap closes ranges of numbers to which too few one-time passwords are verified; Sends of 0: never.
	OTPTap config.OTPTap
	// Recovery holds campaigns back while the database may have forgotten what was sent; nil: it never does (tests).
	Recovery *recovery.Recovery
}

// systemic errors are nobody's fault in the batch.
func systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}
