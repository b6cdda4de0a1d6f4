// Package batch pays many people by one file. A file becomes a draft, each row of which is checked as the payout that it
// would be. A request freezes the rows; applying it moves their money from the wallet to a reserve, and the batch runs: its
// rows are accepted as payouts in their order, a set in each transaction. The batch's own row holds the rest of the reserve
// and the first row that is not decided. It is locked by everything that accepts, pauses, cancels or ends. So a process that
// dies leaves a batch that goes on exactly there, and each row is paid once or not at all.
//
// A row's reference is made of the batch's code, which is made of the account, the batch's name and its rows: the same file
// makes the same references before and after a restore of the database.
//
// Files, each standing on those below it alone:
//
//	build.go       how the parts are put together
//	sweep.go       batches and rows that waited for too long
//	results.go     what became of the rows
//	run.go         the job that accepts the rows of a batch
//	pause.go       batches paused, resumed and cancelled
//	send.go        a request frozen, withdrawn and applied
//	mend.go        rows of a draft changed and dropped
//	draft.go       a file becomes a draft
//	overlap.go     what earlier batches paid, and other warnings
//	erasure.go     a person's number and name, found and erased
//	check.go       whether batches agree with the ledger
//	recovered.go   what a recovery of the database does to batches
//	money.go       the reserve moved
//	job.go         the job of a batch that runs
//	store.go       the rows of the tables
//	batch.go       a batch, and what this package stands on
//	uploads.go     how many files are read at once
//	code.go        codes, references and digests
//	read.go        rows of files
//	states.go      the table of states
package batch

import (
	"log/slog"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// Batch is one file of payouts.
type Batch struct {
	ID         string // UUIDv7
	Tenant     string
	Mode       string // the tenant's
	Name       string // such as "Salaries November"
	Code       string
	Repetition int    // 0, or which repetition of the same rows it is
	Again      string // why it pays again what an earlier batch paid; empty: it does not
	Maker      string // who gave the file: the id of a person, or of an access key
	Key        string // the access key that sends it; empty: a person does
	Status     Status
	Cause      Cause // of a pause
	Notes      []string

	// The members that a request freezes.
	Digest  string
	blocks  []string
	Plan    int64 // version of the fee plan that made Charges
	Ready   int   // rows to be paid
	Amount  money.Pesewas
	Charges money.Pesewas
	Overlap int // rows that earlier batches paid

	Lines    int // rows of the file
	Accepted int // rows that are payouts
	Rest     money.Pesewas
	Next     int // the first line that is neither accepted nor refused
	version  int64

	CreatedAt, ChangedAt, RequestedAt, StartedAt, PausedAt, EndedAt time.Time
}

// Total is what the batch takes from the wallet.
func (b Batch) Total() money.Pesewas { return b.Amount + b.Charges }

// asset is the money of the batch.
func (b Batch) asset() ledger.Asset { return tenant.Tenant{Mode: tenant.Mode(b.Mode)}.Money() }

// Limits of batches.
const (
	MaxRows   = 100_000
	maxDrafts = 20 // of an account
	draftTime = 7 * 24 * time.Hour
	pauseTime = 7 * 24 * time.Hour // then a batch is cancelled
	maxReason = 500
)

// Deps is what batches stand on.
type Deps struct {
	DB       *db.DB
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Payments *payments.Payments
	Treasury *treasury.Treasury
	Jobs     *jobs.Queue
	Recovery *recovery.Recovery // nil: the database never goes back in time (tests)
	Clock    *clock.Clock
	Log      *slog.Logger
	Secret   config.Secret // codes are made under it
	Access   *access.Access
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
	setRows  int // accepted in one transaction
	runSets  int // accepted in one run of the job
	maxOpen  int
	access   *access.Access
}

// setRows is how many rows are accepted in one transaction. A run accepts the sets of one block.
const setRows = 100
