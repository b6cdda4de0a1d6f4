// Package messaging sends texts for tenants: it prices and charges campaigns and one-time passwords in SMS credits,
// hands each segment to a mobile operator through an SMS rail, and matches the operators' receipts. Contacts,
// sender IDs and the codes of one-time passwords (package otp) are packages of their own.
//
// A campaign is accepted in one transaction: its row, its recipients in chunks, the charge and the jobs. Each
// chunk is delivered by a job; the messages that are submitted next are marked in the database before the first octet
// leaves. Messages that no operator accepted are refunded once. A small campaign, such as a single message, is one
// chunk, which is stored in the campaign's row; where this node can submit it at once, the transaction that charges
// it also marks it. SMPP has no idempotency key: a message that was written and not answered is unknown. Only a
// setting (Deps.Resend) has such a message sent again, and a one-time password never is. One owner at a time delivers
// a chunk, because every step names the turn that the step before it left.
//
// Files, each standing on those below it alone; no two of them need each other:
//
//	otp.go, stopped_campaigns.go      SendOTP; campaigns that an operator stopped
//	campaign.go, campaign_report.go   Send: checks, the text and its price (package smstext counts); campaigns and their messages, for tenants and operators
//	recipients.go, quota.go           the numbers and groups of a send; quotas
//	credits.go, credits_report.go     sales of credits; credits and costs
//	binds.go                          connections with message centres
//	check.go, erasure.go              the books of messages; a person's number, found and erased
//	messaging.go                      the domain, and how its parts are put together
//	admission.go                      the transaction that charges and stores campaigns
//	volley.go, chunk_delivery.go      the jobs: several small campaigns, or one chunk
//	chunk_takeover.go                 a chunk whose owner is gone
//	chunk_step_lane.go, chunk_step_writes.go, chunk_step.go
//	                                  many commits of deliveries in one transaction, what they write, and one of them
//	sweep.go                          what is deleted, and after how long
//	in_flight.go                      messages at the operator
//	unknown_messages.go               messages without an answer, and receipts that may be theirs
//	unmatched_receipts.go             receipts without a message, counted and explained
//	chunk_turn.go, sending_marks.go   the turn of the owner; how many campaigns may be marked with their charge
//	receipts.go, early_receipts.go    receipts, also those before the answer to their submit
//	chunk_work.go, chunk.go           a chunk's delivery in memory; its row and jobs
//	submission.go                     the judge of an operator's answers
//	credit_transfers.go, metrics.go   charges and refunds; what a node counts
//	campaign_recovery.go              campaigns that a recovery keeps back
//	campaign_row.go, message.go       the rows
//	deps.go                           what New needs
package messaging

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/prometheus/client_golang/prometheus"
)

// register registers the handlers of each mode that has a rail. A chunk is taken by the node that has the connections
// of its mode.
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
	metrics  metrics
	senders  *senderid.Store
	contacts *contacts.Store

	// Codes are the one-time passwords.
	Codes *otp.Codes

	admissions *admissionLane
	delivery   *delivery
	receipts   *receiptBook
}

// New builds the domain and registers its jobs; the queue's Start sets them going. A command, which
// delivers nothing and knows no codes, gives neither SMS nor Secret.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, jobs: d.Jobs, answers: d.Answers, senders: d.Senders, contacts: d.Contacts, clock: d.Clock, sms: d.SMS,
		quotas: d.Quotas, recovery: d.Recovery, metrics: newMetrics()}
	m.Codes = otp.New(otp.Deps{DB: d.DB, Ledger: d.Ledger, Tenants: d.Tenants, Answers: d.Answers, Clock: d.Clock, Log: d.Log,
		Secret: d.Secret, Tap: d.OTPTap, Keep: d.KeepOTPs})
	m.receipts = newReceiptBook(d, m.metrics)
	m.delivery = newDelivery(d, m.Codes, m.receipts, m.metrics)
	m.admissions = newAdmissionLane(d, m.delivery, m.Codes)
	m.register()
	swept := &retention{texts: d.KeepTexts, db: d.DB, clock: d.Clock, receipts: m.receipts, codes: m.Codes}
	m.jobs.Periodic("messaging-sweep", sweepEvery, swept.sweep)
	m.jobs.Periodic("messaging-receipts", earlyPassEvery, m.receipts.matchRecentReceipts)
	m.jobs.Periodic("messaging-unmatched", unmatchedAfter, m.receipts.logUnmatched)
	return m
}

// Receive queues an operator's receipt without waiting. Of several for one message the first that is queued counts.
// stored returns when the receipt is committed, so that it can be acknowledged.
func (m *Messaging) Receive(ctx context.Context, r provider.Receipt) (stored func() error) {
	return m.receipts.receive(ctx, r)
}

// UnmatchedReceipts counts the receipts that have matched no message for so long that none will come.
func (m *Messaging) UnmatchedReceipts(ctx context.Context) (UnmatchedReceipts, error) {
	return m.receipts.unmatched(ctx)
}

// Drain stops marking campaigns with their charge, and waits until the marked ones are submitted, at most drainFor or
// until ctx ends. It is called when no request is accepted any more and before the queue's Stop, which begins no job:
// a campaign that is marked and never submitted would be unknown to its next owner.
func (m *Messaging) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	m.delivery.sendingMarks.drain(ctx, m.delivery.clock)
}

// Close waits for the transactions that are under way. It is called after the queue's Stop and after the rails are
// closed, because receipts come in until then.
func (m *Messaging) Close() {
	m.admissions.lane.Close()
	m.delivery.steps.lane.Close()
	m.receipts.lane.Close()
}

// Collectors gives the metrics of this node for a registry.
func (m *Messaging) Collectors() []prometheus.Collector {
	return append(m.Codes.Collectors(), m.metrics.messages, m.metrics.segments, m.metrics.receipts, m.metrics.reports)
}
