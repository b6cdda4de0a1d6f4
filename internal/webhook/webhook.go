// Package webhook notifies customers of the outcome of their payments: it signs events and delivers them to the
// addresses that came with the requests.
//
// An event is queued in the transaction in which it happens, and its bytes are fixed there. Every attempt and every
// replay sends the same body under the same webhook-id, signed by the Standard Webhooks scheme. If a person was
// erased from an event, its bytes have changed, and it is not replayed. A 2xx response within 15 seconds is a
// delivery. Once a delivery is recorded, the event is never sent again. Otherwise the event is tried ten times over
// about 75 hours, and each failed attempt is kept for people. A newer event of a subject replaces older ones that
// were not delivered.
//
// Addresses come from customers and are not trusted. Only HTTPS to public addresses is used, checked on the address
// that is dialled. Redirects are not followed. Only the status of a response counts, and only a part of it is read. A
// receiver is a host together with a tenant. A slow or unknown receiver has few connections, and its deliveries run
// in a separate pool of workers. All tenants share this pool, and each tenant has few places in it. So a slow
// receiver delays no quick receiver of any tenant, even at the same host.
//
// Files:
//
//	webhook.go     events: queued with their bodies
//	deliver.go     the job of an event: one attempt, its record, the next one
//	send.go        one request to a receiver, and the meaning of its response
//	pools.go       parts of the workers for quick, new and slow receivers, and the tenants' shares of them
//	traffic.go     concurrent requests of a receiver, its tenant and its host
//	poster.go      single requests to hosts of the operator
//	url.go         allowed addresses
//	tunnel.go      the same addresses through an egress proxy
//	secret.go      the secrets by which a tenant's events are signed
//	reseal.go      secrets under another master key
//	endpoints.go   addresses of an account with their rates of success
//	failing.go     accounts whose webhooks fail
//	log.go         deliveries and attempts for people, and replays
//	erasure.go     a person's number, erased from bodies, addresses and responses
package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/outbound"
)

// Kind selects the body of an event.
type Kind string

// The kinds.
const (
	Payout     Kind = "payout"
	Collection Kind = "collection"
	Airtime    Kind = "airtime"
	// Received is a text from a handset. Its caller makes the body.
	Received Kind = "sms.received"
	// BatchEnded is the end of a batch. Its caller makes the body.
	BatchEnded Kind = "batch.finished"
)

// OfPayment reports whether an event of this kind is about a payment. Other events have a body of their own.
func (k Kind) OfPayment() bool { return k != Received && k != BatchEnded }

// Event is a change of which a customer asked to be notified.
type Event struct {
	ID                string // the webhook-id, a UUIDv7 made before the transaction's first run
	Tenant            string
	Mode              string // "test" or "live"
	Subject           string // our id of the payment
	Kind              Kind
	URL               string // an address that CheckURL accepts
	Amount, Charges   money.Pesewas
	Status            string // "success" or "failed"
	Reference         string
	ProviderReference string
	RefundOf          string // of refunds: the client's reference of the collection
	Phone             string // in local form; collections only
	Body              []byte // of an event that is not about a payment
	Trace             string // traceparent of the payment's request; empty: none
	// First means that the subject has no earlier event, which saves a query.
	First bool
}

// Options configure Webhooks. Zero values select the defaults given here.
type Options struct {
	Secret      config.Secret   // the master key that encrypts the secrets of tenants
	Development bool            // allows addresses of this machine, also without TLS
	Workers     int             // total number of concurrent deliveries; default 256
	Keep        time.Duration   // how long an event is kept after its end; default Kept
	Timeout     time.Duration   // maximum time of one attempt; default 15 s
	RootCAs     *x509.CertPool  // nil: the certificates of the system
	Proxy       *outbound.Proxy // nil: direct connections to receivers
}

// jobKind never changes, because rows outlive programs.
const jobKind = "webhook"

// Webhooks queues, signs and delivers events. It is safe for concurrent use.
type Webhooks struct {
	db      *db.DB
	queue   *jobs.Queue
	clock   *clock.Clock
	log     *slog.Logger
	opts    Options
	sealer  *config.Sealer
	keys    *cache.Cache[string, [][]byte]
	client  *client
	traffic traffic
	records *groupcommit.Committer[record, struct{}]

	mu         sync.Mutex
	unrecorded map[string]record        // results that are not stored yet because the database is unavailable, by event
	superseded map[string]time.Duration // subjects that got a further event recently, and when, by Elapsed
	explained  clock.Seldom             // limits log lines about missing responses at the usual level
	counts     Counts
}

// Counts has the numbers of deliveries of this node since its start.
type Counts struct {
	Delivered  uint64
	Failed     uint64 // failed attempts
	GivenUp    uint64 // events that were given up
	Superseded uint64
}

// New returns the webhooks of a node and registers their handler with the queue, which must not have started. Without
// a master key (Options.Secret), everything that needs the secrets of tenants fails, including deliveries. Commands
// that need no secrets omit the key.
func New(d *db.DB, q *jobs.Queue, c *clock.Clock, log *slog.Logger, o Options) *Webhooks {
	if o.Workers <= 0 {
		o.Workers = 256
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	w := &Webhooks{
		db: d, queue: q, clock: c, log: log, opts: o, sealer: o.Secret.Sealer(sealLabel),
		client:     newClient(o),
		traffic:    newTraffic(),
		unrecorded: map[string]record{},
		superseded: map[string]time.Duration{},
	}
	w.keys = cache.New(c, time.Second, 10_000, w.loadKeys)
	w.records = groupcommit.New(groupcommit.Options{Systemic: systemic}, w.writeRecords)
	shares := newPools(o.Workers, w.traffic.pool)
	q.Register(jobs.Handler{
		Kind: jobKind, Workers: o.Workers,
		Key: hostOf, PerKey: func(string) int { return maxPerHost }, Tenant: tenantOf, PerTurn: w.traffic.limit,
		Enter: shares.enter, Leave: shares.leave,
		Run: w.deliver,
	})
	q.Periodic("webhook-prune", pruneEvery, func(ctx context.Context) error {
		_, err := w.Prune(ctx, w.clock.Now().Add(-cmp.Or(o.Keep, Kept)))
		return err
	})
	return w
}

// Check refuses an address to which this installation delivers no events.
func (w *Webhooks) Check(url string) error { return CheckURL(url, w.opts.Development) }

// Counts returns this node's counts.
func (w *Webhooks) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// event is an event as it is stored and delivered.
type event struct {
	tenant, subject, id string
	mode                string
	kind                Kind
	url                 string
	body                []byte
	created             time.Time
	queued              time.Duration // by Elapsed; set only for a new event
	attempts            int           // number of earlier attempts
	host, trace         string
}

var eventColumns = []db.Column[*event]{
	{Name: "tenant", Text: func(e *event) string { return e.tenant }},
	{Name: "subject", Text: func(e *event) string { return e.subject }},
	{Name: "id", Text: func(e *event) string { return e.id }},
	{Name: "mode", Text: func(e *event) string { return e.mode }},
	{Name: "kind", Text: func(e *event) string { return e.paymentKind() }},
	{Name: "url", Text: func(e *event) string { return e.url }},
	{Name: "body", Text: func(e *event) string { return string(e.body) }},
	{Name: "state", Text: func(*event) string { return string(Pending) }},
	{Name: "attempts", Int: func(*event) int64 { return 0 }},
	{Name: "status", Int: func(*event) int64 { return 0 }},
	{Name: "took", Int: func(*event) int64 { return 0 }},
	{Name: "error", Text: func(*event) string { return "" }},
	{Name: "created_at", Time: func(e *event) time.Time { return e.created }},
	{Name: "ended_at", Int: func(*event) int64 { return 0 }},
	{Name: "failed_at", Int: func(*event) int64 { return 0 }},
	{Name: "trace", Text: func(e *event) string { return e.trace }},
	{Name: "event", Text: func(e *event) string { return e.name() }},
}

// kindColumn is the kind of an event in its row.
const kindColumn = `CASE WHEN event <> '' THEN event ELSE kind END`

// name is the name of an event that is not about a payment.
func (e *event) name() string {
	if e.kind.OfPayment() {
		return ""
	}
	return string(e.kind)
}

// paymentKind is the value of the column kind, which has only kinds of payments.
func (e *event) paymentKind() string {
	if e.name() != "" {
		return string(Payout)
	}
	return string(e.kind)
}

// subject is the id of an event with its tenant and the id of its subject. Statements take sets of it.
type subject struct{ tenant, subject, id string }

var subjectColumns = []db.Column[subject]{
	{Name: "tenant", Text: func(s subject) string { return s.tenant }},
	{Name: "subject", Text: func(s subject) string { return s.subject }},
	{Name: "id", Text: func(s subject) string { return s.id }},
}

const sqlSupersede = `UPDATE webhook_events SET state = 'superseded', ended_at = $2
	FROM rows($1) AS n
	WHERE webhook_events.tenant IN (n.tenant) AND webhook_events.subject = n.subject
	AND webhook_events.id <> n.id AND webhook_events.state = 'pending'`

// Queue queues events in the transaction in which they happen. They are delivered after the commit.
func (w *Webhooks) Queue(tx *db.Tx, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	now, elapsed := w.clock.Reading()
	rows := make([]*event, len(events))
	work := make([]jobs.Job, len(events))
	var later []subject
	for i, e := range events {
		body, err := bodyOf(e)
		if err != nil {
			return err
		}
		if e.ID == "" {
			e.ID = newID()
		}
		rows[i] = &event{
			tenant: e.Tenant, subject: e.Subject, id: e.ID, mode: e.Mode, kind: e.Kind, url: e.URL,
			body: body, created: now, queued: elapsed, host: hostPart(e.URL), trace: e.Trace,
		}
		work[i] = jobOf(rows[i])
		if !e.First {
			later = append(later, subject{e.Tenant, e.Subject, e.ID})
		}
	}
	if len(later) > 0 {
		tx.Defer(sqlSupersede, -1, db.RowsOf(subjectColumns, later), now)
		tx.AfterCommit(func() { w.supersede(later, elapsed) })
	}
	db.Insert(tx, "webhook_events", eventColumns, rows)
	w.queue.Add(tx, work...)
	return nil
}

// supersede stores the subjects of newer events for a moment. An older event of such a subject that is still in
// memory then reads its row before it is sent.
func (w *Webhooks) supersede(subjects []subject, now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.superseded) > 10_000 {
		for s, at := range w.superseded {
			if now-at > 2*freshFor {
				delete(w.superseded, s)
			}
		}
	}
	for _, s := range subjects {
		w.superseded[s.tenant+"/"+s.subject] = now
	}
}

// The documented bodies. The order of their members never changes, for readers who compare bodies by eye.
type fiveFields struct {
	Amount            string `json:"amount"`
	Charges           string `json:"charges"`
	Status            string `json:"status"`
	Reference         string `json:"transaction_id"`
	ProviderReference string `json:"ext_transaction_id"`
	RefundOf          string `json:"refund_of,omitempty"`
}

type collectionFields struct {
	fiveFields
	Phone string `json:"phone_number"`
}

// bodyOf returns the body of an event.
func bodyOf(e Event) ([]byte, error) {
	if !e.Kind.OfPayment() {
		return e.Body, nil
	}
	if e.Status != "success" && e.Status != "failed" {
		return nil, fmt.Errorf("webhook: an event has the unknown status %q", e.Status)
	}
	five := fiveFields{
		Amount: e.Amount.String(), Charges: e.Charges.String(), Status: e.Status,
		Reference: e.Reference, ProviderReference: e.ProviderReference, RefundOf: e.RefundOf,
	}
	switch e.Kind {
	case Payout, Airtime:
		return json.Marshal(five)
	case Collection:
		return json.Marshal(collectionFields{fiveFields: five, Phone: e.Phone})
	}
	return nil, fmt.Errorf("webhook: an event has the unknown kind %q", e.Kind)
}

// payload is the content of an event's job, version 1.
type payload struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
	Host    string `json:"host"`
}

// jobOf returns the job of an event. The job has no subject, so that Wake for the payment does not bring its webhook
// forward.
func jobOf(e *event) jobs.Job {
	text, err := json.Marshal(payload{Tenant: e.tenant, Subject: e.subject, Host: e.host})
	if err != nil {
		panic(fmt.Sprintf("webhook: %v", err)) // strings can always be marshalled
	}
	return jobs.Job{ID: e.id, Kind: jobKind, Payload: text, Memo: e}
}

// tenantOf returns the tenant of a delivery.
func tenantOf(job jobs.Job) string {
	if e, ok := job.Memo.(*event); ok {
		return e.tenant
	}
	var p payload
	if err := json.Unmarshal(job.Payload, &p); err != nil {
		return ""
	}
	return p.Tenant
}

// hostOf returns the host of a delivery, by which the queue groups deliveries.
func hostOf(job jobs.Job) string {
	if e, ok := job.Memo.(*event); ok {
		return e.host
	}
	var p payload
	if err := json.Unmarshal(job.Payload, &p); err != nil {
		return ""
	}
	return p.Host
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
