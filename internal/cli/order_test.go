package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// at runs a command for a person at a terminal, who answers a question with one line.
func (w where) at(code int, answer string, args ...string) (stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	e := &frame.Env{Ctx: w.t.Context(), Stdin: strings.NewReader(answer + "\n"), Stdout: &out, Stderr: &errs, Terminal: true}
	if got := run(append(args, w.flags...), e); got != code {
		w.t.Fatalf("makola %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// moves are the commands that move money or credits, each without its reference and reason.
func moves(from, to string) map[string][]string {
	return map[string][]string{
		"wallet.fund":     {"wallet", "fund", from, "500000"},
		"wallet.adjust":   {"wallet", "adjust", from, "0.50", "--take"},
		"wallet.transfer": {"wallet", "transfer", from, to, "49.60"},
		"float.add":       {"float", "add", "hubtel", "1000"},
		"credits.sell":    {"credits", "sell", from, "100", "--price", "3.50"},
		"credits.refund":  {"credits", "refund", from, "10", "--price", "0.35"},
	}
}

// books returns the balances of the ledger's accounts and of these customers in one text.
func (w where) books(tenants ...string) string {
	w.t.Helper()
	l := ledger.New(w.db, clock.Real(), "test")
	all, err := l.TrialBalance(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprint(all)
	for _, id := range tenants {
		balance, err := l.Balance(w.t.Context(), tenant.Tenant{ID: id, Mode: tenant.Live}.Wallet())
		if err != nil {
			w.t.Fatal(err)
		}
		text += fmt.Sprintln(id, balance)
	}
	return text
}

func TestReference_repeatIsANoOp(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		from, to := w.tenant(), w.tenant()
		w.run(exitOK, "wallet", "fund", from, "100", "--reason", "opening", "--reference", "opening")
		w.run(exitOK, "credits", "sell", from, "50", "--price", "1", "--reason", "opening", "--reference", "opening")
		for kind, command := range moves(from, to) {
			said := append(command, "--reason", "bank slip", "--reference", "slip 17/3")
			before := w.books(from, to)
			w.run(exitUsage, append(command, "--reason", "bank slip")...)
			w.run(exitUsage, append(command, "--reason", " ", "--reference", "slip 17/3")...)
			w.run(exitUsage, append(command, "--reason", "bank slip", "--reference", " slip")...)
			w.run(exitUsage, append(command, "--reason", "bank slip", "--reference", strings.Repeat("x", 65))...)
			if w.books(from, to) != before {
				t.Fatalf("%s: a refused command moved money", kind)
			}
			w.run(exitOK, said...)
			moved := w.books(from, to)
			if moved == before {
				t.Fatalf("%s moved nothing", kind)
			}
			for range 2 {
				if _, errs := w.run(exitConflict, said...); !strings.Contains(errs, "Nothing was moved") || !strings.Contains(errs, "slip 17/3") {
					t.Errorf("%s says %q", kind, errs)
				}
			}
			if w.books(from, to) != moved {
				t.Errorf("%s: the repeat moved money", kind)
			}
			log := w.list("audit", "list", "--action", kind, "--limit", "1")
			details := log[0]["details"].(map[string]any)
			if details["reference"] != "slip 17/3" || len(details["changes"].([]any)) == 0 {
				t.Errorf("%s is audited with %v", kind, details)
			}
		}
		has(t, w.object("ledger", "check"), map[string]any{"ok": true})
	})
}

func TestReference_concurrentCommandsMoveOnce(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		ids := []string{w.tenant(), w.tenant()}
		var moved, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				args := append([]string{"wallet", "fund", ids[i%2], "5", "--reason", "bank slip", "--reference", "slip 17"}, w.flags...)
				switch code := Run(args, io.Discard, io.Discard); code {
				case exitOK:
					moved.Add(1)
				case exitConflict:
					refused.Add(1)
				default:
					t.Errorf("exit %d", code)
				}
			})
		}
		wg.Wait()
		if moved.Load() != 1 || refused.Load() != 5 {
			t.Errorf("%d moved and %d were refused", moved.Load(), refused.Load())
		}
		a, b := w.object("wallet", "show", ids[0])["wallet"], w.object("wallet", "show", ids[1])["wallet"]
		if !(a == "5.00" && b == "0.00" || a == "0.00" && b == "5.00") {
			t.Errorf("the wallets hold %v and %v", a, b)
		}
	})
}

func TestOrder_asksOnATerminal(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		from, to := w.tenant(), w.tenant()
		w.run(exitOK, "wallet", "fund", from, "1000", "--reason", "opening", "--reference", "opening")
		fund := []string{"wallet", "fund", from, "500000", "--reason", "bank slip"}
		before := w.books(from, to)
		for _, answer := range []string{"", "n", "no", "what?"} {
			if _, errs := w.at(exitDeclined, answer, fund...); !strings.Contains(errs, "Nothing was done") {
				t.Errorf("%q: %s", answer, errs)
			}
		}
		if w.books(from, to) != before || len(w.list("audit", "list", "--action", "wallet.fund")) != 1 {
			t.Error("a no moved money, or was audited")
		}
		out, errs := w.at(exitOK, "y", append(fund, "-o", "json")...)
		for _, want := range []string{"Put GHS 500,000.00 into the wallet of Adom Stores (live, id …" + from[len(from)-6:] + ")", "now   GHS 1,000.00", "then  GHS 501,000.00", "has a name like Adom Stores", "bank slip", "Continue? [y/N]"} {
			if !strings.Contains(errs, want) {
				t.Errorf("the question lacks %q:\n%s", want, errs)
			}
		}
		if !strings.HasPrefix(out, "{") || !strings.Contains(out, `"501000.00"`) {
			t.Errorf("the output is %s", out)
		}
		// A warning reports the same amount again, even with another reference.
		if _, errs := w.at(exitDeclined, "n", append(fund, "--reference", "slip 18")...); !strings.Contains(errs, "The same amount was booked at") {
			t.Errorf("the same amount again: %s", errs)
		}
		if _, errs := w.at(exitOK, "yes", "wallet", "fund", from, "500001", "--reason", "bank slip"); strings.Contains(errs, "The same amount was booked") {
			t.Errorf("another amount: %s", errs)
		}
		_, errs = w.at(exitOK, "y", "wallet", "transfer", from, to, "1000", "--reason", "agreed")
		for _, want := range []string{to[len(to)-6:] + ")", "then  GHS 1,000.00", "now   GHS 1,001,001.00", "then  GHS 1,000,001.00"} {
			if !strings.Contains(errs, want) {
				t.Errorf("the question lacks %q:\n%s", want, errs)
			}
		}
		if _, errs := w.at(exitFunds, "y", "wallet", "adjust", to, "1000.01", "--take", "--reason", "too much"); !strings.Contains(errs, "has only GHS 1,000.00") {
			t.Errorf("no warning of what the wallet does not cover: %s", errs)
		}
		if _, errs := w.at(exitOK, "y", "float", "add", "mtn", "70", "--take", "--reason", "withdrawal"); !strings.Contains(errs, "then  GHS -70.00") {
			t.Errorf("a float: %s", errs)
		}
		if _, errs := w.at(exitOK, "y", "credits", "sell", to, "1000", "--price", "35", "--reason", "invoice 7"); !strings.Contains(errs, "1,000 credits") || !strings.Contains(errs, "for GHS 35.00") {
			t.Errorf("credits: %s", errs)
		}
	})
}

// An interrupt counts as no, even without Enter.
func TestConfirm_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, held := io.Pipe()
	t.Cleanup(func() { _ = held.Close() })
	e := &frame.Env{Ctx: ctx, Stdin: in, Stderr: io.Discard}
	cancel()
	if err := e.Confirm("Continue?"); !errors.Is(err, frame.ErrDeclined) {
		t.Errorf("the answer is %v", err)
	}
}

// Each command that moves money loses its answer to COMMIT. The movement is made once, the command reports success, and a
// repeat is refused.
func TestOrder_lostAnswerIsDoneOnce(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		o := frame.Assemble(d, clock.Real())
		var who tenant.Tenant
		if err := o.Change(t.Context(), audit.Entry{Action: "tenant.create"}, func(tx *db.Tx) (any, error) {
			var err error
			who, err = o.Tenants.Create(tx, tenant.Tenant{Name: "Adom", Mode: tenant.Live})
			return nil, err
		}); err != nil {
			t.Fatal(err)
		}
		fund := func(reference string) error {
			q := &frame.Ask{E: &frame.Env{Ctx: t.Context(), Stdout: io.Discard}, O: o, Changes: o.Changes(config.Secret{}), Output: "json", Reason: "bank slip",
				Values: changes.Values{changes.FieldTenant: who.ID, "amount": "5.00", "reference": reference}}
			return frame.Alias{Kind: changes.KindFund, Money: true, Show: func(*frame.Ask) error { return nil }}.Do(q)
		}
		for i, fault := range []db.Fault{db.FaultAfter, db.FaultBefore} {
			reference := fmt.Sprintf("slip 1/%d", i)
			faults.At(db.BoundaryCommit, 1, fault)
			if err := fund(reference); err != nil {
				t.Fatalf("fault %d: %v", fault, err)
			}
			if err := fund(reference); !problem.Is(err, problem.Duplicate) {
				t.Errorf("fault %d, the repeat: %v", fault, err)
			}
			if held, err := o.Ledger.Balance(t.Context(), who.Wallet()); err != nil || held != int64(500*(i+1)) {
				t.Errorf("fault %d: the wallet holds %d, %v", fault, held, err)
			}
		}
		// The database cannot be reached any more: the command reports an unknown outcome and how to find it.
		faults.Decide(func(b db.Boundary) db.Fault {
			if b == db.BoundaryCommit {
				return db.FaultAfter
			}
			return db.FaultNone
		})
		err := fund("slip 3")
		faults.Decide(nil)
		if code := frame.Report(io.Discard, err); code != exitUnknown || !strings.Contains(problem.From(err).Message, `--reference "slip 3"`) {
			t.Errorf("exit %d, %v", code, err)
		}
		if err := fund("slip 3"); !problem.Is(err, problem.Duplicate) {
			t.Errorf("the repeat of what was done: %v", err)
		}
		if held, err := o.Ledger.Balance(t.Context(), who.Wallet()); err != nil || held != 1500 {
			t.Errorf("the wallet holds %d, %v", held, err)
		}
	})
}

func TestFeesSet_defaultPlanListsAccounts(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		own, none := w.tenant(), w.tenant()
		if _, errs := w.run(exitOK, "fees", "set", own, "--free", "--reason", "agreed"); errs != "" {
			t.Errorf("a plan of one customer says %q", errs)
		}
		set := []string{"fees", "set", "default", "--rule", "payout=1", "--reason", "agreed"}
		_, errs := w.at(exitDeclined, "n", set...)
		if !strings.Contains(errs, "default plan: 1\n") || !strings.Contains(errs, none) || strings.Contains(errs, own) {
			t.Errorf("it says %q", errs)
		}
		if plan := w.list("fees", "show"); len(plan) != 0 {
			t.Errorf("a no made the plan %v", plan)
		}
		w.at(exitOK, "y", set...)
		if _, errs := w.run(exitOK, set...); !strings.Contains(errs, none) {
			t.Errorf("without a terminal it says %q", errs)
		}
		for _, rule := range []string{"topup=1%", "bundle=0.10", "airtime_momo=1%", "payout/WALLET=1", "collection/BANK=1"} {
			w.run(exitUsage, "fees", "set", own, "--rule", rule, "--reason", "agreed")
		}
	})
}

func TestMoney_textForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "GHS 0.00", 99: "GHS 0.99", 100_000: "GHS 1,000.00", 99_999: "GHS 999.99", -123_456_789: "GHS -1,234,567.89"} {
		if got := frame.Worth(ledger.GHS, n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for asset, want := range map[ledger.Asset]string{ledger.TestGHS: "test GHS 12.34", ledger.SMS: "1,234 credits", ledger.TestSMS: "1,234 test credits"} {
		if got := frame.Worth(asset, 1234); got != want {
			t.Errorf("%s: %s, want %s", asset, got, want)
		}
	}
}

// In production a command moves no money if the machine's clock is wrong, not even with --break-glass. Other commands work.
func TestClock_wrongStopsMoneyCommands(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		if w.db.Engine() != db.SQLite {
			return // on PostgreSQL the clock of the tests' server is this machine's
		}
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip", "--reference", "slip 1")
		pay := w.stuck(t, id, "order-000000001")
		produce(w)
		emergency := []string{"--reason", "x", glass}
		w.run(exitOK, append([]string{"wallet", "fund", id, "1", "--reference", "slip 2"}, emergency...)...)
		later := uuid.UUID{8: 0x80} // an id from a node whose clock was an hour ahead
		binary.BigEndian.PutUint64(later[:8], uint64(time.Now().Add(time.Hour).UnixMilli())<<16|0x7000)
		if _, err := w.db.Exec(t.Context(), `UPDATE payments SET id = $1 WHERE id = $2`, later.String(), pay.ID); err != nil {
			t.Fatal(err)
		}
		if _, errs := w.run(exitUnavailable, append([]string{"wallet", "fund", id, "1", "--reference", "slip 3"}, emergency...)...); !strings.Contains(errs, "behind the newest row") {
			t.Error(errs)
		}
		w.run(exitOK, append([]string{"clock", "accept"}, emergency...)...)
		w.run(exitOK, append([]string{"wallet", "fund", id, "1", "--reference", "slip 3"}, emergency...)...)
	})
}
