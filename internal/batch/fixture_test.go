package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// patience limits each wait. Only a failing test reaches it.
const patience = 2 * time.Minute

// funds is the initial balance of the tenant's wallet.
const funds = 1_000_000 * money.Cedi

// bank is a provider that pays and keeps its own book.
type bank struct {
	mu     sync.Mutex
	paid   map[string]money.Pesewas // amounts by our reference
	party  map[string]string
	posts  map[string]int
	answer func(reference string, party string) provider.Outcome // outcome of a payout; nil: paid
	name   func(party string) (string, provider.Outcome)         // name of a number or an account; nil: "REGISTERED" and the number
	asked  int                                                   // number of name lookups
}

func (k *bank) WalletName(_ context.Context, _ msisdn.Network, number msisdn.MSISDN) (string, provider.Outcome) {
	return k.nameOf(string(number))
}

func (k *bank) BankName(_ context.Context, _, account string) (string, provider.Outcome) {
	return k.nameOf(account)
}

// wantOnePost fails the test if a payout was sent more than once.
func (k *bank) wantOnePost(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for reference, posts := range k.posts {
		if posts != 1 {
			t.Errorf("%s was sent %d times", reference, posts)
		}
	}
}

// set changes the answers to lookups of names.
func (k *bank) set(name func(party string) (string, provider.Outcome)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.name = name
}

func (k *bank) nameOf(party string) (string, provider.Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.name != nil {
		return k.name(party)
	}
	return "REGISTERED " + party, provider.Outcome{Class: provider.Accepted}
}

func (k *bank) Disburse(_ context.Context, r provider.DisburseRequest) provider.Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.posts[r.ProviderReference]++
	if _, was := k.paid[r.ProviderReference]; was {
		return provider.Outcome{Class: provider.Accepted, Duplicate: true}
	}
	if k.answer != nil {
		if o := k.answer(r.ProviderReference, string(r.MSISDN)); o.Class != provider.Accepted {
			return o
		}
	}
	k.paid[r.ProviderReference], k.party[r.ProviderReference] = r.Amount, cmp.Or(string(r.MSISDN), r.Account)
	return provider.Outcome{Class: provider.Accepted, State: provider.Success}
}

func (k *bank) DisburseStatus(_ context.Context, r provider.StatusRequest) provider.Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	amount, was := k.paid[r.ProviderReference]
	if !was {
		return provider.Outcome{NotFound: true}
	}
	return provider.Outcome{Class: provider.Accepted, State: provider.Success, Echo: &provider.Echo{Reference: r.ProviderReference, Amount: amount, AmountTold: true, Currency: "GHS",
		Party: k.party[r.ProviderReference]}}
}

// sum returns the number of payouts that the provider made, and their total amount.
func (k *bank) sum() (n int, amount money.Pesewas) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.paid {
		amount += one
	}
	return len(k.paid), amount
}

// A fixture is a database with one provider and one tenant.
type fixture struct {
	t        testing.TB
	db       *db.DB
	clock    *clock.Clock
	bank     *bank
	tenant   tenant.Tenant
	recovers bool
	banks    bool             // a second provider reaches banks, and looks up names
	second   *bank            // a third provider, which reaches banks after the second one; nil: none
	limits   []provider.Limit // of the provider
	tenantID string           // of the tenant that the first node makes; empty: a new one
}

// node is one process on the database.
type node struct {
	*Batches
	f        *fixture
	queue    *jobs.Queue
	routes   *route.Table
	lost     *recovery.Recovery
	payments *payments.Payments
}

func newFixture(t testing.TB, d *db.DB) *fixture {
	t.Helper()
	return &fixture{t: t, db: d, clock: clock.NewManual(time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)), bank: newBank()}
}

func newBank() *bank {
	return &bank{paid: map[string]money.Pesewas{}, party: map[string]string{}, posts: map[string]int{}}
}

// restored returns a fixture with a new database, as after the restore of a backup that has the account and none of its batches.
// The provider still has its payments.
func (f *fixture) restored() *fixture {
	f.t.Helper()
	r := newFixture(f.t, dbtest.Open(f.t, f.db.Engine()))
	r.bank, r.recovers, r.tenantID = f.bank, true, f.tenant.ID
	return r
}

// node starts a process that runs jobs.
func (f *fixture) node(name string) *node {
	f.t.Helper()
	n := f.stopped(name)
	if err := n.queue.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// nodeOfBanks starts a process that also serves and lists banks.
func (f *fixture) nodeOfBanks(name string) (*node, []route.Bank) {
	f.t.Helper()
	f.banks = true
	n := f.node(name)
	banks, err := n.Banks(f.t.Context(), f.tenant.ID)
	if err != nil || len(banks) == 0 {
		f.t.Fatal(banks, err)
	}
	return n, banks
}

// stopped returns a process that runs no jobs. The first one creates the tenant.
func (f *fixture) stopped(name string) *node {
	f.t.Helper()
	log := slog.New(slog.NewTextHandler(f.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		f.t.Fatal(err)
	}
	rails := []provider.Rail{{Name: "mtn", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: f.bank, Limits: f.limits}}
	l := ledger.New(f.db, f.clock, name)
	tenants := tenant.New(f.db, l, f.clock)
	order := []string{"mtn"}
	if f.banks {
		order = append(order, "hubtel")
		rails = append(rails, provider.Rail{Name: "hubtel", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: f.bank, BankNames: f.bank, WalletNames: f.bank})
	}
	if f.second != nil {
		order = append(order, "paystack")
		rails = append(rails, provider.Rail{Name: "paystack", Mode: "test", MayRepeat: provider.AllRequests(), VisibleAfter: time.Minute, Disburser: f.second, BankNames: f.second})
	}
	n := &node{f: f, queue: jobs.New(f.db, f.clock, log, jobs.Options{Node: name, LeaseFor: time.Hour, Heartbeat: time.Hour}), routes: route.New(f.db, f.clock, log, order, rails)}
	if f.recovers {
		n.lost = recovery.New(f.db, f.clock, log)
	}
	tr := treasury.New(f.db, l, tenants, f.clock, log, n.routes.CheckFloat)
	hooks := webhook.New(f.db, n.queue, f.clock, log, webhook.Options{Secret: secret, Development: true})
	n.payments = payments.New(payments.Deps{DB: f.db, Ledger: l, Tenants: tenants, Jobs: n.queue, Webhooks: hooks,
		Routes: n.routes, Lookups: lookup.New(f.db, tenants, n.routes, f.clock), Treasury: tr, Recovery: n.lost, Clock: f.clock, Log: log, Secret: secret, Development: true})
	n.Batches = New(Deps{DB: f.db, Ledger: l, Tenants: tenants, Payments: n.payments, Treasury: tr, Jobs: n.queue, Recovery: n.lost, Access: access.New(f.db, f.clock), Routes: n.routes, Lookups: lookup.New(f.db, tenants, n.routes, f.clock), Clock: f.clock, Log: log, Secret: secret, Webhooks: hooks})
	n.runSets, n.pace.time = 1, 0
	if err := n.routes.Seed(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if f.tenant.ID == "" {
		f.tenant = n.newTenant(tr)
	}
	f.t.Cleanup(func() {
		if err := n.queue.Stop(context.Background()); err != nil {
			f.t.Errorf("stop: %v", err)
		}
		n.payments.Close()
	})
	return n
}

func (n *node) newTenant(tr *treasury.Treasury) (made tenant.Tenant) {
	t := n.f.t
	t.Helper()
	err := n.db.Write(t.Context(), func(tx *db.Tx) (err error) {
		made, err = n.tenants.Create(tx, tenant.Tenant{ID: n.f.tenantID, Name: "Adom Stores", Mode: tenant.Test, CollectionsEnabled: true})
		return err
	})
	if err == nil {
		err = n.plan(made.ID, tenant.DemoPlan())
	}
	if err == nil {
		err = tr.Fund(t.Context(), made.ID, funds, "paid in", "ama")
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// plan sets the fees of a tenant.
func (n *node) plan(tenantID string, rules []tenant.Rule) error {
	return n.db.Write(n.f.t.Context(), func(tx *db.Tx) error {
		_, err := n.tenants.SetFeePlan(tx, tenantID, time.Time{}, rules)
		return err
	})
}

// set changes the tenant, and waits until the node sees the change.
func (n *node) set(c tenant.Change) {
	n.f.t.Helper()
	if err := n.db.Write(n.f.t.Context(), func(tx *db.Tx) error {
		_, _, err := n.tenants.Set(tx, n.f.tenant.ID, c)
		return err
	}); err != nil {
		n.f.t.Fatal(err)
	}
	n.f.clock.Advance(2 * time.Second)
}

// file returns a CSV of n rows with different numbers and amounts: GHS 1.00, 2.00, ...
func file(n int) string {
	var text strings.Builder
	text.WriteString("Name,Phone Number,Network,Amount\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&text, "Person %d,024%07d,MTN,%d.00\n", i, i, i%50+1)
	}
	return text.String()
}

// fileFrom is file with numbers that no other call uses.
func fileFrom(place, n int) string {
	var text strings.Builder
	text.WriteString("number,network,amount\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&text, "024%03d%04d,MTN,%d.00\n", place, i, i%7+1)
	}
	return text.String()
}

// upload makes a draft of a CSV.
func (n *node) upload(name, text string) (Batch, error) {
	n.f.t.Helper()
	b, _, err := n.ReadFile(n.f.t.Context(), Upload{Tenant: n.f.tenant.ID, Name: name, Requester: "ama"}, strings.NewReader(text), sheet.Options{})
	return b, err
}

// requested uploads and requests a batch.
func (n *node) requested(name, text string) Batch {
	n.f.t.Helper()
	b, err := n.upload(name, text)
	if err == nil {
		b, err = n.Request(n.f.t.Context(), b.Tenant, b.ID, "")
	}
	if err != nil {
		n.f.t.Fatal(err)
	}
	return b
}

// Request freezes a draft and stores its request.
func (n *node) Request(ctx context.Context, tenantID, id, again string) (Batch, error) {
	frozen, err := n.Freeze(ctx, tenantID, id, again)
	if err == nil {
		err = n.db.Write(ctx, func(tx *db.Tx) error { return n.RequestIn(tx, frozen) })
	}
	if err != nil {
		return Batch{}, err
	}
	return n.Get(ctx, tenantID, id)
}

// start starts a requested batch.
func (n *node) start(b Batch) error {
	n.f.t.Helper()
	return n.Start(n.f.t.Context(), Order{Tenant: b.Tenant, ID: b.ID, Digest: b.Digest, Reason: "salaries", Actor: "kofi"}, nil)
}

// is returns a batch as it is stored.
func (n *node) is(id string) Batch {
	n.f.t.Helper()
	b, err := n.Get(n.f.t.Context(), n.f.tenant.ID, id)
	if err != nil {
		n.f.t.Fatal(err)
	}
	return b
}

// quiet waits until the node has no work at the present time of its clock.
func (n *node) quiet() {
	n.f.t.Helper()
	ctx, cancel := context.WithTimeout(n.f.t.Context(), patience)
	defer cancel()
	if err := errors.Join(n.payments.Quiet(ctx), n.queue.Quiet(ctx)); err != nil {
		n.f.t.Fatalf("never quiet: %v; %+v", err, n.queue.Counts())
	}
}

// pass advances the clock in steps. Everything due happens before the next step.
func (n *node) pass(d time.Duration) {
	n.f.t.Helper()
	end := n.f.clock.Now().Add(d)
	for {
		n.quiet()
		next, any := n.f.clock.Next()
		if !any || next.After(end) {
			n.f.clock.Advance(end.Sub(n.f.clock.Now()))
			n.quiet()
			return
		}
		n.f.clock.Advance(max(time.Microsecond, next.Sub(n.f.clock.Now())))
	}
}

// leap advances the clock by d as if the machine slept: every timer that is due fires once, after d. Then an hour passes.
func (n *node) leap(d time.Duration) {
	n.f.t.Helper()
	n.quiet()
	n.f.clock.Advance(d)
	n.pass(time.Hour)
}

func (n *node) wallet() money.Pesewas {
	n.f.t.Helper()
	has, err := n.ledger.Balance(n.f.t.Context(), n.f.tenant.Wallet())
	if err != nil {
		n.f.t.Fatal(err)
	}
	return money.Pesewas(has)
}

// pauseRail pauses the provider, or resumes it.
func (n *node) pauseRail(pause bool) {
	n.f.t.Helper()
	n.pauseNamed("mtn", pause)
}

// pauseNamed is pauseRail of any provider.
func (n *node) pauseNamed(rail string, pause bool) {
	n.f.t.Helper()
	if err := n.db.Write(n.f.t.Context(), func(tx *db.Tx) (err error) {
		if pause {
			return n.routes.Pause(tx, route.Pause{Mode: "test", Provider: rail, Operation: route.Any, Reason: "maintenance", Actor: "ama"})
		}
		_, err = n.routes.Resume(tx, "test", rail, route.Any)
		return err
	}); err != nil {
		n.f.t.Fatal(err)
	}
	n.f.clock.Advance(2 * time.Second)
}

// spent returns the cost of a batch's accepted rows that did not fail.
func (n *node) spent(b Batch) (sum money.Pesewas) {
	n.f.t.Helper()
	for from := 1; from <= b.Lines; from += blockRows {
		results, err := n.Results(n.f.t.Context(), b.Tenant, b.ID, from)
		if err != nil {
			n.f.t.Fatal(err)
		}
		for _, r := range results {
			if r.State == RowAccepted && r.Status != "failed" {
				sum += r.Amount + r.Charges
			}
		}
	}
	return sum
}

// sound runs every check of the books, and compares the provider's book with ours.
func (n *node) sound() {
	t := n.f.t
	t.Helper()
	l, err := n.ledger.Check(t.Context())
	if err != nil || !l.OK() {
		t.Errorf("the ledger: %v, %v", l.Problems, err)
	}
	p, err := n.payments.Check(t.Context())
	if err != nil || !p.OK() {
		t.Errorf("the payments: %v, %v", p.Problems, err)
	}
	b, err := Check(t.Context(), n.db)
	if err != nil || !b.OK() {
		t.Errorf("the batches: %v, %v", b.Problems, err)
	}
	if n.f.banks { // the bank's book has the payouts of both providers
		return
	}
	_, paid := n.f.bank.sum()
	if gap, err := n.payments.CheckFloat(t.Context(), "mtn", "test", -paid); err != nil || gap != 0 {
		t.Errorf("the float is off by %s (%v)", gap, err)
	}
}

// wantCode checks the code of a refusal.
func wantCode(t *testing.T, err error, code string) *problem.Error {
	t.Helper()
	if problem.From(err) == nil || problem.From(err).Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return problem.From(err)
}
