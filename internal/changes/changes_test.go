package changes

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/identitytest"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// fixture is a production installation with a customer, a requester and two approvers.
type fixture struct {
	*Changes
	t                        testing.TB
	db                       *db.DB
	faults                   *db.Faults
	clock                    *clock.Clock
	people                   *identity.Identity
	log                      *audit.Log
	journal                  audit.Journal
	ledger                   *ledger.Ledger
	queue                    *jobs.Queue
	routes                   *route.Table
	rail                     *silent
	lost                     *recovery.Recovery
	tenant                   tenant.Tenant
	requester, first, second By
	funded                   int // number of deposits that the requester has requested
}

func each(t *testing.T, fn func(f *fixture)) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) { fn(install(t, d, faults, true)) })
}

func install(t testing.TB, d *db.DB, faults *db.Faults, production bool) *fixture {
	t.Helper()
	secret, err := config.NewSecret(bytes.Repeat([]byte{7}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	c, quiet := clock.NewManual(start), slog.New(slog.DiscardHandler)
	f := &fixture{t: t, db: d, faults: faults, clock: c, journal: audit.Journal{Folder: t.TempDir(), Failed: func(_ string, err error) { t.Error(err) }}, ledger: ledger.New(d, c, "test")}
	f.log = audit.New(d, c).Keeping(f.journal)
	f.people = identity.New(d, c, f.log, identity.Options{Secret: secret, HashMemory: identitytest.HashMemory})
	tenants := tenant.New(d, f.ledger, c)
	queue := jobs.New(d, c, quiet, jobs.Options{Node: "test"})
	answers, hooks := idempotency.NewAnswers(d, c), webhook.New(d, queue, c, quiet, webhook.Options{Secret: secret})
	senders := senderid.New(d, tenants, answers, c, config.Quotas{})
	f.lost = recovery.New(d, c, quiet)
	texts := messaging.New(messaging.Deps{Recovery: f.lost, DB: d, Ledger: f.ledger, Tenants: tenants, Jobs: queue, Answers: answers, Senders: senders,
		Contacts: contacts.New(d, tenants, answers, c, config.Quotas{}), Clock: c, Log: quiet, Secret: secret,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: unsent{}}})
	f.rail = &silent{}
	routes := route.New(d, c, quiet, []string{"hubtel"}, []provider.Rail{{Name: "hubtel", Mode: "live", VisibleAfter: 5 * time.Minute, Disburser: f.rail, Collector: f.rail, BankNames: f.rail}})
	orders := treasury.New(d, f.ledger, tenants, c, quiet, routes.CheckFloat)
	pays := payments.New(payments.Deps{Treasury: orders, DB: d, Ledger: f.ledger, Tenants: tenants, Jobs: queue, Webhooks: hooks, Routes: routes, Lookups: lookup.New(d, tenants, routes, c),
		Clock: c, Log: quiet, Secret: secret, Recovery: f.lost, CallbackURL: func(provider.Rail) string { return "" },
		Approval: func(ctx context.Context, by payments.Requester, pay book.Payment) (*payments.PendingApproval, error) {
			return f.HoldPayout(ctx, by, pay)
		}})
	t.Cleanup(func() { texts.Close(); pays.Close() })
	f.queue, f.routes = queue, routes
	batches := batch.New(batch.Deps{DB: d, Ledger: f.ledger, Tenants: tenants, Payments: pays, Treasury: orders, Jobs: queue, Access: access.New(d, c), Routes: routes, Lookups: lookup.New(d, tenants, routes, c), Clock: c, Log: quiet, Secret: secret})
	f.Changes = New(Deps{Store: NewStore(d, c, f.log, f.people, production), Ledger: f.ledger, Tenants: tenants, Access: access.New(d, c), People: f.people, Batches: batches,
		Senders: senders, Compose: compose.New(d, c, tenants, contacts.New(d, tenants, answers, c, config.Quotas{}), texts), Inbox: inbox.New(inbox.Deps{DB: d, Tenants: tenants, Clock: c}), Webhooks: hooks, Seal: NewSealer(secret), Treasury: orders, Closing: closing.New(d, f.ledger, c), Payments: pays, Messaging: texts, Routes: routes, Jobs: queue, Reconcile: reconcile.New(reconcile.Deps{DB: d, Clock: c, Log: quiet, Ledger: f.ledger, Payments: pays.Reader, Account: pays.AccountAt}), Lookups: lookup.New(d, tenants, routes, c)})
	f.tx(func(tx *db.Tx) (err error) {
		f.tenant, err = tenants.Create(tx, tenant.Tenant{Name: "Adom Stores", Mode: tenant.Live})
		return err
	})
	f.requester = f.join("ama@example.com", roles.Operations)
	if production {
		f.first, f.second = f.join("kofi@example.com", roles.Approver), f.join("efua@example.com", roles.Approver)
		c.Advance(time.Second)
	}
	return f
}

func (f *fixture) tx(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) join(email string, role roles.Role) By {
	f.t.Helper()
	return By{Visitor: identitytest.Join(f.t, f.db, f.clock, f.people, email, identity.Membership{Role: role}).Visitor, Origin: "192.0.2.7"}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// line sets a line of the policy directly, without a request.
func (f *fixture) line(l Line) {
	f.t.Helper()
	rule, _ := f.Rule(l.Kind)
	f.tx(func(tx *db.Tx) error { _, err := f.Store.SetLine(tx, rule, l); return err })
}

// fund lets the requester request a deposit of GHS 500,000.00.
func (f *fixture) fund() Request {
	f.t.Helper()
	reason := "paid by bank"
	if f.funded++; f.funded > 1 { // the same deposit again would be the same request
		reason += ", slip " + strconv.Itoa(f.funded)
	}
	if f.funded%20 == 0 { // a person may make a limited number of requests an hour
		f.tx(func(tx *db.Tx) error { _, err := tx.Exec("DELETE FROM person_uses"); return err })
	}
	request, err := f.Fund(f.t.Context(), f.requester, newID(), f.tenant.ID, 50_000_000, reason)
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

// has fails the test unless the wallet has a multiple of GHS 500,000.00.
func (f *fixture) has(times int64) {
	f.t.Helper()
	n, err := f.ledger.Balance(f.t.Context(), f.tenant.Wallet())
	if err != nil || n != times*50_000_000 {
		f.t.Fatalf("the wallet has %d, %v", n, err)
	}
}

func (f *fixture) refused(err error, kind problem.Kind, code string) {
	f.t.Helper()
	if !problem.Is(err, kind) || problem.From(err).Code != code {
		f.t.Fatalf("%v, want %s %s", err, kind, code)
	}
}

func (f *fixture) is(id string, state State) Request {
	f.t.Helper()
	request, err := f.Store.Get(f.t.Context(), id)
	if err != nil || request.State != state {
		f.t.Fatalf("%+v, %v; want %s", request, err, state)
	}
	return request
}

func (f *fixture) entries() (list []audit.Entry) {
	f.t.Helper()
	all, err := f.log.List(f.t.Context(), audit.Filter{Tenant: f.tenant.ID, Limit: 1000})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func TestApprove_appliedOnceByAnother(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		if request.State != Waiting || request.Needs != 1 || request.Sentence != "Put GHS 500,000.00 into the wallet of Adom Stores (live)" {
			f.t.Fatalf("%+v", request)
		}
		f.has(0)
		_, err := f.Approve(f.t.Context(), f.requester, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "own_act")
		done, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		if err != nil || done.State != Done || len(done.Checks) != 1 || done.Checks[0].Name != "kofi@example.com" {
			f.t.Fatalf("%+v, %v", done, err)
		}
		f.has(1)
		for _, by := range []By{f.first, f.second} {
			_, err = f.Approve(f.t.Context(), by, request.ID, request.Digest)
			f.refused(err, problem.Duplicate, "act_ended")
		}
		f.has(1)
		if _, found, err := f.ledger.Booked(f.t.Context(), KindFund, request.ID); err != nil || !found {
			f.t.Fatal("not booked under the act", err)
		}
		log := f.entries()
		if len(log) != 2 || log[0].Action != KindFund || log[0].Actor != "kofi@example.com" || log[0].Person != f.first.Visitor.Person.ID || log[0].Origin != "192.0.2.7" || log[0].Reason != "paid by bank" ||
			log[0].Changes()[0] != (audit.Change{What: "wallet of Adom Stores", Before: "GHS 0.00", After: "GHS 500,000.00"}) || log[1].Action != "act.make" || log[1].Actor != "ama@example.com" {
			f.t.Fatalf("%+v", log)
		}
	})
}

func TestDo_aloneIsAppliedAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := install(t, d, nil, false)
		id := newID()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				request, err := f.Fund(context.WithoutCancel(t.Context()), f.requester, id, f.tenant.ID, 50_000_000, "paid by bank")
				if err != nil || request.State != Done || request.Needs != 0 {
					t.Errorf("%+v, %v", request, err)
				}
			})
		}
		all.Wait()
		f.has(1)
		if log := f.entries(); len(log) != 1 || log[0].Action != KindFund || log[0].Actor != "ama@example.com" {
			t.Fatalf("%+v", log)
		}
	})
}

func TestRequest_sameFormTwice(t *testing.T) {
	each(t, func(f *fixture) {
		id := newID()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if request, err := f.Fund(context.WithoutCancel(f.t.Context()), f.requester, id, f.tenant.ID, 50_000_000, "paid by bank"); err != nil || request.ID != id {
					f.t.Error(request, err)
				}
			})
		}
		all.Wait()
		_, err := f.Fund(f.t.Context(), f.requester, id, f.tenant.ID, 50_000_001, "paid by bank")
		f.refused(err, problem.Duplicate, "act_exists")
		other := f.join("yaw@example.com", roles.Operations)
		_, err = f.Fund(f.t.Context(), other, id, f.tenant.ID, 50_000_000, "paid by bank")
		f.refused(err, problem.Duplicate, "act_exists")
		if list, err := f.Store.List(f.t.Context(), Filter{Limit: 10}); err != nil || len(list) != 1 {
			f.t.Fatal(list, err)
		}
		if _, err := f.Fund(f.t.Context(), f.requester, "1", f.tenant.ID, 1, "x"); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		if _, err := f.Fund(f.t.Context(), f.requester, newID(), f.tenant.ID, 1, "  "); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		if _, err := f.Fund(f.t.Context(), f.requester, newID(), f.tenant.ID, 0, "x"); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
	})
}

func TestApprove_concurrentAppliesOnce(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		var won atomic.Int64
		var all sync.WaitGroup
		for _, by := range []By{f.first, f.second, f.first, f.second} {
			all.Go(func() {
				_, err := f.Approve(context.WithoutCancel(f.t.Context()), by, request.ID, request.Digest)
				if err == nil {
					won.Add(1)
				} else if !problem.Is(err, problem.Duplicate) {
					f.t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			f.t.Fatalf("%d approvals did it", won.Load())
		}
		f.has(1)
		f.is(request.ID, Done)
	})
}

// A request that needs two approvers is applied by the second approval, in either order.
func TestApprove_twoNeedTwoPeople(t *testing.T) {
	each(t, func(f *fixture) {
		f.line(Line{Kind: KindFund, Approvers: 2})
		one, both := f.fund(), f.fund()
		for range 2 {
			request, err := f.Approve(f.t.Context(), f.first, one.ID, one.Digest)
			if err == nil && (request.State != Waiting || len(request.Checks) != 1) || err != nil && problem.From(err).Code != "checked_before" {
				f.t.Fatalf("%+v, %v", request, err)
			}
		}
		f.has(0)
		if request, err := f.Approve(f.t.Context(), f.second, one.ID, one.Digest); err != nil || request.State != Done || len(request.Checks) != 2 {
			f.t.Fatalf("%+v, %v", request, err)
		}
		f.has(1)
		var all sync.WaitGroup
		for _, by := range []By{f.first, f.second} {
			all.Go(func() {
				if _, err := f.Approve(context.WithoutCancel(f.t.Context()), by, both.ID, both.Digest); err != nil {
					f.t.Error(err)
				}
			})
		}
		all.Wait()
		f.is(both.ID, Done)
		f.has(2)
	})
}

// Each of these people tries to approve a request that another person made. All are refused, and nothing moves.
func TestApprove_refusedWithoutPermission(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		other := f.join("yaw@example.com", roles.Operations) // may request but not approve
		late := f.join("late@example.com", roles.Approver)   // got the role after the request
		change := func(fn func(tx *db.Tx) error) { f.clock.Advance(time.Second); f.tx(fn) }
		set := func(email string, role roles.Role) {
			change(func(tx *db.Tx) error {
				_, _, err := f.people.SetRole(tx, email, identity.Membership{Role: role})
				return err
			})
		}
		try := func(by By, kind problem.Kind, code string) {
			f.t.Helper()
			_, err := f.Approve(f.t.Context(), by, request.ID, request.Digest)
			f.refused(err, kind, code)
			_, err = f.Reject(f.t.Context(), by, request.ID, request.Digest, "no")
			f.refused(err, kind, code)
			f.is(request.ID, Waiting)
			f.has(0)
		}
		try(other, problem.Forbidden, "not_allowed")
		try(late, problem.Forbidden, "role_younger")
		try(f.requester, problem.Forbidden, "own_act")
		set("ama@example.com", roles.Owner) // the requester gets a role that may approve
		try(f.requester, problem.Forbidden, "own_act")
		set("kofi@example.com", roles.Support)
		try(f.first, problem.Forbidden, "not_allowed")
		set("kofi@example.com", roles.Approver) // the person gets the role again, too late for this request
		try(f.first, problem.Forbidden, "role_younger")
		_, err := f.Approve(f.t.Context(), f.second, request.ID, strings.Repeat("0", 64))
		f.refused(err, problem.InProgress, "act_changed")
		f.clock.Advance(identity.StepUpLasts)
		try(f.second, problem.Forbidden, "step_up_needed")
		change(func(tx *db.Tx) error {
			_, err := f.people.Reset(tx, identity.NewInvitation(), "efua@example.com")
			return err
		})
		try(f.second, problem.Unauthenticated, "not_signed_in")
	})
}

func TestApprove_refusedAfterReset(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		f.clock.Advance(time.Second)
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE people SET reset_at = $1 WHERE email = 'kofi@example.com'", 1, f.clock.Now())
			return nil
		})
		_, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "reset_since")
	})
}

// An approval counts only while its approver may approve. If two are needed and the first approver was disabled, reset or lost
// the role, another person must approve in addition to the second.
func TestApproval_lapsesWithPermission(t *testing.T) {
	for name, fall := range map[string]func(f *fixture, tx *db.Tx) error{
		"disabled": func(f *fixture, tx *db.Tx) error { _, err := f.people.Disable(tx, "kofi@example.com"); return err },
		"reset": func(f *fixture, tx *db.Tx) error {
			_, err := f.people.Reset(tx, identity.NewInvitation(), "kofi@example.com")
			return err
		},
		"another role": func(f *fixture, tx *db.Tx) error {
			_, _, err := f.people.SetRole(tx, "kofi@example.com", identity.Membership{Role: roles.Support})
			return err
		},
		"the role again": func(f *fixture, tx *db.Tx) error {
			if _, _, err := f.people.SetRole(tx, "kofi@example.com", identity.Membership{Role: roles.Support}); err != nil {
				return err
			}
			_, _, err := f.people.SetRole(tx, "kofi@example.com", identity.Membership{Role: roles.Approver})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(f *fixture) {
				third := f.join("abena@example.com", roles.Approver)
				f.clock.Advance(time.Second)
				f.line(Line{Kind: KindFund, Approvers: 2})
				request := f.fund()
				if after, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest); err != nil || after.State != Waiting {
					f.t.Fatalf("%s: %+v, %v", name, after, err)
				}
				f.clock.Advance(time.Second)
				f.tx(func(tx *db.Tx) error { return fall(f, tx) })
				if after, err := f.Approve(f.t.Context(), f.second, request.ID, request.Digest); err != nil || after.State != Waiting {
					f.t.Errorf("%s: by the second it is %s, %v", name, after.State, err)
				}
				f.has(0)
				shown, err := f.Get(f.t.Context(), roles.Installation, request.ID)
				if err != nil || shown.Approvals() != 1 || len(shown.Checks) != 2 || !shown.Checks[0].Lapsed || shown.Checks[1].Lapsed {
					f.t.Errorf("%s: %+v, %v", name, shown.Checks, err)
				}
				if after, err := f.Approve(f.t.Context(), third, request.ID, request.Digest); err != nil || after.State != Done {
					f.t.Errorf("%s: by the third it is %s, %v", name, after.State, err)
				}
				f.has(1)
			})
		})
	}
}

// If the requester has lost the permission, the request is not applied.
func TestApply_requesterLostTheRole(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.people.SetRole(tx, "ama@example.com", identity.Membership{Role: roles.Support})
			return err
		})
		_, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_allowed")
		f.tx(func(tx *db.Tx) error { _, err := f.people.Disable(tx, "ama@example.com"); return err })
		_, err = f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		f.refused(err, problem.Forbidden, "not_allowed")
		f.has(0)
		if _, err := f.Reject(f.t.Context(), f.first, request.ID, request.Digest, "its requester has left"); err != nil {
			f.t.Fatal(err)
		}
		_, err = f.Fund(f.t.Context(), f.requester, newID(), f.tenant.ID, 1, "x")
		f.refused(err, problem.Unauthenticated, "not_signed_in")
		_, err = f.Fund(f.t.Context(), f.first, newID(), f.tenant.ID, 1, "x")
		f.refused(err, problem.Forbidden, "not_allowed")
	})
}

// If the values that the requester saw have changed, the request is not applied, and its error names the reason.
func TestApply_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		request := f.fund()
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE tenants SET name = 'Another Shop' WHERE id = $1", 1, f.tenant.ID)
			return nil
		})
		after, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		if err != nil || after.State != Failed || !strings.Contains(after.Note, "Another Shop") {
			f.t.Fatalf("%+v, %v", after, err)
		}
		f.has(0)
		if log := f.entries(); log[0].Action != "act.failed" {
			f.t.Fatalf("%+v", log[0])
		}
		other := f.fund()
		_, err = f.Approve(f.t.Context(), f.requester, other.ID, other.Digest)
		f.refused(err, problem.Forbidden, "own_act") // a person without the permission does not make the request fail
	})
}

// A request whose row was changed directly in the database is not applied.
func TestApply_tamperedRow(t *testing.T) {
	for _, column := range []string{"payload = replace(payload, '50000000', '50000001')", "sentence = 'Put GHS 1.00'", "maker = 'x'", "reason = 'x'", "tenant = ''", "made_at = made_at - 1", "pesewas = 1", "needs = 0"} {
		t.Run(column, func(t *testing.T) {
			each(t, func(f *fixture) {
				request := f.fund()
				f.tx(func(tx *db.Tx) error { tx.Defer("UPDATE acts SET "+column, 1); return nil })
				_, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
				if err == nil {
					f.t.Errorf("%s: done", column)
				}
				f.has(0)
			})
		})
	}
}

func TestRequest_rejectedWithdrawnExpired(t *testing.T) {
	each(t, func(f *fixture) {
		rejected, withdrawn, expired := f.fund(), f.fund(), f.fund()
		if _, err := f.Reject(f.t.Context(), f.first, rejected.ID, rejected.Digest, " "); !problem.Is(err, problem.Invalid) {
			f.t.Fatal(err)
		}
		request, err := f.Reject(f.t.Context(), f.first, rejected.ID, rejected.Digest, "not on the bank's statement")
		if err != nil || request.State != Rejected || request.Note != "not on the bank's statement" {
			f.t.Fatalf("%+v, %v", request, err)
		}
		_, err = f.Withdraw(f.t.Context(), f.first, withdrawn.ID, withdrawn.Digest)
		f.refused(err, problem.Forbidden, "not_your_act")
		if request, err := f.Withdraw(f.t.Context(), f.requester, withdrawn.ID, withdrawn.Digest); err != nil || request.State != Withdrawn {
			f.t.Fatalf("%+v, %v", request, err)
		}
		if err := f.Expire(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.is(expired.ID, Waiting)
		f.tx(func(tx *db.Tx) error {
			tx.Defer("UPDATE acts SET expires_at = $2 WHERE id = $1", 1, expired.ID, f.clock.Now())
			return nil
		})
		_, err = f.Approve(f.t.Context(), f.first, expired.ID, expired.Digest) // before any job has marked it as expired
		f.refused(err, problem.Gone, "act_expired")
		if err := f.Expire(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.is(expired.ID, Expired)
		for _, request := range []Request{rejected, withdrawn, expired} {
			_, err := f.Approve(f.t.Context(), f.second, request.ID, request.Digest)
			f.refused(err, problem.Duplicate, "act_ended")
		}
		f.has(0)
		if log := f.entries(); log[0].Action != "act.expired" || log[0].Actor != "makola" || log[1].Action != "act.withdrawn" || log[2].Action != "act.rejected" {
			f.t.Fatalf("%+v", log)
		}
	})
}

// TestRequest_ofANewerServer: this server does not know the kind of the request, so it does not end it.
func TestRequest_ofANewerServer(t *testing.T) {
	each(t, func(f *fixture) {
		rule, _ := f.Rule(KindFund)
		request, err := f.Store.Make(f.t.Context(), f.requester, rule, Request{ID: newID(), Kind: "newer.kind", Tenant: f.tenant.ID, Payload: []byte("{}"), Sentence: "Something new", Reason: "new", Amount: 50_000_000})
		if err != nil || request.Needs == 0 {
			f.t.Fatalf("%+v, %v", request, err)
		}
		_, err = f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
		f.refused(err, problem.InProgress, "kind_unknown")
		_, err = f.Reject(f.t.Context(), f.first, request.ID, request.Digest, "no")
		f.refused(err, problem.InProgress, "kind_unknown")
		_, err = f.Withdraw(f.t.Context(), f.requester, request.ID, request.Digest)
		f.refused(err, problem.InProgress, "kind_unknown")
		known := f.fund()
		f.clock.Advance(Lasts)
		if err := f.Expire(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.is(request.ID, Waiting)
		f.is(known.ID, Expired)
	})
}

// TestText_countedInCharacters: the limit of a text is in characters, as the error states, not in bytes. Many letters of Twi
// and Ewe have two bytes.
func TestText_countedInCharacters(t *testing.T) {
	each(t, func(f *fixture) {
		reason, reference := strings.Repeat("\u025b", maxReason), strings.Repeat("\u0254", MaxReference)
		request, err := f.SellCredits(f.t.Context(), f.requester, newID(), reference, f.tenant.ID, 1_000_000, 50_000_000, reason)
		if err != nil || request.Reason != reason {
			f.t.Fatal(err)
		}
		if _, err := f.SellCredits(f.t.Context(), f.requester, newID(), reference+"x", f.tenant.ID, 1, 1, reason); !slices.Equal(problem.From(err).FieldNames(), []string{"reference"}) {
			f.t.Errorf("a longer reference: %v", err)
		}
		if _, err := f.SellCredits(f.t.Context(), f.requester, newID(), "", f.tenant.ID, 1, 1, reason+"x"); !slices.Equal(problem.From(err).FieldNames(), []string{"reason"}) {
			f.t.Errorf("a longer reason: %v", err)
		}
		if _, err := f.Reject(f.t.Context(), f.first, request.ID, request.Digest, reason+"x"); !slices.Equal(problem.From(err).FieldNames(), []string{"note"}) {
			f.t.Errorf("a longer note: %v", err)
		}
		if request.Needs > 0 {
			request, err = f.Reject(f.t.Context(), f.first, request.ID, request.Digest, reason)
			if err != nil || request.Note != reason {
				f.t.Error(err)
			}
		} else {
			f.t.Error("the act needs no check")
		}
	})
}

// A fault at any boundary of the database leaves an approved request either applied once or waiting, never half applied.
func TestApprove_interruptedAppliesOnce(t *testing.T) {
	each(t, func(f *fixture) {
		times := int64(0)
		for n := range 75 {
			request := f.fund()
			kind := []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}[n%3]
			left := int64(n / 3)
			f.faults.Decide(func(db.Boundary) db.Fault {
				if left--; left == -1 {
					return kind
				}
				return db.FaultNone
			})
			_, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest)
			f.faults.Decide(nil)
			now, getErr := f.Store.Get(f.t.Context(), request.ID)
			if getErr != nil {
				f.t.Fatal(getErr)
			}
			if err == nil && now.State != Done {
				f.t.Fatalf("fault %d: said to be done, and is %s", n, now.State)
			}
			if now.State == Waiting {
				if _, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest); err != nil {
					f.t.Fatalf("fault %d: %v", n, err)
				}
			}
			f.is(request.ID, Done)
			times++
			f.has(times)
		}
		done := 0
		for _, e := range f.entries() {
			if e.Action == KindFund {
				done++
			}
		}
		if int64(done) != times {
			f.t.Fatalf("%d entries of %d acts", done, times)
		}
		if r, err := f.ledger.Check(f.t.Context()); err != nil || !r.OK() {
			f.t.Fatal(r, err)
		}
	})
}

// An applied request is also written to the journal outside the database, because a restored database may lack it. A waiting or
// refused request is not, because it changed nothing.
func TestJournal_hasAppliedChanges(t *testing.T) {
	each(t, func(f *fixture) {
		noted := func() []audit.Noted {
			f.t.Helper()
			list, err := f.journal.Read()
			if err != nil {
				f.t.Fatal(err)
			}
			return slices.DeleteFunc(list, func(n audit.Noted) bool { return strings.HasPrefix(n.Action, "person.") }) // leaves out the notices about their sign-ins
		}
		request := f.fund()
		if list := noted(); len(list) != 0 {
			f.t.Errorf("what waits is noted: %+v", list)
		}
		if _, err := f.Approve(f.t.Context(), f.first, request.ID, request.Digest); err != nil {
			f.t.Fatal(err)
		}
		list := noted()
		if len(list) != 1 || list[0].Subject != request.ID || list[0].Tenant != f.tenant.ID || list[0].Actor != "kofi@example.com" || list[0].At.IsZero() {
			f.t.Fatalf("noted is %+v", list)
		}
		f.tx(func(tx *db.Tx) error {
			there, err := f.log.Landed(tx, list[0].Tenant, list[0].ID)
			if !there {
				f.t.Error("the audit log has no entry of this id")
			}
			return err
		})
	})
}
