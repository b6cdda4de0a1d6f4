// Package otp creates and verifies one-time passwords. It stores a keyed hash of each code and limits sends to a
// number and tries. It closes ranges of numbers of which too few codes are verified. Package messaging charges for a
// code and delivers its text.
//
// A file depends only on files that are listed below it:
//
//	make.go, verify.go       a new code and its text; verification of a code
//	batch.go                 the codes that one transaction charges
//	closed_ranges.go         closed ranges of numbers, for operators
//	sweep.go                 retention, and erasure of a number
//	otp.go                   the domain
//	limits.go, tap.go        limits for each number; closing of ranges
//	code.go, metrics.go      codes and their keys; counters of a node
package otp

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/tenant"
	"github.com/prometheus/client_golang/prometheus"
)

// defaultKeep is how long the row of a code is kept after it expired, unless Deps.Keep is set.
const defaultKeep = 7 * 24 * time.Hour

// Deps are the dependencies of Codes.
type Deps struct {
	DB      *db.DB
	Ledger  *ledger.Ledger
	Tenants *tenant.Store
	Answers *idempotency.Answers
	Clock   *clock.Clock
	Log     *slog.Logger
	Secret  config.Secret // the keys of codes are derived from it; empty if no code is made or verified
	Tap     config.OTPTap // configures the closing of number ranges; Sends of 0: none is closed
	Keep    time.Duration // how long a row is kept after its code expired; 0 is 7 days
}

// Codes creates and verifies one-time passwords. It is safe for concurrent use.
type Codes struct {
	db      *db.DB
	ledger  *ledger.Ledger
	tenants *tenant.Store
	answers *idempotency.Answers
	clock   *clock.Clock
	log     *slog.Logger
	keys    keys
	tap     config.OTPTap
	keep    time.Duration
	metrics metrics
}

// New returns Codes.
func New(d Deps) *Codes {
	return &Codes{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, answers: d.Answers, clock: d.Clock, log: d.Log,
		keys: newKeys(d.Secret), tap: d.Tap, keep: cmp.Or(d.Keep, defaultKeep), metrics: newMetrics()}
}

// Collectors returns the metrics of this node for a registry.
func (c *Codes) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.sent, c.metrics.verified, c.metrics.tapsClosed}
}
