// Package messaging sends texts for tenants. It checks and prices campaigns and one-time passwords, sells the SMS
// credits that pay for them, and reports the state of each message. Package delivery charges, stores and delivers an
// accepted campaign. Contacts, sender IDs and the codes of one-time passwords (package otp) are separate packages.
//
// A file depends only on files that are listed below it:
//
//	otp.go, stopped_campaigns.go      SendOTP; campaigns that an operator stopped
//	answer.go                         answers to texts from handsets
//	composed.go                       campaigns in which each recipient has a text
//	campaign.go, campaign_report.go   Send with its checks and price; campaigns and their messages, for tenants and operators
//	recipients.go, quota.go           numbers and groups of a send; quotas
//	credits.go, credits_report.go     sales of credits; credits and costs
//	binds.go, erasure.go              connections with message centres; search for and erasure of a number
//	messaging.go                      the domain and its construction
//	types.go                          types of package delivery for callers
//	deps.go                           dependencies
package messaging

import (
	"context"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/prometheus/client_golang/prometheus"
)

// Messaging is the domain. It is safe for concurrent use.
type Messaging struct {
	db       *db.DB
	recovery *recovery.Recovery
	ledger   *ledger.Ledger
	tenants  *tenant.Store
	clock    *clock.Clock
	sms      map[tenant.Mode]provider.SMSSender
	quotas   config.Quotas
	senders  *senderid.Store
	contacts *contacts.Store
	hours    config.Hours

	// Codes creates and verifies one-time passwords.
	Codes *otp.Codes

	delivery *delivery.Delivery
}

// New returns the domain and registers its jobs, which run after the queue's Start. A command delivers no messages
// and creates no codes, so it sets neither SMS nor Secret.
func New(d Deps) *Messaging {
	m := &Messaging{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, senders: d.Senders, contacts: d.Contacts, clock: d.Clock, sms: d.SMS,
		quotas: d.Quotas, recovery: d.Recovery, hours: d.Hours}
	m.Codes = otp.New(otp.Deps{DB: d.DB, Ledger: d.Ledger, Tenants: d.Tenants, Answers: d.Answers, Clock: d.Clock, Log: d.Log,
		Secret: d.Secret, Tap: d.OTPTap, Keep: d.KeepOTPs})
	m.delivery = delivery.New(delivery.Deps{DB: d.DB, Ledger: d.Ledger, Jobs: d.Jobs, Codes: m.Codes, Watch: d.Watch, Clock: d.Clock, Log: d.Log,
		SMS: d.SMS, Hours: d.Hours, OptedOut: m.optedOut, Resend: d.Resend, Validity: d.Validity, KeepTexts: d.KeepTexts, Recovery: d.Recovery})
	return m
}

// optedOut returns the numbers of a list that opted out.
func (m *Messaging) optedOut(ctx context.Context, tenant string, list []msisdn.MSISDN) (out map[msisdn.MSISDN]bool, err error) {
	some, err := m.contacts.HasOptOuts(ctx, tenant)
	if err != nil || !some {
		return nil, err
	}
	return db.Get(ctx, m.db, func(tx *db.Tx) (map[msisdn.MSISDN]bool, error) { return contacts.OptedOut(tx, tenant, list) })
}

// Receive queues a mobile operator's receipt without waiting. Of several receipts for one message, the first that is
// queued counts. stored returns when the receipt is committed, so that it can be acknowledged.
func (m *Messaging) Receive(ctx context.Context, r provider.Receipt) (stored func() error) {
	return m.delivery.Receive(ctx, r)
}

// PollStates queries the states of open messages at a provider that sends no reports, at most atOnce at a time. ask
// queries one message by the provider's own id.
func (m *Messaging) PollStates(ctx context.Context, mode tenant.Mode, name string, atOnce int, ask func(context.Context, string) (provider.Receipt, bool)) error {
	return m.delivery.PollStates(ctx, mode, name, atOnce, ask)
}

// UnmatchedReceipts counts the receipts that have matched no message for so long that none is expected.
func (m *Messaging) UnmatchedReceipts(ctx context.Context) (UnmatchedReceipts, error) {
	return m.delivery.UnmatchedReceipts(ctx)
}

// Check compares all campaigns and messages with the ledger and with each other on one snapshot.
func (m *Messaging) Check(ctx context.Context) (Report, error) { return m.delivery.Check(ctx) }

// Drain ends the claiming of campaigns in the transaction that charges them, and waits until the claimed ones are
// submitted. Call it after the last request and before the queue's Stop.
func (m *Messaging) Drain(ctx context.Context) { m.delivery.Drain(ctx) }

// Close waits for running transactions. Call it after the queue's Stop and after the rails are closed, because
// receipts arrive until then.
func (m *Messaging) Close() { m.delivery.Close() }

// Collectors returns the metrics of this node for a registry.
func (m *Messaging) Collectors() []prometheus.Collector {
	return append(m.Codes.Collectors(), m.delivery.Collectors()...)
}
