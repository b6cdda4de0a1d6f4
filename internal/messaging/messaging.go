// Package messaging sends texts for tenants: it keeps their contacts and the numbers that want no
// messages, prices and charges campaigns and one-time passwords in SMS credits, hands each segment to
// an operator through an SMS rail, and knows what became of it.
//
// A campaign is accepted in one transaction (its row, its recipients in chunks, the charge, the jobs),
// delivered chunk by chunk with a mark before each submit, and refunded once for what no operator
// accepted. A small one, such as a single message, is a chunk by itself, in its own row, and where it can
// be submitted at once it is marked in the transaction that charges it. SMPP has no idempotency key:
// what was written and not answered is unknown and is sent again only where a setting says so, a one-time
// password never. One owner at a time delivers a chunk: each of its transactions names the turn that the
// one before left, and a node that was taken for dead finds another there and stops.
package messaging

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/fresh"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/prometheus/client_golang/prometheus"
)

// register says who works on chunks.
func (m *Messaging) register() {
	for _, mode := range []tenant.Mode{tenant.Test, tenant.Live} {
		sender := m.sms[mode]
		if sender == nil {
			continue
		}
		takes := func() bool { return !errors.Is(sender.Ready(""), provider.ErrElsewhere) }
		m.jobs.Register(jobs.Handler{Kind: bulkKind(mode), Workers: bulkWorkers, Key: chunkTenant, Run: m.delivery.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: smallKind(mode), Workers: smallWorkers, Key: chunkTenant, Run: m.delivery.deliver, Takes: takes})
		m.jobs.Register(jobs.Handler{Kind: volleyKind(mode), Workers: smallWorkers, Run: m.delivery.deliverVolley, Takes: takes})
	}
}

// Messaging is the domain. It is safe for concurrent use.
type Messaging struct {
	db       *db.DB
	recovery *recovery.Recovery
	ledger   *ledger.Ledger
	tenants  *tenant.Store
	jobs     *jobs.Queue
	answers  *idempotency.Answers
	clock    *clock.Clock
	sms      map[tenant.Mode]provider.SMSSender
	quotas   config.Quotas
	otp      otpKeys
	metrics  metrics
	senders  *senderid.Store
	optOuts  *fresh.Cache[string, bool]

	admissions *admissionLane
	delivery   *delivery
	receipts   *receiptBook
}

// New builds the domain and registers its jobs; the queue's Start sets them going. A command, which
// delivers nothing and knows no codes, gives neither SMS nor Secret.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, jobs: d.Jobs, answers: d.Answers, senders: d.Senders, clock: d.Clock, sms: d.SMS,
		quotas: d.Quotas, recovery: d.Recovery, metrics: newMetrics()}
	if !d.Secret.Empty() {
		m.otp = otpKeys{code: d.Secret.Derive("messaging/otp-code"), hash: d.Secret.Derive("messaging/otp-hash")}
	}
	m.optOuts = fresh.New(d.Clock, freshness, cached, m.loadOptOuts)
	m.receipts = newReceiptBook(d, m.metrics)
	m.delivery = newDelivery(d, m.otp, m.receipts, m.metrics)
	m.admissions = newAdmissionLane(d, m.delivery, m.metrics)
	m.register()
	swept := &retention{db: d.DB, clock: d.Clock, receipts: m.receipts}
	m.jobs.Periodic("messaging-sweep", sweepEvery, swept.sweep)
	m.jobs.Periodic("contacts-sweep", groupsSweepEvery, m.sweepGroups)
	m.jobs.Periodic("messaging-receipts", earlyPassEvery, m.receipts.matchRecentReceipts)
	return m
}

// Receive stores an operator's receipt; it is committed when Receive returns, so that the operator may be told so.
func (m *Messaging) Receive(ctx context.Context, r provider.Receipt) error {
	return m.receipts.receive(ctx, r)
}

// OrphanReceipts counts the receipts that have matched no message for so long that none will come.
func (m *Messaging) OrphanReceipts(ctx context.Context) (OrphanReceipts, error) {
	return m.receipts.orphanReceipts(ctx)
}

// Drain ends the marks with the charge and waits for those that were made to be submitted, as long as ctx
// lasts and drainFor. It comes when nothing is accepted any more, and before the queue's Stop, which begins
// no job: what is marked and never submitted would be unknown to the next owner.
func (m *Messaging) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	m.delivery.sendingMarks.drain(ctx)
}

// Close waits for the transactions that are under way. It comes after the queue's Stop and after the
// rails, whose receipts come in to the end.
func (m *Messaging) Close() {
	m.admissions.lane.Close()
	m.delivery.steps.lane.Close()
	m.receipts.lane.Close()
}

// Collectors gives the metrics of this node for a registry.
func (m *Messaging) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.metrics.messages, m.metrics.segments, m.metrics.receipts, m.metrics.reports, m.metrics.sent, m.metrics.verified, m.metrics.tapsClosed}
}
