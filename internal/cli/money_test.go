package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

func TestMoney_walletsAndFloats(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		from, to := w.tenant(), w.tenant()
		has(t, w.object("wallet", "fund", from, "250.00", "--reason", "bank slip 1", "--reference", "r1"), map[string]any{"tenant": from, "wallet": "250.00", "sms_credits": 0})
		has(t, w.object("wallet", "adjust", from, "0.50", "--take", "--reason", "booked twice", "--reference", "r2"), map[string]any{"wallet": "249.50"})
		has(t, w.object("wallet", "adjust", from, "0.10", "--reason", "booked too little", "--reference", "r3"), map[string]any{"wallet": "249.60"})
		has(t, w.object("wallet", "transfer", from, to, "49.60", "--reason", "agreed", "--reference", "r4"), map[string]any{"channel": "WALLET", "amount": "49.60", "status": "success", "charges": "0.00"})
		has(t, w.object("wallet", "show", to), map[string]any{"wallet": "49.60"})
		w.run(exitFunds, "wallet", "transfer", from, to, "1000", "--reason", "too much", "--reference", "r5")
		w.run(exitFunds, "wallet", "adjust", from, "1000", "--take", "--reason", "too much", "--reference", "r6")
		w.run(exitNotFound, "wallet", "fund", "nobody", "1", "--reason", "no such customer", "--reference", "r7")
		w.run(exitUsage, "wallet", "fund", from, "1")
		w.run(exitUsage, "wallet", "fund", from, "-1", "--reason", "a sign", "--reference", "r8")

		if held := w.list("float", "add", "hubtel", "1000", "--mode", "test", "--reason", "deposit", "--reference", "r9"); len(held) != 1 || held[0]["held"] != "1000.00" {
			t.Errorf("floats are %v", held)
		}
		w.run(exitOK, "float", "add", "hubtel", "100", "--take", "--mode", "test", "--reason", "withdrawal", "--reference", "r10")
		w.run(exitUsage, "float", "add", "hubtle", "100", "--mode", "test", "--reason", "mistyped", "--reference", "r11")
		floats := w.list("float", "show")
		if len(floats) != 1 {
			t.Fatalf("floats: %v", floats)
		}
		has(t, floats[0], map[string]any{"asset": "TEST_GHS", "account": "float/hubtel", "held": "900.00"})
		w.run(exitOK, "float", "add", "hubtel", "300", "--take", "--mode", "test", "--reason", "to its account", "--reference", "r12")
		w.run(exitOK, "float", "add", "hubtel", "300", "--account", "disbursement", "--mode", "test", "--reason", "to its account", "--reference", "r13")
		w.run(exitUsage, "float", "add", "hubtel", "300", "--account", "savings", "--mode", "test", "--reason", "mistyped", "--reference", "r14")
		floats = w.list("float", "show")
		if len(floats) != 2 {
			t.Fatalf("floats: %v", floats)
		}
		has(t, floats[0], map[string]any{"account": "float/hubtel", "held": "600.00"})
		has(t, floats[1], map[string]any{"account": "float/hubtel/disbursement", "held": "300.00"})

		w.run(exitUsage, "wallet", "recover", from, "--reason", "owes nothing")
		w.owe(t, to, 100_00)
		has(t, w.object("wallet", "show", to), map[string]any{"wallet": "49.60", "owes": "100.00"})
		has(t, w.object("wallet", "recover", to, "--reason", "agreed"), map[string]any{"wallet": "0.00", "owes": "50.40"})
		w.run(exitFunds, "wallet", "recover", to, "--reason", "nothing is left")
		if audit := w.list("audit", "list", "--tenant", to); len(audit) != 2 || audit[0]["action"] != "wallet.recover" || audit[0]["changes"].([]any)[0] != "Adom Stores owes: GHS 100.00 → GHS 50.40;" {
			t.Errorf("audited: %v", audit)
		}

		list := w.list("payouts", "list", from)
		if len(list) != 1 || list[0]["channel"] != "WALLET" {
			t.Errorf("payouts: %v", list)
		}
		if list := w.list("payouts", "list", to); len(list) != 1 || list[0]["channel"] != "WALLET" {
			t.Errorf("what came in: %v", list)
		}
		statement := w.list("ledger", "statement", from)
		if len(statement) != 8 {
			t.Fatalf("statement: %v", statement)
		}
		has(t, statement[0], map[string]any{"what": "opening", "balance": "0.00"})
		has(t, statement[2], map[string]any{"change": "-0.50", "balance": "249.50", "reference": "r2"})
		has(t, statement[4], map[string]any{"change": "-49.60", "payee": "Adom Stores", "provider_reference": ""})
		has(t, statement[5], map[string]any{"what": "closing", "balance": "200.00"})
		has(t, statement[6], map[string]any{"what": "total in", "change": "250.10", "balance": nil})
		has(t, statement[7], map[string]any{"what": "total out", "change": "-50.10"})
		if audit := w.list("audit", "list", "--tenant", from); len(audit) != 5 {
			t.Errorf("audited: %v", audit)
		}
		has(t, w.object("ledger", "check"), map[string]any{"ok": true, "wallets": 4, "payments": 2})
	})
}

// An amount above the limit of an account is refused, and the error names the limit.
func TestMoney_aboveTheLimitIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		from, to := w.tenant(), w.tenant()
		refused := func(args ...string) {
			t.Helper()
			_, said := w.run(exitUsage, append(args, "--reason", "x")...)
			if !strings.Contains(strings.ReplaceAll(said, ",", ""), "at most") || !strings.Contains(strings.ReplaceAll(said, ",", ""), "10000000000000.00") {
				t.Errorf("makola %s: %s", strings.Join(args, " "), said)
			}
		}
		const most = "10000000000000.00"
		for i, amount := range []string{"10000000000000.01", "92233720368547758.07", "92233720368547758.08", strings.Repeat("9", 40)} {
			reference := fmt.Sprintf("r%d", i)
			refused("wallet", "fund", from, amount, "--reference", reference)
			refused("wallet", "adjust", from, amount, "--reference", reference)
			refused("wallet", "adjust", from, amount, "--take", "--reference", reference)
			refused("wallet", "transfer", from, to, amount, "--reference", reference)
			refused("float", "add", "mtn", amount, "--mode", "live", "--reference", reference)
			refused("float", "add", "mtn", amount, "--take", "--mode", "live", "--reference", reference)
			refused("credits", "sell", from, "10", "--price", amount, "--reference", reference)
			refused("fees", "set", "--rule", "payout="+amount)
			refused("tenant", "set", from, "--bank-transfer-limit", amount)
		}
		w.run(exitOK, "wallet", "fund", from, "9999999999999.99", "--reason", "x", "--reference", "s1")
		refused("wallet", "fund", from, "0.02", "--reference", "s2")
		refused("wallet", "adjust", from, most, "--reference", "s3")
		has(t, w.object("wallet", "show", from), map[string]any{"wallet": "9999999999999.99"})
		has(t, w.object("ledger", "check"), map[string]any{"ok": true})
	})
}

// owe makes a tenant owe an amount in pesewas, as after a reversal that its wallet does not cover.
func (w where) owe(t *testing.T, tenantID string, pesewas int64) {
	t.Helper()
	l := ledger.New(w.db, clock.Real(), "test")
	if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
		page, err := l.Open(tx)
		if err == nil {
			err = page.Add(ledger.Transfer{Asset: ledger.GHS, From: ledger.Receivable(tenantID), To: ledger.Float("mtn"), Amount: pesewas,
				Subject: "reversal", Leg: book.LegContradictedRest, Kind: "reversed", At: clock.Real().Now()})
			page.Post()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// lost is a provider that never answers.
type lost struct{}

func (lost) TopUp(context.Context, provider.TopUpRequest) provider.Outcome { return provider.Outcome{} }

func (lost) TopUpStatus(context.Context, provider.StatusRequest) provider.Outcome {
	return provider.Outcome{NotFound: true}
}

func (lost) Collect(context.Context, provider.CollectRequest) provider.Outcome {
	return provider.Outcome{}
}

func (lost) CollectStatus(context.Context, provider.StatusRequest) provider.Outcome {
	return provider.Outcome{}
}

func TestPayouts_stuckResolvedDecided(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip 1", "--reference", "r12")
		paid, unpaid := w.stuck(t, id, "order-000000001"), w.stuck(t, id, "order-000000002")
		if list := w.list("payouts", "stuck"); len(list) != 2 {
			t.Fatalf("stuck: %v", list)
		}
		references := w.list("payouts", "references", id, "order-000000001", "--kind", "topup")
		if len(references) < 2 || references[0]["attempt_reference"] != paid.ProviderReference || references[1]["attempt_reference"] == paid.ProviderReference {
			t.Errorf("references: %v, not %s", references, paid.ProviderReference)
		}
		w.run(exitUsage, "payouts", "resolve", paid.ID, "--reason", "neither nor")
		w.run(exitUsage, "payouts", "resolve", paid.ID, "--unpaid", "--provider-fee", "1", "--reason", "both")
		w.run(exitNotFound, "payouts", "resolve", "no-such-payment", "--paid", "--reason", "statement 5")
		has(t, w.object("payouts", "resolve", paid.ID, "--paid", "--provider-fee", "0.05", "--reason", "statement 5"), map[string]any{"status": "success"})
		has(t, w.object("payouts", "resolve", unpaid.ProviderReference, "--unpaid", "--reason", "statement 5"), map[string]any{"status": "failed"})
		w.run(exitConflict, "payouts", "resolve", paid.ID, "--unpaid", "--reason", "statement 6")
		log := w.list("audit", "list", "--tenant", id, "--action", "payout.resolve")
		if len(log) != 2 || log[0]["changes"].([]any)[0] != "status: submitted → failed;" {
			t.Fatalf("audited: %v", log)
		}
		has(t, log[1], map[string]any{"reason": "statement 5", "changes": []string{"status: submitted → success;", "provider's fee: - → GHS 0.05;", "commission: - → GHS 0.00;"}})
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "90.00"})
		statement := w.list("ledger", "statement", id)
		if len(statement) != 8 {
			t.Fatalf("statement: %v", statement)
		}
		has(t, statement[1], map[string]any{"change": "100.00", "reference": "r12"})
		has(t, statement[2], map[string]any{"reference": "order-000000001", "payee": "233241234567", "provider_reference": paid.ProviderReference, "change": "-10.00", "balance": "90.00"})
		if table, _ := w.run(exitOK, "ledger", "statement", id); !strings.Contains(table, "Z  ") || strings.Count(table, "order-000000002") != 2 {
			t.Errorf("the table is\n%s", table)
		}
		day := statement[0]["at"].(string)[:10]
		if got := w.list("ledger", "statement", id, "--from", "2020-01-01", "--to", day); len(got) != 8 {
			t.Errorf("the day's: %v", got)
		}
		if list := w.list("payouts", "stuck"); len(list) != 0 {
			t.Errorf("stuck: %v", list)
		}
		floats := w.list("float", "show")
		if len(floats) != 1 {
			t.Fatalf("floats: %v", floats)
		}
		has(t, floats[0], map[string]any{"held": "-10.05"})
		has(t, w.object("payouts", "show", paid.ID), map[string]any{"status": "success", "provider": "hubtel"})
		w.run(exitUsage, "payouts", "decide", paid.ID, "--for", "house", "--reason", "nothing to decide")
		// The resolution was wrong: the provider paid after all, and the company bears the loss.
		decide := []string{"payouts", "decide", unpaid.ID, "--paid", "--for", "house", "--reason", "statement 7"}
		w.run(exitUsage, append(decide, "--unpaid")...)
		has(t, w.object(decide...), map[string]any{"status": "failed", "reason": "resolved_by_operator", "resolved": "statement 7"})
		w.run(exitConflict, decide...)
		w.run(exitUsage, "payouts", "decide", paid.ID, "--paid", "--for", "house", "--reason", "it is paid")
		if log := w.list("audit", "list", "--tenant", id, "--action", "payout.contradict"); len(log) != 1 || log[0]["changes"].([]any)[0] != "outcome: not paid → paid;" {
			t.Errorf("audited: %v", log)
		}
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "90.00"})
		has(t, w.object("ledger", "check"), map[string]any{"ok": true, "payments": 2})
		if _, err := w.db.Exec(t.Context(), `UPDATE payments SET amount = amount + 1 WHERE id = $1`, paid.ID); err != nil {
			t.Fatal(err)
		}
		w.run(exitInternal, "ledger", "check")
	})
}

// stuck returns a top-up of 10.00 that needs an operator.
func (w where) stuck(t *testing.T, tenantID, reference string) book.Payment {
	t.Helper()
	p, routes := w.domain(t)
	networks, err := routes.Networks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pay, _, err := p.TopUp(t.Context(), idempotency.Caller{Tenant: tenantID}, payments.TopUp{
		MSISDN: "233241234567", Amount: 10 * money.Cedi, NetworkID: networks[0].ID, Reference: reference})
	if err != nil {
		t.Fatal(err)
	}
	w.escalated(t, pay)
	return pay
}

// collected returns a collection of 10.00 that an operator resolved as paid.
func (w where) collected(t *testing.T, tenantID, reference string) book.Payment {
	t.Helper()
	p, _ := w.domain(t)
	pay, _, err := p.Collect(t.Context(), idempotency.Caller{Tenant: tenantID}, payments.Collect{
		MSISDN: "233241234567", Network: msisdn.MTN, Amount: 10 * money.Cedi, Reference: reference})
	if err != nil {
		t.Fatal(err)
	}
	w.escalated(t, pay)
	if _, err := p.Resolve(t.Context(), pay.ID, true, "statement", "ama"); err != nil {
		t.Fatal(err)
	}
	return pay
}

// escalated makes a payment wait for the operators.
func (w where) escalated(t *testing.T, pay book.Payment) {
	t.Helper()
	if _, err := w.db.Exec(t.Context(), `UPDATE payments SET escalated_at = created_at, waited_for = created_at WHERE id = $1`, pay.ID); err != nil {
		t.Fatal(err)
	}
}

// domain returns payments as a server had them an hour ago, with a provider that never answers. Its queue never starts.
func (w where) domain(t *testing.T) (*payments.Payments, *route.Table) {
	t.Helper()
	secret, err := config.ParseSecret(testMasterKey)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	c := clock.NewManual(time.Now().Add(-time.Hour))
	l := ledger.New(w.db, c, "server")
	routes := route.New(w.db, c, quiet, nil, []provider.Rail{{Name: "hubtel", Mode: "live", TopUpper: lost{}, Collector: lost{}}})
	if err := routes.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	queue := jobs.New(w.db, c, quiet, jobs.Options{Node: "server"})
	p := payments.New(payments.Deps{DB: w.db, Ledger: l, Tenants: tenant.New(w.db, l, c), Jobs: queue, Clock: c, Log: quiet, Secret: secret, Routes: routes,
		Webhooks: webhook.New(w.db, queue, c, quiet, webhook.Options{Secret: secret})})
	t.Cleanup(p.Close)
	return p, routes
}
