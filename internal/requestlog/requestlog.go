// Package requestlog keeps the requests of the JSON interface that were refused or failed, with endpoint, status,
// message and address. A merchant's developer finds the fault of a request here by its request id.
//
// The log never delays a request. Record puts a request into a queue of fixed length and returns. One writer
// stores batches from the queue in the database, with a lower priority than payments. In each minute the log takes
// a limited number of requests of a tenant, so that one tenant cannot displace the requests of others. All
// requests without a valid key share a smaller limit, so the log has only a sample of them. Requests beyond a
// limit are dropped and counted. The rows are limited by age and, for each tenant, by number. Bodies are not
// stored, and digits are masked. So a row contains no phone number, no key and no secret.
package requestlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
)

// The limits of the log.
const (
	KeepFor       = 30 * 24 * time.Hour
	KeepOfTenant  = 10_000 // rows
	aMinute       = 60     // maximum number of rows of one tenant on one node in a minute
	aMinuteNoKey  = 20     // maximum number of rows of all requests without a key in a minute
	maxShares     = 10_000 // tenants that are counted in a minute
	queued        = 2048   // requests that wait to be written
	batchRows     = 256
	gatherFor     = 250 * time.Millisecond
	writeWithin   = 10 * time.Second
	keptText      = 500   // bytes of a message or an id
	keptFields    = 2_000 // bytes of all fields
	pruneAtOnce   = 1_000 // rows in one transaction
	maxOfOneID    = 50    // requests of one request id
	lookedAt      = 10_000
	defaultOfList = 50
	maxOfList     = 200
)

// Request is one request that was refused or failed.
type Request struct {
	ID        string // made by Record
	RequestID string
	Tenant    string // empty if the request had no valid key
	At        time.Time
	Took      time.Duration
	Method    string
	Endpoint  string // a path of the table of routes, or "other"
	Status    int    // 400 to 599
	Code      string
	Message   string
	Fields    map[string][]string // errors by field
	Key       string              // the id of the API key
	Origin    string              // address of the client
}

// Log is the log of one node. It is safe for concurrent use.
type Log struct {
	db      *db.DB
	clock   *clock.Clock
	log     *slog.Logger
	queue   chan Request
	flush   chan chan struct{}
	stop    chan struct{}
	done    sync.WaitGroup
	dropped *prometheus.CounterVec

	mu     sync.Mutex
	minute time.Time
	shares map[string]int // number of rows in this minute, by tenant
}

// New makes a log. Until Start it takes requests and writes none.
func New(d *db.DB, c *clock.Clock, log *slog.Logger) *Log {
	return &Log{db: d, clock: c, log: log, queue: make(chan Request, queued), flush: make(chan chan struct{}), stop: make(chan struct{}), shares: map[string]int{},
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_request_log_dropped_total",
			Help: "Refused and failed requests that are not in the log of requests, by reason: the limit of their account, no key, a full queue, or an error of the database."}, []string{"reason"})}
}

// Collectors gives the metrics for a registry.
func (l *Log) Collectors() []prometheus.Collector { return []prometheus.Collector{l.dropped} }

// Record takes a request for the log. It never waits. A status below 400 or above 599 is not for this log.
func (l *Log) Record(r Request) {
	if r.Status < 400 || r.Status > 599 {
		return
	}
	if !l.fits(r.Tenant) {
		reason := "tenant"
		if r.Tenant == "" {
			reason = "no_key"
		}
		l.dropped.WithLabelValues(reason).Inc()
		return
	}
	r.ID = uuid.Must(uuid.NewV7()).String()
	r.redact()
	select {
	case l.queue <- r:
	default:
		l.dropped.WithLabelValues("queue").Inc()
	}
}

// fits counts a request and reports whether it is within the tenant's limit of this minute.
func (l *Log) fits(tenant string) bool {
	most := aMinute
	if tenant == "" {
		most = aMinuteNoKey
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.clock.Now().Truncate(time.Minute); !now.Equal(l.minute) {
		l.minute = now
		clear(l.shares)
	}
	had, known := l.shares[tenant]
	if had >= most || !known && len(l.shares) >= maxShares {
		return false
	}
	l.shares[tenant] = had + 1
	return true
}

// number matches possible phone, account or card numbers.
var number = regexp.MustCompile(`[0-9]{6,}`)

// redacted returns a text without numbers, of limited length, in a form that both engines can store.
func redacted(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	return number.ReplaceAllStringFunc(text, func(digits string) string {
		if digits == msisdn.Example {
			return digits // example number in a message, which stays
		}
		return strings.Repeat("•", len(digits)-3) + digits[len(digits)-3:]
	})
}

func (r *Request) redact() {
	r.Message, r.Code, r.Endpoint, r.Method = redacted(r.Message, keptText), redacted(r.Code, keptText), redacted(r.Endpoint, keptText), redacted(r.Method, keptText)
	fields, size := map[string][]string{}, 0
	for name, texts := range r.Fields {
		name = redacted(name, keptText)
		for _, text := range texts {
			text = redacted(text, keptText)
			if size += len(name) + len(text); size <= keptFields {
				fields[name] = append(fields[name], text)
			}
		}
	}
	r.Fields = fields
}

// Start starts the writer.
func (l *Log) Start() {
	l.done.Add(1)
	go l.write()
}

// Stop writes the waiting requests and ends the writer. Call it once, after Start.
func (l *Log) Stop(ctx context.Context) error {
	close(l.stop)
	ended := make(chan struct{})
	go func() { l.done.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Flush waits until everything recorded before the call is written or dropped.
func (l *Log) Flush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case l.flush <- done:
	case <-l.stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) write() {
	defer l.done.Done()
	var batch []Request
	gather := time.NewTimer(time.Hour)
	gather.Stop()
	defer gather.Stop()
	for {
		select {
		case r := <-l.queue:
			if batch = append(batch, r); len(batch) == 1 {
				gather.Reset(gatherFor)
			}
			if len(batch) == batchRows {
				batch = l.writeBatch(batch)
			}
		case <-gather.C:
			batch = l.writeBatch(batch)
		case done := <-l.flush:
			batch = l.drain(batch)
			close(done)
		case <-l.stop:
			l.drain(batch)
			return
		}
	}
}

// drain writes the gathered and queued requests.
func (l *Log) drain(batch []Request) []Request {
	for range queued {
		select {
		case r := <-l.queue:
			if batch = append(batch, r); len(batch) == batchRows {
				batch = l.writeBatch(batch)
			}
			continue
		default:
		}
		break
	}
	return l.writeBatch(batch)
}

var columns = []db.Column[Request]{
	{Name: "id", Text: func(r Request) string { return r.ID }},
	{Name: "tenant", Text: func(r Request) string { return r.Tenant }},
	{Name: "request_id", Text: func(r Request) string { return r.RequestID }},
	{Name: "at", Time: func(r Request) time.Time { return r.At }},
	{Name: "took", Int: func(r Request) int64 { return r.Took.Microseconds() }},
	{Name: "method", Text: func(r Request) string { return r.Method }},
	{Name: "endpoint", Text: func(r Request) string { return r.Endpoint }},
	{Name: "status", Int: func(r Request) int64 { return int64(r.Status) }},
	{Name: "code", Text: func(r Request) string { return r.Code }},
	{Name: "message", Text: func(r Request) string { return r.Message }},
	{Name: "fields", Text: fieldsText},
	{Name: "api_key", Text: func(r Request) string { return r.Key }},
	{Name: "origin", Text: func(r Request) string { return r.Origin }},
}

func fieldsText(r Request) string {
	text, err := json.Marshal(r.Fields)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// writeBatch writes requests and returns the emptied slice. A batch that cannot be stored is dropped and counted.
func (l *Log) writeBatch(batch []Request) []Request {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	err := l.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		db.Insert(tx, "refused_requests", columns, batch)
		return nil
	})
	if err != nil {
		l.dropped.WithLabelValues("database").Add(float64(len(batch)))
		l.log.Warn("failed to write request log", "rows", len(batch), "error", err)
	}
	return batch[:0]
}
