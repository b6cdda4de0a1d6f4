package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// patience bounds each wait of a test. Only a failing test reaches it.
const patience = 3 * time.Minute

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// A scripted rail is a provider whose answers the test scripts. It counts its calls.
type scripted struct {
	mu          sync.Mutex
	onSubmit    func(n int, reference string) provider.Outcome // n counts the submissions of a reference from 1
	onQuery     func(n int, reference string) provider.Outcome
	slow        func(ctx context.Context) provider.Outcome // instead of onSubmit, with the context of the call
	submissions map[string]int
	queries     map[string]int
	gross       map[string]money.Pesewas
	party       map[string]string
	shop        shop // names and offers
}

func (s *scripted) post(ctx context.Context, reference string, amount money.Pesewas, party string) provider.Outcome {
	s.mu.Lock()
	s.submissions[reference]++
	s.gross[reference], s.party[reference] = amount, party
	n, answer, slow := s.submissions[reference], s.onSubmit, s.slow
	s.mu.Unlock()
	if slow != nil {
		return slow(ctx)
	}
	return answer(n, reference)
}

func (s *scripted) ask(r provider.StatusRequest) provider.Outcome {
	s.mu.Lock()
	s.queries[r.ProviderReference]++
	n, answer := s.queries[r.ProviderReference], s.onQuery
	echo := &provider.Echo{Reference: r.ProviderReference, Amount: s.gross[r.ProviderReference], AmountTold: true, Currency: "GHS", Party: s.party[r.ProviderReference]}
	s.mu.Unlock()
	o := answer(n, r.ProviderReference)
	if o.Class == provider.Accepted && o.Echo == nil {
		o.Echo = echo
	}
	return o
}

// script sets the answers to submissions and to queries.
func (s *scripted) script(post, ask func(n int, reference string) provider.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSubmit, s.onQuery = post, ask
}

func (s *scripted) counts() (posts, asks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.submissions {
		posts += n
	}
	for _, n := range s.queries {
		asks += n
	}
	return posts, asks
}

func (s *scripted) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	return s.post(ctx, r.ProviderReference, r.Amount, string(r.MSISDN))
}

func (s *scripted) CollectStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	return s.ask(r)
}

func (s *scripted) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	return s.post(ctx, r.ProviderReference, r.Amount, string(r.MSISDN))
}

func (s *scripted) DisburseStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	return s.ask(r)
}

// ofRefund is the prefix of references in scripts and counts if a call is a rail's own refund.
const ofRefund = "refund "

func (s *scripted) Refund(ctx context.Context, r provider.RefundRequest) provider.Outcome {
	return s.post(ctx, ofRefund+r.ProviderReference, r.Amount, "")
}

func (s *scripted) RefundStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	r.ProviderReference = ofRefund + r.ProviderReference
	o := s.ask(r)
	if o.Echo != nil {
		o.Echo.Reference = strings.TrimPrefix(o.Echo.Reference, ofRefund)
	}
	return o
}

func (s *scripted) TopUp(ctx context.Context, r provider.TopUpRequest) provider.Outcome {
	return s.post(ctx, r.ProviderReference, r.Amount, string(r.MSISDN))
}

func (s *scripted) TopUpStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	return s.ask(r)
}

// Common answers of scripts.
var (
	pending  = provider.Outcome{Class: provider.Accepted}
	success  = provider.Outcome{Class: provider.Accepted, State: provider.Success, UpstreamID: "up-1"}
	failed   = provider.Outcome{Class: provider.Accepted, State: provider.Failed, Reason: provider.ReasonFunds}
	rejected = provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
	bare     = provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonInvalidRequest}
	unsent   = provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable}
	barred   = provider.Outcome{Class: provider.Barred, Reason: provider.ReasonUnavailable} // 401, 403, 429
	unknown  = provider.Outcome{}
	notFound = provider.Outcome{NotFound: true}
	repeated = provider.Outcome{Class: provider.Accepted, Duplicate: true}
)

func always(o provider.Outcome) func(int, string) provider.Outcome {
	return func(int, string) provider.Outcome { return o }
}

// sequence returns the outcomes in order and repeats the last one.
func sequence(list ...provider.Outcome) func(int, string) provider.Outcome {
	return func(n int, _ string) provider.Outcome { return list[min(n, len(list))-1] }
}

// A fixture is a database with nodes and two rails: mtn refuses duplicates distinctly, hubtel does not.
type fixture struct {
	t      testing.TB
	db     *db.DB
	clock  *clock.Clock
	first  *scripted // "mtn": MayRepeat
	second *scripted // "hubtel"
	tenant tenant.Tenant
	hooks  *hooks
	n      int

	approval    ApprovalPolicy  // nil: no payout requires approval
	recovers    bool            // nodes use recoveries
	secret      config.Secret   // secret of the nodes; empty: zeros
	rails       []provider.Rail // instead of the two scripted rails
	callbackURL string
	callback    func(provider.Rail, provider.CallbackRequest)
}

// hooks is the customer's server. It stores the received statuses.
type hooks struct {
	*httptest.Server
	mu        sync.Mutex
	delivered map[string][]string // by transaction_id
}

func newHooks(t testing.TB) *hooks {
	h := &hooks{delivered: map[string][]string{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			TransactionID string `json:"transaction_id"`
			Status        string `json:"status"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("a webhook's body: %v", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.delivered[body.TransactionID] = append(h.delivered[body.TransactionID], body.Status)
	}))
	t.Cleanup(h.Close)
	return h
}

// of returns the statuses received for a reference.
func (h *hooks) of(reference string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.delivered[reference])
}

type node struct {
	*Payments
	*treasury.Treasury
	fixture  *fixture
	db       *db.DB
	ledger   *ledger.Ledger
	queue    *jobs.Queue
	routes   *route.Table
	webhooks *webhook.Webhooks
	lost     *recovery.Recovery // nil unless the fixture recovers
}

// funds is the initial balance of the tenant's wallet.
const funds = 1_000 * money.Cedi

func newFixture(t testing.TB, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{t: t, db: d, clock: clock.NewManual(morning), first: newScripted(), second: newScripted(), hooks: newHooks(t)}
	return h
}

func newScripted() *scripted {
	return &scripted{onSubmit: always(pending), onQuery: always(pending), submissions: map[string]int{}, queries: map[string]int{},
		gross: map[string]money.Pesewas{}, party: map[string]string{}}
}

// node starts a node.
func (h *fixture) node(name string) *node {
	h.t.Helper()
	return h.shaped(quietOptions(name))
}

// quietOptions configure a queue that keeps its lease and has enough memory.
func quietOptions(name string) jobs.Options {
	return jobs.Options{Node: name, LeaseFor: time.Hour, Heartbeat: time.Hour}
}

// shaped starts a node with queue options.
func (h *fixture) shaped(o jobs.Options) *node {
	h.t.Helper()
	n := h.made(o)
	if err := n.queue.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// stopped returns a node that runs no jobs, so other nodes run them. The first node creates the tenant.
func (h *fixture) stopped(name string) *node {
	h.t.Helper()
	return h.made(quietOptions(name))
}

func (h *fixture) made(o jobs.Options) *node {
	h.t.Helper()
	ctx := h.t.Context()
	log := slog.New(slog.NewTextHandler(h.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	rails := []provider.Rail{
		{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Collector: h.first, Disburser: h.first, Refunder: h.first, TopUpper: h.first},
		{Name: "hubtel", Mode: "test", VisibleAfter: 5 * time.Minute, UnpaidAfter: 5 * time.Minute, Collector: h.second, Disburser: h.second, TopUpper: h.second,
			WalletNames: h.second, BankNames: h.second, Bundles: h.second},
	}
	if h.rails != nil {
		rails = h.rails
	}
	l := ledger.New(h.db, h.clock, o.Node)
	q := jobs.New(h.db, h.clock, log, o)
	n := &node{fixture: h, db: h.db, ledger: l, queue: q, routes: route.New(h.db, h.clock, log, []string{"mtn", "hubtel", "paystack", "moolre"}, rails)}
	secret := h.secret
	if secret.Empty() {
		var err error
		if secret, err = config.NewSecret(make([]byte, config.SecretBytes)); err != nil {
			h.t.Fatal(err)
		}
	}
	n.webhooks = webhook.New(h.db, q, h.clock, log, webhook.Options{Secret: secret, Development: true})
	if h.recovers {
		n.lost = recovery.New(h.db, h.clock, log)
	}
	tenants := tenant.New(h.db, l, h.clock)
	n.Treasury = treasury.New(h.db, l, tenants, h.clock, log, n.routes.CheckFloat)
	n.Payments = New(Deps{
		Recovery: n.lost, Treasury: n.Treasury,
		DB: h.db, Ledger: l, Tenants: tenants, Jobs: q, Webhooks: n.webhooks, Routes: n.routes, Lookups: lookup.New(h.db, tenants, n.routes, h.clock),
		Clock: h.clock, Log: log, Secret: secret, Development: true,
		CallbackURL: func(provider.Rail) string { return h.callbackURL }, Approval: h.approval,
	})
	if err := errors.Join(n.routes.Seed(ctx)); err != nil {
		h.t.Fatal(err)
	}
	if h.tenant.ID == "" {
		h.tenant = n.newTenant(funds)
	}
	h.t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			h.t.Errorf("stop: %v", err)
		}
		n.Close()
	})
	return n
}

// newTenant creates a tenant with money in its wallet.
func (n *node) newTenant(amount money.Pesewas) tenant.Tenant {
	t := n.fixture.t
	t.Helper()
	var made tenant.Tenant
	err := n.db.Write(t.Context(), func(tx *db.Tx) (err error) {
		made, err = n.tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Test, CollectionsEnabled: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = n.db.Write(t.Context(), func(tx *db.Tx) error {
		if _, err := n.webhooks.EnsureSecret(tx, made.ID); err != nil {
			return err
		}
		_, err := n.tenants.SetFeePlan(tx, made.ID, time.Time{}, tenant.DemoPlan())
		if err != nil || amount == 0 {
			return err
		}
		page, err := n.ledger.Open(tx, made.Wallet())
		if err != nil {
			return err
		}
		err = page.Add(ledger.Transfer{Asset: made.Money(), From: ledger.Funding, To: ledger.Wallet(made.ID), Amount: int64(amount), Subject: "fund " + made.ID, Leg: book.LegFinal, Kind: "fund", At: n.clock.Now()})
		page.Post()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (h *fixture) caller() idempotency.Caller {
	return idempotency.Caller{Tenant: h.tenant.ID, Key: "key-1"}
}

func (h *fixture) reference() string {
	h.n++
	return fmt.Sprintf("reference-%06d", h.n)
}

// payout is a payout of GHS 10.00 (fee 0.10) to an MTN wallet.
func (h *fixture) payout() Payout {
	return Payout{Amount: 10 * money.Cedi, Reference: h.reference(), MSISDN: "233241234567", Network: msisdn.MTN,
		CallbackURL: h.hooks.URL}
}

func (h *fixture) collect() Collect {
	return Collect{Amount: 10 * money.Cedi, Reference: h.reference(), MSISDN: "233241234567", Network: msisdn.MTN,
		CallbackURL: h.hooks.URL}
}

// quiet waits until the node has nothing to do at the current time of its clock.
func (n *node) quiet() {
	n.fixture.t.Helper()
	ctx, cancel := context.WithTimeout(n.fixture.t.Context(), patience)
	defer cancel()
	if err := errors.Join(n.Quiet(ctx), n.queue.Quiet(ctx)); err != nil {
		n.fixture.t.Fatalf("never quiet: %v; %+v", err, n.queue.Counts())
	}
}

// pass advances the clock in steps and completes everything due in each.
func (n *node) pass(d time.Duration) {
	n.fixture.t.Helper()
	end := n.clock.Now().Add(d)
	for {
		n.quiet()
		next, any := n.clock.Next()
		if !any || next.After(end) {
			n.clock.Advance(end.Sub(n.clock.Now()))
			n.quiet()
			return
		}
		n.clock.Advance(max(time.Microsecond, next.Sub(n.clock.Now())))
	}
}

// must reads a payment of the fixture's tenant.
func (n *node) must(k book.Kind, id string) book.Payment {
	n.fixture.t.Helper()
	pay, found, err := n.Get(n.fixture.t.Context(), n.fixture.tenant.ID, k, id)
	if err != nil || !found {
		n.fixture.t.Fatalf("payment %s: found %v, %v", id, found, err)
	}
	return pay
}

func (n *node) balance() money.Pesewas {
	n.fixture.t.Helper()
	b, err := n.ledger.Balance(n.fixture.t.Context(), n.fixture.tenant.Wallet())
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	return money.Pesewas(b)
}

func (n *node) account(id ledger.AccountID) money.Pesewas {
	n.fixture.t.Helper()
	b, err := n.ledger.Balance(n.fixture.t.Context(), ledger.Key{Asset: ledger.TestGHS, ID: id})
	if err != nil {
		n.fixture.t.Fatal(err)
	}
	return money.Pesewas(b)
}

const (
	openJobs = `SELECT count(*) FROM jobs WHERE kind = 'payment'`
	openHeld = `SELECT id, kind, CAST(amount + charges AS INTEGER) FROM payments WHERE status = 'pending' AND kind <> 'collection'`

	inClearing = `SELECT subject, CAST(sum(CASE WHEN to_account = 'clearing' THEN amount ELSE -amount END) AS INTEGER) FROM transfers
WHERE asset = 'TEST_GHS' AND (to_account = 'clearing' OR from_account = 'clearing') GROUP BY subject
HAVING sum(CASE WHEN to_account = 'clearing' THEN amount ELSE -amount END) <> 0`
)

// books verifies the ledger, compares clearing with the open rows, and checks that each open payment has one job.
func (n *node) books() {
	t := n.fixture.t
	t.Helper()
	report, err := n.ledger.Check(t.Context())
	if err != nil || !report.OK() {
		t.Errorf("the ledger: %v, %v", report.Problems, err)
	}
	err = n.db.ReadWhole(t.Context(), func(tx *db.Tx) error {
		want := map[string]int64{}
		if err := tx.Query(openHeld, nil, func(r *db.Row) error {
			var id, kind string
			var held int64
			err := r.Scan(&id, &kind, &held)
			want[id] = held
			return err
		}); err != nil {
			return err
		}
		err := tx.Query(inClearing, nil, func(r *db.Row) error {
			var subject string
			var amount int64
			err := r.Scan(&subject, &amount)
			if want[subject] != amount {
				t.Errorf("clearing holds %d of %s, the row says %d", amount, subject, want[subject])
			}
			delete(want, subject)
			return err
		})
		for id := range want {
			t.Errorf("clearing holds nothing of %s, which is open", id)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (n *node) jobsLeft() (count int) {
	t := n.fixture.t
	t.Helper()
	if _, err := n.db.ReadOne(t.Context(), openJobs, nil, &count); err != nil {
		t.Fatal(err)
	}
	return count
}

// wantKind verifies the kind of a refusal.
func wantKind(t *testing.T, err error, k problem.Kind) *problem.Error {
	t.Helper()
	if !problem.Is(err, k) {
		t.Fatalf("got %v, want a refusal of kind %s", err, k)
	}
	return problem.From(err)
}

// pauseRail pauses a rail until resumeRail.
func (n *node) pauseRail(name string) {
	n.fixture.t.Helper()
	if err := n.db.Write(n.fixture.t.Context(), func(tx *db.Tx) error {
		return n.routes.Pause(tx, route.Pause{Mode: "test", Provider: name, Operation: route.Any, Reason: "maintenance", Actor: "ama"})
	}); err != nil {
		n.fixture.t.Fatal(err)
	}
}

func (n *node) resumeRail(name string) {
	n.fixture.t.Helper()
	if err := n.db.Write(n.fixture.t.Context(), func(tx *db.Tx) error {
		_, err := n.routes.Resume(tx, "test", name, route.Any)
		return err
	}); err != nil {
		n.fixture.t.Fatal(err)
	}
}

// openJob returns the job of an open payment with the state of another job.
func openJob(pay book.Payment, at time.Time, as jobs.Job) jobs.Job {
	job := book.JobOf(pay, at)
	job.Adopted, job.Fresh = as.Adopted, as.Fresh
	return job
}
