package inbox

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Deps is everything that the store needs. A command that only reads and assigns sets DB, Tenants and Clock.
type Deps struct {
	DB        *db.DB
	Tenants   *tenant.Store
	Contacts  *contacts.Store
	Webhooks  *webhook.Webhooks
	Messaging *messaging.Messaging
	Jobs      *jobs.Queue
	Clock     *clock.Clock
	Log       *slog.Logger
	Words     config.OptOutWords
	Keep      time.Duration // a text; 0 is 90 days
}

// defaultKeep is how long a text is kept.
const defaultKeep = 90 * 24 * time.Hour

// Store keeps the texts of all accounts. It is safe for concurrent use.
type Store struct {
	Deps
	words     map[string]Word
	texts     *prometheus.CounterVec
	committer *groupcommit.Committer[received, outcome]
}

// received is a text or part as an operator sent it.
type received struct {
	provider.Incoming
	mode tenant.Mode
	id   string
}

// outcome is the result of receiving a text or a part.
type outcome string

const (
	stored     outcome = "stored"
	partStored outcome = "part"
	repeated   outcome = "repeated"
	unassigned outcome = "unassigned"
	dropped    outcome = "dropped"
)
