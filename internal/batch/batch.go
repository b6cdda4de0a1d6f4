// Package batch pays many people by one file. A file becomes a draft, and each row is checked as a payout. A change
// request freezes the rows. Applying it moves their money from the wallet to a reserve and starts the batch: its rows
// are accepted as payouts in their order, in sets of one transaction each. The batch's own row stores the remaining
// reserve and the first undecided row. Every transaction that accepts, pauses, cancels or ends locks this row. If a
// process dies, the batch therefore continues exactly there, and each row is paid once or not at all.
//
// A row's reference derives from the batch's code, which derives from the account, the batch's name and its rows. The
// same file has the same references before and after a restore.
//
// A file depends only on files that are listed below it:
//
//	build.go       construction
//	sweep.go       expiry of batches and rows
//	program.go     requests of API keys
//	copy.go        drafts from the rows of another batch
//	results.go     results of the rows
//	counts.go      counts of rows by status
//	run.go         the job that accepts the rows of a batch
//	pause.go       pausing, resuming and cancelling
//	send.go        requests: freezing, withdrawing and applying
//	settle.go      networks and banks that a person gives to many rows
//	mend.go        changes of a draft's rows
//	mapping.go     uploaded files, and the columns that a person confirms
//	draft.go       drafts from files
//	names.go       lookup of registered names
//	overlap.go     rows that earlier batches paid, and other warnings
//	erasure.go     search for and erasure of a person's number and name
//	ended.go       batches that ended lately
//	check.go       consistency of batches and ledger
//	recovered.go   batches in a recovery
//	money.go       transfers of the reserve
//	notify.go      the event batch.finished
//	job.go         the job of a running batch
//	answers.go     answers to requests with an Idempotency-Key
//	store.go       rows of the tables
//	batch.go       the batch, the limits of drafts, and the dependencies of the package
//	tally.go       counts of the rows of a batch
//	uploads.go     limit of concurrent reads of files
//	pace.go        the size of sets, and the pauses between them
//	code.go        codes, references and digests
//	read.go        rows of files
//	banks.go       banks by name
//	compare.go     comparison of names
//	states.go      the table of states
package batch

import (
	"log/slog"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Batch is one file of payouts.
type Batch struct {
	ID         string // UUIDv7
	Tenant     string
	Mode       string // the tenant's
	Name       string // name, such as "Salaries November"
	Code       string
	Repetition int    // 0, or the number of this repetition of the same rows
	Again      string // reason to pay rows of an earlier batch again; empty: none
	Requester  string // id of the person or access key that uploaded the file
	Key        string // id of the access key that sends the batch; empty: a person sends it
	Status     Status
	Cause      Cause // cause of a pause
	Notes      []string

	// The following members are frozen by a request.
	Digest  string
	blocks  []string
	Plan    int64 // version of the fee plan that made Charges
	Ready   int   // rows to be paid
	Amount  money.Pesewas
	Charges money.Pesewas
	Overlap int // rows that earlier batches paid

	Lines    int // rows of the file
	Accepted int // rows that became payouts
	Rest     money.Pesewas
	Next     int // the first line that is neither accepted nor refused
	version  int64

	Scope     Scope     // rows whose registered names are looked up
	NamesAt   time.Time // when the oldest registered name was looked up; zero: there is none
	namesNext int       // the line from which names are looked up; 0: no lookup runs
	tally     *Counts   // counts of the rows; nil: not stored
	Request   string    // id of the change request for the batch

	CreatedAt, ChangedAt, RequestedAt, StartedAt, PausedAt, EndedAt time.Time
}

// Total returns the amount that the batch debits from the wallet.
func (b Batch) Total() money.Pesewas { return b.Amount + b.Charges }

// asset returns the ledger's asset for the batch's mode.
func (b Batch) asset() ledger.Asset { return tenant.Tenant{Mode: tenant.Mode(b.Mode)}.Money() }

// Limits of batches.
const (
	MaxRows   = 100_000
	maxDrafts = 20 // of an account
	draftTime = 7 * 24 * time.Hour
	pauseTime = 7 * 24 * time.Hour // a batch that was paused for this long is cancelled
	maxReason = 500
)

// Deps are the dependencies of Batches.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Payments *payments.Payments
	Treasury *treasury.Treasury
	Jobs     *jobs.Queue
	Recovery *recovery.Recovery // nil: no recovery can begin (tests)
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret // key of the batches' codes
	Access   *access.Access
	Routes   *route.Table // its banks
	Lookups  *lookup.Lookups
	Answers  *idempotency.Answers // nil: an Idempotency-Key has no effect (tests)
	Webhooks *webhook.Webhooks    // nil: no account is notified (tests)
}

// Batches are the files of payouts of all tenants. It is safe for concurrent use.
type Batches struct {
	db       *db.DB
	ledger   *ledger.Ledger
	tenants  *tenant.Store
	payments *payments.Payments
	treasury *treasury.Treasury
	jobs     *jobs.Queue
	recovery *recovery.Recovery
	clock    *clock.Clock
	log      *slog.Logger
	codes    codes
	uploads  uploads
	pace     pace
	runSets  int // sets that one run of the job accepts
	maxOpen  int
	access   *access.Access
	routes   *route.Table
	lookups  *lookup.Lookups
	answers  *idempotency.Answers
	webhooks *webhook.Webhooks
	overlaps *cache.Cache[overlapKey, []Overlap]

	maxLookups int
}
