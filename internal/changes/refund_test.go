package changes

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
)

func (*silent) Collect(context.Context, provider.CollectRequest) provider.Outcome {
	return provider.Outcome{Class: provider.Accepted, State: provider.Success}
}

func (*silent) CollectStatus(context.Context, provider.StatusRequest) provider.Outcome {
	return provider.Outcome{Class: provider.Accepted, State: provider.Success}
}

// collected makes successful collections of GHS 10.00.
func (f *fixture) collected(count int) (list []book.Payment) {
	f.t.Helper()
	ctx := f.t.Context()
	f.paying(count)
	yes := true
	f.becomes(tenant.Change{CollectionsEnabled: &yes})
	if err := f.queue.Start(ctx); err != nil {
		f.t.Fatal(err)
	}
	for i := range count {
		pay, _, err := f.Payments.Collect(ctx, idempotency.Caller{Tenant: f.tenant.ID},
			payments.Collect{Amount: 10 * money.Cedi, Reference: fmt.Sprintf("invoice-%06d", i), MSISDN: "233201234567", Network: msisdn.Telecel})
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, pay)
	}
	for _, pay := range list {
		clocktest.Await(f.t, "the collection", func() bool { return f.payment(pay.ID).Status == book.StatusSuccess })
	}
	if err := f.queue.Stop(context.WithoutCancel(ctx)); err != nil {
		f.t.Fatal(err)
	}
	return list
}

// becomes changes the account directly, without a request.
func (f *fixture) becomes(c tenant.Change) {
	f.t.Helper()
	f.tx(func(tx *db.Tx) error { _, _, err := f.Tenants.Set(tx, f.tenant.ID, c); return err })
	f.clock.Advance(tenant.Freshness)
}

// refund lets a person request the refund of a collection with the form of an id.
func (f *team) refund(by By, id string, of book.Payment, amount string) (Request, error) {
	f.t.Helper()
	by.Place = f.tenant.ID
	return f.Do(f.t.Context(), by, KindRefund, id, Values{FieldTenant: f.tenant.ID, "collection": of.ID, "amount": amount}, "Goods returned")
}

// A refund from a page follows the policy's line for payouts. Another person approves it, and the payer gets it once.
func TestRefund_waits(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		of, had, id := f.collected(1)[0], f.wallet(), newID()
		r, err := f.refund(f.finance, id, of, "6.00")
		if err != nil || r.Kind != KindRefund || r.State != Waiting || r.Needs != 1 || r.Place != f.tenant.ID || r.Amount != 6*money.Cedi || r.digest() != r.Digest ||
			!strings.HasPrefix(r.Sentence, "Refund GHS 6.00 of the collection "+of.Reference+" to TELECEL 233****4567, with a fee of GHS ") {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, want := range []Fact{{Name: "Collection", Value: of.Reference, Of: ofPayment(of.ID)}, {Name: "Left to refund", Value: "GHS 10.00"}, {Name: "Payer", Value: "TELECEL 233****4567"}, {Name: "Way", Value: "a payout to the payer's number"}} {
			if !slices.Contains(r.Facts.List, want) {
				t.Errorf("the facts lack %+v: %+v", want, r.Facts.List)
			}
		}
		if again, err := f.refund(f.finance, id, of, "6.00"); err != nil || again.ID != r.ID {
			t.Errorf("the form again: %+v, %v", again, err)
		}
		_, err = f.refund(f.finance, newID(), of, "")
		f.refused(err, problem.InProgress, "refund_in_progress")
		pay := f.payment(r.ID)
		if !pay.AwaitsApproval() || pay.RefundOf != of.ID || pay.Label != "Goods returned" || f.wallet() != had-pay.Held() {
			t.Errorf("%+v, the wallet has %s of %s", pay, f.wallet(), had)
		}
		by := f.signatory
		by.Place = f.tenant.ID
		seen, err := f.Review(t.Context(), by.Place, r.ID)
		if err != nil || seen.Refused != nil || warned(seen.Now, "refunded before") {
			t.Fatalf("%+v, %v", seen, err)
		}
		if done, err := f.Approve(t.Context(), by, r.ID, r.Digest); err != nil || done.State != Done {
			t.Fatal(done, err)
		}
		if log := f.entries(); log[0].Action != KindRefund || log[0].Changes()[0] != (audit.Change{What: "refund", Before: "waits for approval", After: "is sent"}) {
			t.Errorf("%+v", log[0])
		}
		if pay := f.payment(r.ID); pay.AwaitsApproval() || f.payment(of.ID).Refunded != 6*money.Cedi {
			t.Errorf("%+v", pay)
		}
		f.sound()
	})
}

// The stricter of the lines for refunds and payouts applies to a refund. After a rejection, the collection can be refunded by
// another request.
func TestRefund_rejected(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		f.line(Line{Kind: KindRefund, Tenant: f.tenant.ID, Own: true, Approvers: 0})
		of, had := f.collected(1)[0], f.wallet()
		r, err := f.refund(f.finance, newID(), of, "")
		if err != nil || r.State != Waiting || r.Needs != 1 || r.Amount != 10*money.Cedi {
			t.Fatalf("%+v, %v", r, err)
		}
		by := f.signatory
		by.Place = f.tenant.ID
		if done, err := f.Reject(t.Context(), by, r.ID, r.Digest, "the goods are not here"); err != nil || done.State != Rejected {
			t.Fatal(done, err)
		}
		if f.wallet() != had || f.payment(of.ID).Refunded != 0 {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
		if again, err := f.refund(f.finance, newID(), of, ""); err != nil || again.State != Waiting {
			t.Errorf("%+v, %v", again, err)
		}
		f.sound()
	})
}

// An operator's refund needs a second person of the installation. It reserves no money before, and is refused if anything has
// changed since the request.
func TestOperatorRefund_approvedOnce(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		of, had := f.collected(1)[0], f.wallet()
		r, err := refundFor(t.Context(), f.Changes, f.requester, newID(), of, 600, "", "goods returned")
		if err != nil || r.State != Waiting || r.Needs != 1 || r.Place != roles.Installation || r.Tenant != f.tenant.ID || r.Amount != 600 || r.digest() != r.Digest ||
			!strings.Contains(r.Sentence, "Adom Stores") || !strings.Contains(r.Sentence, "Refund GHS 6.00 of the collection "+of.Reference+" to TELECEL 233****4567, with a fee of GHS ") {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, want := range []Fact{{Name: "Collection", Value: of.Reference, Of: ofPayment(of.ID)}, {Name: "Left to refund", Value: "GHS 10.00"}, {Name: "Payer", Value: "TELECEL 233****4567"}, {Name: "Way", Value: "a payout to the payer's number"}} {
			if !slices.Contains(r.Facts.List, want) {
				t.Errorf("the facts lack %+v: %+v", want, r.Facts.List)
			}
		}
		if f.wallet() != had || f.payment(of.ID).Refunded != 0 {
			t.Error("money moved before the approval")
		}
		_, err = f.Approve(t.Context(), f.requester, r.ID, r.Digest)
		f.refused(err, problem.Forbidden, "own_act")
		done, err := f.Approve(t.Context(), f.first, r.ID, r.Digest)
		if err != nil || done.State != Done {
			t.Fatalf("%+v, %v", done, err)
		}
		pay := f.payment(done.Made)
		if pay.RefundOf != of.ID || pay.Amount != 600 || pay.Label != "goods returned" || f.wallet() != had-pay.Held() || f.payment(of.ID).Refunded != 600 {
			t.Errorf("%+v, the wallet has %s of %s", pay, f.wallet(), had)
		}
		if log := f.entries(); log[0].Action != KindOperatorRefund || log[0].Tenant != f.tenant.ID || log[0].Changes()[0] != (audit.Change{What: "refund of " + of.Reference, Before: "GHS 0.00", After: "GHS 6.00"}) {
			t.Errorf("%+v", log[0])
		}
		_, err = refundFor(t.Context(), f.Changes, f.requester, newID(), of, 100, "", "again")
		f.refused(err, problem.InProgress, "refund_in_progress")
		f.sound()
	})
}

// A process without providers makes a request for a command without a person. A server applies the request once, or ends it with
// the reason of the refusal.
func TestOperatorRefund_leftToAServer(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		list := f.collected(2)
		had, machine := f.wallet(), By{Machine: "break-glass:root", Origin: "here", Place: roles.Installation}
		command := New(f.Deps)
		command.Jobs = jobs.New(f.db, f.clock, slog.New(slog.DiscardHandler), jobs.Options{Node: "cli"})
		command.Payments = f.commands(command.Jobs)
		var left []Request
		for _, of := range []book.Payment{list[0], list[0], list[1]} {
			r, err := refundFor(t.Context(), command, machine, newID(), of, 0, "", "goods returned")
			if err != nil || r.State != Waiting || r.Needs != 0 || r.Requester != identity.Machine || f.wallet() != had {
				t.Fatalf("%+v, %v", r, err)
			}
			left = append(left, r)
		}
		_, err := f.Approve(t.Context(), f.first, left[0].ID, left[0].Digest)
		f.refused(err, problem.Forbidden, "not_your_act")
		if done, err := f.Reject(t.Context(), f.first, left[2].ID, left[2].Digest, "not this one"); err != nil || done.State != Rejected {
			t.Fatal(done, err)
		}
		for _, r := range append(left, left...) {
			if done, err := f.applyLeft(t.Context(), r.ID); !done {
				t.Fatal(err)
			}
		}
		for i, want := range []State{Done, Failed, Rejected} {
			if is, err := f.Store.Get(t.Context(), left[i].ID); err != nil || is.State != want {
				t.Errorf("%d is %s, want %s: %v", i, is.State, want, err)
			}
		}
		if f.payment(list[0].ID).Refunded != 1000 || f.payment(list[1].ID).Refunded != 0 || f.wallet() >= had {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
		if log := f.entries(); !slices.ContainsFunc(log, func(e audit.Entry) bool {
			return e.Action == KindOperatorRefund && e.Actor == machine.Machine && e.Subject == left[0].ID && e.Reason == "goods returned"
		}) {
			t.Errorf("%+v", log)
		}
		f.sound()
	})
}

// A refund is refused at another account, without the role, above the refundable amount, or while payouts are stopped.
func TestRefund_refused(t *testing.T) {
	eachTeam(t, 1, func(f *team) {
		of, had := f.collected(1)[0], f.wallet()
		for amount, why := range map[string]string{"10.01": "must be at most 10.00", "0.09": "must be at least 0.10", "0": "must be at least 0.10", "much": "must be an amount"} {
			if _, err := f.refund(f.finance, newID(), of, amount); !problem.Is(err, problem.Invalid) || !strings.Contains(fmt.Sprint(problem.From(err).Fields["amount"]), why) {
				t.Errorf("%s: %v", amount, err)
			}
		}
		_, err := f.refund(f.signatory, newID(), of, "")
		f.refused(err, problem.Forbidden, "not_allowed")
		for _, by := range []By{f.requester, {Machine: "root", Place: roles.Installation}} {
			_, err = f.Do(t.Context(), by, KindRefund, newID(), Values{FieldTenant: f.tenant.ID, "collection": of.ID}, "x")
			f.refused(err, problem.Forbidden, "person_needed")
		}
		yes := true
		f.becomes(tenant.Change{PayoutsStopped: &yes})
		_, err = f.refund(f.finance, newID(), of, "")
		f.refused(err, problem.Forbidden, "payouts_stopped")
		if f.wallet() != had || f.payment(of.ID).Refunded != 0 {
			t.Errorf("the wallet has %s of %s", f.wallet(), had)
		}
	})
}

// commands returns the payments of a process without providers.
func (f *fixture) commands(queue *jobs.Queue) *payments.Payments {
	f.t.Helper()
	secret, err := config.NewSecret(bytes.Repeat([]byte{7}, config.SecretBytes))
	if err != nil {
		f.t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	p := payments.New(payments.Deps{Treasury: f.Treasury, DB: f.db, Ledger: f.ledger, Tenants: f.Tenants, Jobs: queue, Webhooks: f.Webhooks, Routes: route.New(f.db, f.clock, quiet, []string{"hubtel"}, nil),
		Clock: f.clock, Log: quiet, Secret: secret})
	f.t.Cleanup(p.Close)
	return p
}
