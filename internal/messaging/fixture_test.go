package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// patience is the longest wait of a test; only a failing test reaches it.
const patience = 3 * time.Minute

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// operator is an SMS rail whose answers a test decides. It records the segments that it was offered.
type operator struct {
	mu     sync.Mutex
	answer func(n int, s provider.Segment) provider.Outcome // n counts the offers of this part from 1
	taken  map[string]int                                   // offers by recipient, text and part
	texts  []sms
	last   int
	keep   func(s provider.Segment) bool // says that the answer does not come before let; nil: none is kept
	kept   []func()
	// The queue reads it under its own lock, which must not wait for an answer that a test delays.
	ready atomic.Pointer[error]
}

// sms is a segment that was offered.
type sms struct {
	from, to, text string
	part, parts    int
	group          uint16
	validity       time.Duration
	outcome        provider.Outcome
}

func newOperator() *operator {
	o := &operator{taken: map[string]int{}}
	o.answer = func(int, provider.Segment) provider.Outcome { return o.accept() }
	return o
}

// accept makes an accepted outcome with a new id. Answers call it under the lock.
func (o *operator) accept() provider.Outcome {
	o.last++
	return provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprintf("id-%06d", o.last)}
}

func (o *operator) script(answer func(n int, s provider.Segment) provider.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *operator) setReady(err error) { o.ready.Store(&err) }

func (o *operator) Ready(msisdn.Network) error {
	if err := o.ready.Load(); err != nil {
		return *err
	}
	return nil
}

func (o *operator) Submit(_ context.Context, s provider.Segment, done func(provider.Outcome)) {
	o.mu.Lock()
	key := fmt.Sprintf("%s %d %s", s.To, s.Part, s.Octets)
	o.taken[key]++
	outcome := o.answer(o.taken[key], s)
	o.texts = append(o.texts, sms{s.From, string(s.To), smstext.Decode(s.Octets, s.Encoding), s.Part, s.Parts, s.Group, s.Validity, outcome})
	kept := o.keep != nil && o.keep(s)
	if kept {
		o.kept = append(o.kept, func() { done(outcome) })
	}
	o.mu.Unlock()
	if !kept {
		done(outcome)
	}
}

// keeps delays the answers to some numbers until let.
func (o *operator) keeps(numbers ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep = func(s provider.Segment) bool { return slices.Contains(numbers, string(s.To)) }
}

// let gives the delayed answers.
func (o *operator) let() {
	o.mu.Lock()
	kept := o.kept
	o.kept, o.keep = nil, nil
	o.mu.Unlock()
	for _, answer := range kept {
		answer()
	}
}

func (o *operator) all() []sms {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]sms(nil), o.texts...)
}

// The outcomes that tests give.
var (
	refused   = provider.Outcome{Class: provider.Rejected, Code: "0x0000000b"}
	throttled = provider.Outcome{Class: provider.NotSent, Code: "0x00000058", RetryAfter: time.Second}
	silence   = provider.Outcome{Class: provider.Unknown, Message: "no answer to the submit"}
)

// fixture is one node with everything that messaging needs.
type fixture struct {
	lost *recovery.Recovery
	*Messaging
	t        *testing.T
	d        *db.DB
	clock    *clock.Clock
	queue    *jobs.Queue
	operator *operator
	tenant   tenant.Tenant
	sender   senderid.Sender
}

// options are what tests vary of a node.
type options struct {
	node    string
	resend  bool
	valid   time.Duration
	sleep   bool // the queue is not started
	credits int64
	at      *clock.Clock
	rail    *operator
	tap     config.OTPTap
	log     *slog.Logger
}

func node(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	if o.rail == nil {
		o.rail = newOperator()
	}
	return nodeOn(t, d, o, o.rail)
}

// nodeWith is another node on the fixture's database, with a rail of its own.
func nodeWith(t *testing.T, h *fixture, rail provider.SMSSender) *fixture {
	t.Helper()
	other := nodeOn(t, h.d, options{node: "another", at: h.clock}, rail)
	other.tenant, other.sender = h.tenant, h.sender
	return other
}

func nodeOn(t *testing.T, d *db.DB, o options, rail provider.SMSSender) *fixture {
	t.Helper()
	h := &fixture{t: t, d: d, clock: o.at, operator: o.rail}
	if h.clock == nil {
		h.clock = clock.NewManual(morning)
	}
	if o.node == "" {
		o.node = "one"
	}
	log := cmp.Or(o.log, slog.New(slog.DiscardHandler))
	l := ledger.New(d, h.clock, o.node)
	secret, err := config.NewSecret([]byte("a master key of thirty-two octets"))
	if err != nil {
		t.Fatal(err)
	}
	h.queue = jobs.New(d, h.clock, log, jobs.Options{Node: o.node, LeaseFor: time.Hour, Heartbeat: time.Hour})
	h.lost = recovery.New(d, h.clock, log)
	tenants, answers := tenant.New(d, l, h.clock), idempotency.NewAnswers(d, h.clock)
	h.Messaging = New(Deps{Recovery: h.lost, DB: d, Ledger: l, Tenants: tenants, Jobs: h.queue, Answers: answers, Senders: senderid.New(d, tenants, answers, h.clock, config.Quotas{}), Contacts: contacts.New(d, tenants, answers, h.clock, config.Quotas{}), Clock: h.clock, Log: log, Secret: secret,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: rail}, Resend: o.resend, Validity: o.valid, OTPTap: o.tap})
	if !o.sleep {
		h.start()
	}
	t.Cleanup(h.Close)
	return h
}

func (h *fixture) start() {
	h.t.Helper()
	if err := h.queue.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := h.queue.Stop(context.Background()); err != nil {
			h.t.Errorf("stop: %v", err)
		}
	})
}

// retention is the sweep of the node.
func (h *fixture) retention() *retention {
	return &retention{db: h.d, clock: h.clock, receipts: h.receipts, codes: h.Codes}
}

// open makes a node with a tenant that has credits and an approved sender ID.
func open(t *testing.T, d *db.DB, o options) *fixture {
	t.Helper()
	h := node(t, d, o)
	h.tenant, h.sender = h.customer("shop", o.credits, "Kejetia")
	return h
}

func (h *fixture) customer(id string, credits int64, sender string) (tenant.Tenant, senderid.Sender) {
	h.t.Helper()
	var made tenant.Tenant
	h.write(func(tx *db.Tx) (err error) {
		made, err = h.tenants.Create(tx, tenant.Tenant{ID: id, Name: id, Mode: tenant.Live})
		return err
	})
	if credits > 0 {
		h.write(func(tx *db.Tx) error {
			_, err := h.SellCredits(tx, id, "sale of "+id, credits)
			return err
		})
	}
	s, _, err := h.senders.Request(h.t.Context(), idempotency.Caller{Tenant: id}, sender, "a shop")
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(func(tx *db.Tx) error {
		s, err = h.senders.Review(tx, id, s.ID, senderid.Approved, "", "a tester")
		return err
	})
	return made, s
}

func (h *fixture) write(fn func(*db.Tx) error) {
	h.t.Helper()
	if err := h.d.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) caller() idempotency.Caller {
	return idempotency.Caller{Tenant: h.tenant.ID, Key: "key"}
}

func (h *fixture) send(text string, to ...string) (Campaign, error) {
	c, _, err := h.Send(h.t.Context(), h.caller(), Send{SenderID: h.sender.ID, Message: text, Recipients: to})
	return c, err
}

// mustSend sends, and lets the node work until nothing is due.
func (h *fixture) mustSend(text string, to ...string) Campaign {
	h.t.Helper()
	c, err := h.send(text, to...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.quiet()
	return c
}

// stalled is how long a node may work before quiet moves the clock. Only an overloaded machine comes to it.
const stalled = 20 * time.Second

// quiet lets the node work until nothing is due.
func (h *fixture) quiet() {
	h.t.Helper()
	h.quietOr(stalled)
}

// quietOr is quiet that moves the clock after each stretch of work. A step that a busy database refused waits by the clock
// for its next try, and nobody else moves it.
func (h *fixture) quietOr(stretch time.Duration) {
	h.t.Helper()
	retry := leastRetry
	for until := time.Now().Add(patience); ; h.clock.Advance(retry) {
		ctx, cancel := context.WithTimeout(h.t.Context(), stretch)
		err := h.queue.Quiet(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			h.t.Fatalf("never quiet: %v; %+v", err, h.queue.Counts())
		}
		retry = min(2*retry, mostRetry)
	}
}

// pass advances the clock and lets the node work until nothing is due.
func (h *fixture) pass(d time.Duration) {
	h.t.Helper()
	h.clock.Advance(d)
	h.quiet()
}

func (h *fixture) balance() int64 {
	h.t.Helper()
	n, err := h.ledger.Balance(h.t.Context(), h.tenant.SMSCredits())
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *fixture) wantBalance(want int64) {
	h.t.Helper()
	if n := h.balance(); n != want {
		h.t.Errorf("%d credits are left, expected %d", n, want)
	}
}

// messages reads all rows that the tenant sees of a campaign.
func (h *fixture) messages(c Campaign) []Message {
	h.t.Helper()
	var all []Message
	for page := int64(1); ; page++ {
		p, err := h.CampaignMessages(h.t.Context(), c.Tenant, c.ID, page, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, p.Messages...)
		if len(p.Messages) == 0 {
			if int64(len(all)) != p.Total {
				h.t.Errorf("the pages hold %d messages, the total says %d", len(all), p.Total)
			}
			return all
		}
	}
}

// wantStatus checks the states of a campaign's messages in order, as "2 delivered, 1 invalid".
func (h *fixture) wantStatus(c Campaign, want string) {
	h.t.Helper()
	var got []string
	n := 0
	list := h.messages(c)
	for i, m := range list {
		n++
		if i+1 == len(list) || list[i+1].Status != m.Status {
			got = append(got, fmt.Sprintf("%d %s", n, m.Status))
			n = 0
		}
	}
	if g := strings.Join(got, ", "); g != want {
		h.t.Errorf("the messages are %s, expected %s", g, want)
	}
}

func (h *fixture) status(c Campaign) CampaignStatus {
	h.t.Helper()
	found, err := h.Campaign(h.t.Context(), c.Tenant, c.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return found.Status
}

// sound checks the books of messages and of the ledger.
func (h *fixture) sound() {
	h.t.Helper()
	r, err := h.Check(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range r.Problems {
		h.t.Error(p)
	}
	books, err := h.ledger.Check(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range books.Problems {
		h.t.Error(p)
	}
}

// receipt delivers a receipt for an id.
func (h *fixture) receipt(id, to string, state provider.Delivery) {
	h.t.Helper()
	if err := h.Receive(h.t.Context(), provider.Receipt{UpstreamID: id, State: state, Code: "000", At: h.clock.Now(), To: msisdn.MSISDN(to)})(); err != nil {
		h.t.Fatal(err)
	}
}

func numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("23324%07d", i)
	}
	return list
}

func wantKind(t *testing.T, err error, k problem.Kind) *problem.Error {
	t.Helper()
	if !problem.Is(err, k) {
		t.Fatalf("got %v, expected %s", err, k)
	}
	var p *problem.Error
	errors.As(err, &p)
	return p
}

func each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.Each(t, fn)
}

// Receipted is the state in a receipt.
type Receipted = provider.Delivery

const (
	delivered   = provider.Delivered
	undelivered = provider.DeliveryFailed
)

func (h *fixture) count(sql string, args ...any) (n int64) {
	h.t.Helper()
	err := h.d.Read(h.t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(sql, args, &n)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *fixture) group(tenant string, phones ...string) contacts.Group {
	h.t.Helper()
	g, _, err := h.contacts.AddGroup(h.t.Context(), idempotency.Caller{Tenant: tenant}, "customers", "")
	if err != nil {
		h.t.Fatal(err)
	}
	list := make([]contacts.NewContact, len(phones))
	for i, p := range phones {
		list[i].Phone = p
	}
	if added, _, err := h.contacts.AddContacts(h.t.Context(), idempotency.Caller{Tenant: tenant}, g.ID, list); err != nil || added.New != len(phones) {
		h.t.Fatalf("%d of %d contacts were added: %v", added.New, len(phones), err)
	}
	return g
}

// A busy machine's database refuses a step, as when a writer waits too long. The fixture does not wait for ever.
func TestQuiet_givesARefusedStepItsNextTry(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 10})
		var refusals atomic.Int64
		h.operator.script(func(int, provider.Segment) provider.Outcome {
			f.Decide(func(db.Boundary) db.Fault {
				if refusals.Add(1) > 30 {
					return db.FaultNone
				}
				return db.FaultBefore
			})
			return h.operator.accept()
		})
		c, err := h.send("hello", "0241234567")
		if err != nil {
			t.Fatal(err)
		}
		h.quietOr(50 * time.Millisecond)
		h.wantStatus(c, "1 submitted")
		h.sound()
	})
}
