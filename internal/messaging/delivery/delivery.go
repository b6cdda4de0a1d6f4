// Package delivery accepts checked campaigns and delivers their messages. It charges and stores a campaign, submits
// its messages to the mobile operators and matches the operators' receipts. It refunds messages that no operator
// accepted. Package messaging checks what an account may send, and is its only caller.
//
// Accept writes a campaign in one transaction: its row, its recipients in chunks, the charge and the jobs. A job
// delivers each chunk. The next messages are claimed in the database before the first octet leaves. A small campaign,
// such as a single message, is one chunk, which is stored in the campaign's row. If this node can submit it at once,
// the transaction that charges it also claims it.
//
// The recipients of a campaign may have texts of their own, all of the campaign's encoding, segments and credits. They are
// stored in the chunks, also of a campaign of few recipients, and deleted with the last message.
//
// SMPP has no idempotency key, so a written message without an answer is unknown. Such a message is sent again only
// with Deps.Resend, and a one-time password never is. A chunk has one owner at a time, because every step needs the
// turn that the step before it set.
//
// A file depends only on files that are listed below it:
//
//	delivery.go                       the package's interface and its construction
//	check.go, erasure.go              consistency of messages and ledger; the rows of an erased number
//	admission_together.go             several campaigns in one transaction
//	admission.go                      the transaction that charges and stores campaigns
//	small_batch.go, chunk_delivery.go
//	                                  the jobs: several small campaigns, or one chunk with its bound of claimed messages
//	chunk_takeover.go                 takeover of a chunk whose owner died
//	chunk_step_commit.go, chunk_step_writes.go, chunk_step.go
//	                                  group commit of delivery steps, their writes, and one step
//	sweep.go, poll.go                 retention; states of messages at providers that push no reports
//	in_flight.go                      messages at the operator
//	unknown_messages.go               messages without an answer, and receipts that may belong to them
//	unmatched_receipts.go             receipts without a message, counted and explained
//	chunk_turn.go, sending_claims.go  the owner's fencing token; limit of campaigns claimed with their charge
//	receipts.go, early_receipts.go    receipts, also those before the answer to their submit
//	chunk_work.go, chunk.go           a chunk's delivery in memory; its row and jobs
//	submission.go                     decision on an operator's answers
//	credit_transfers.go, metrics.go   charges and refunds; counters of a node
//	campaign_row.go, message.go       the rows
//	deps.go                           dependencies
package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/prometheus/client_golang/prometheus"
)

// Delivery accepts and delivers campaigns. It is safe for concurrent use.
type Delivery struct {
	db         *db.DB
	jobs       *jobs.Queue
	clock      *clock.Clock
	metrics    metrics
	admissions *admissionCommit
	runner     *runner
	receipts   *receiptBook
	poller     *poller
}

// New returns a Delivery and registers its jobs, which run after the queue's Start.
func New(d Deps) *Delivery {
	m := &Delivery{db: d.DB, jobs: d.Jobs, clock: d.Clock, metrics: newMetrics()}
	m.receipts = newReceiptBook(d, m.metrics)
	m.poller = &poller{db: d.DB, receipts: m.receipts, from: map[tenant.Mode]time.Time{}}
	m.runner = newRunner(d, m.receipts, m.metrics)
	m.admissions = newAdmissionCommit(d, m.runner)
	m.register(d.SMS)
	swept := &retention{texts: d.KeepTexts, db: d.DB, clock: d.Clock, receipts: m.receipts, codes: d.Codes}
	m.jobs.Periodic("messaging-sweep", sweepEvery, swept.sweep)
	m.jobs.Periodic("messaging-receipts", earlyPassEvery, m.receipts.matchRecentReceipts)
	m.jobs.Periodic("messaging-unmatched", unmatchedAfter, m.receipts.logUnmatched)
	return m
}

// register registers the job handlers of each mode that has a rail. The node that has the connections of a mode takes
// the mode's chunks.
func (d *Delivery) register(rails map[tenant.Mode]provider.SMSSender) {
	for _, mode := range []tenant.Mode{tenant.Test, tenant.Live} {
		sender := rails[mode]
		if sender == nil {
			continue
		}
		takes := func() bool { return !errors.Is(sender.Ready(""), provider.ErrElsewhere) }
		d.jobs.Register(jobs.Handler{Kind: bulkKind(mode), Workers: bulkWorkers, Key: chunkTenant, Run: d.runner.deliver, Takes: takes})
		d.jobs.Register(jobs.Handler{Kind: ownTextsKind(mode), Workers: bulkWorkers, Key: chunkTenant, Run: d.runner.deliver, Takes: takes})
		d.jobs.Register(jobs.Handler{Kind: smallKind(mode), Workers: smallWorkers, Key: chunkTenant, Run: d.runner.deliver, Takes: takes})
		d.jobs.Register(jobs.Handler{Kind: smallBatchKind(mode), Workers: smallWorkers, Run: d.runner.deliverSmallBatch, Takes: takes})
	}
}

// Accept charges and stores a campaign, which is delivered afterwards. If replayed is set, c is the campaign that was
// accepted earlier with the caller's idempotency key. Errors: Invalid (an idempotency key with another body),
// InsufficientCredits with Shortage as Data, RateLimited (a one-time password's number, or its range).
func (d *Delivery) Accept(ctx context.Context, o Order) (c Campaign, replayed bool, err error) {
	if len(o.Numbers) <= stagedAbove {
		return d.admissions.accept(ctx, o.admission())
	}
	return d.admissions.acceptStaged(ctx, o.admission())
}

// AcceptTogether charges and stores several campaigns of one tenant in one transaction, or none of them. also runs in that
// transaction. The error is InsufficientCredits with Shortage as Data if the credits do not cover all of them.
func (d *Delivery) AcceptTogether(ctx context.Context, orders []Order, also func(tx *db.Tx) error) error {
	list := make([]*admission, len(orders))
	for i, o := range orders {
		list[i] = o.admission()
	}
	return d.admissions.acceptTogether(ctx, list, also)
}

// Earlier returns the campaign that was accepted with the caller's idempotency key. Call it before other checks of
// the request, because the request may refer to something that was deleted since. Accept checks again.
func (d *Delivery) Earlier(ctx context.Context, caller idempotency.Caller) (c Campaign, replayed bool, err error) {
	return d.admissions.earlier(ctx, caller)
}

const stopCampaign = `UPDATE campaigns SET status = 'stopped' WHERE tenant = $1 AND id = $2 AND status = 'active'`

// Stop stops an active campaign in tx. The node that delivers it detects the stop before its next messages. It also
// checks between messages in flight that take longer than freshness. The unsent messages then fail and are refunded.
func (d *Delivery) Stop(tx *db.Tx, tenant, id string) {
	tx.Defer(stopCampaign, 1, tenant, id)
	tx.AfterCommit(func() {
		d.runner.states.Forget(campaignKey{tenant, id})
		d.jobs.Wake(id)
	})
	d.jobs.WakeIn(tx, id) // a scheduled campaign waits at any node
}

// Receive queues a mobile operator's receipt without waiting. Of several receipts for one message, the first that is
// queued counts. stored returns when the receipt is committed, so that it can be acknowledged.
func (d *Delivery) Receive(ctx context.Context, r provider.Receipt) (stored func() error) {
	return d.receipts.receive(ctx, r)
}

// PollStates queries the states of open messages at a provider that sends no reports, at most atOnce at a time. ask
// queries one message by the provider's own id.
func (d *Delivery) PollStates(ctx context.Context, mode tenant.Mode, name string, atOnce int, ask func(context.Context, string) (provider.Receipt, bool)) error {
	return d.poller.poll(ctx, mode, name, atOnce, ask)
}

// UnmatchedReceipts counts the receipts that have matched no message for so long that none is expected.
func (d *Delivery) UnmatchedReceipts(ctx context.Context) (UnmatchedReceipts, error) {
	return d.receipts.unmatched(ctx)
}

// Check compares all campaigns and messages with the ledger and with each other on one snapshot, and returns the
// differences.
func (d *Delivery) Check(ctx context.Context) (Report, error) { return check(ctx, d.db, d.clock.Now()) }

// Drain ends the claiming of campaigns in the transaction that charges them. It waits for the claimed ones to be
// submitted, up to drainFor or until ctx ends. Call it after the last request and before the queue's Stop. After Stop
// no job begins, and the next owner would treat a claimed campaign as unknown.
func (d *Delivery) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	d.runner.claims.drain(ctx, d.clock)
}

// Close waits for running transactions. Call it after the queue's Stop and after the rails are closed, because
// receipts arrive until then.
func (d *Delivery) Close() {
	d.admissions.committer.Close()
	d.runner.steps.committer.Close()
	d.receipts.committer.Close()
}

// Collectors returns the metrics of this node for a registry.
func (d *Delivery) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.metrics.messages, d.metrics.segments, d.metrics.receipts, d.metrics.reports}
}
