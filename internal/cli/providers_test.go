package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
)

// served returns the table of a server that has started on the database.
func (w where) served() *route.Table {
	w.t.Helper()
	table := route.New(w.db, clock.Real(), slog.New(slog.DiscardHandler), nil, nil)
	if err := table.Seed(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return table
}

// named calls do with the table of routes of a program that had an adapter of that name.
func (w where) named(name string, do func(*db.Tx, *route.Table) error) {
	w.t.Helper()
	before := route.New(w.db, clock.Real(), slog.New(slog.DiscardHandler), []string{name}, nil)
	if err := w.db.Write(w.t.Context(), func(tx *db.Tx) error { return do(tx, before) }); err != nil {
		w.t.Fatal(err)
	}
}

func TestProviders_pausedAndResumed(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.served()
		well := w.list("providers", "list", "--mode", "live")
		if len(well) < 9 || well[0]["paused"] != false || well[0]["breaker"] != "closed" {
			t.Errorf("listed %v", well)
		}
		if well[0]["not_known"] != "" {
			t.Errorf("nobody was asked, and %v", well[0])
		}
		got := w.list("providers", "pause", "mtn", "--mode", "live", "--operation", "collect", "--reason", "maintenance")
		if len(got) != 3 || got[0]["operation"] != "collect" || got[0]["paused"] != true || !strings.Contains(got[0]["why"].(string), "maintenance") || got[1]["paused"] != false {
			t.Errorf("paused %v", got)
		}
		got = w.list("providers", "resume", "mtn", "--mode", "live", "--operation", "collect", "--reason", "over")
		if got[0]["paused"] != false {
			t.Errorf("resumed %v", got)
		}
		log := w.list("audit", "list")
		if len(log) != 2 || log[1]["action"] != "provider.pause" || log[1]["changes"].([]any)[0] != "mtn (live) collect: not paused → paused;" || log[1]["reason"] != "maintenance" {
			t.Errorf("audit %v", log)
		}
		w.run(exitUsage, "providers", "pause", "mtn", "--mode", "live", "--operation", "everything", "--reason", "x")
		w.run(exitUsage, "providers", "pause", "mtn", "--mode", "live")
		// A pause of an unknown provider is refused, because it would stop nothing. An existing pause can be ended.
		w.run(exitUsage, "providers", "pause", "MTN", "--mode", "live", "--reason", "outage")
		w.run(exitUsage, "providers", "resume", "gone", "--mode", "live", "--reason", "over")
		w.named("gone", func(tx *db.Tx, before *route.Table) error {
			return before.Pause(tx, route.Pause{Mode: "live", Provider: "gone", Operation: route.Any, Reason: "outage", Actor: "ama"})
		})
		if got := w.list("providers", "resume", "gone", "--mode", "live", "--reason", "over"); len(got) != 0 {
			t.Errorf("left of a provider that has gone: %v", got)
		}
	})
}

func TestRoutes_accountBeforeDefault(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.served()
		before := len(w.list("providers", "routes"))
		made := w.object("tenant", "create", "Ama", "--mode", "test")
		id := made["id"].(string)
		w.run(exitOK, "providers", "route", "collect", "mtn", "hubtel", "mtn", "--tenant", id, "--reason", "cheaper")
		own := w.list("providers", "routes", "--tenant", id)
		if len(own) != 1 || own[0]["channel"] != "MTN" || len(own[0]["providers"].([]any)) != 2 {
			t.Errorf("own routes %v", own)
		}
		w.run(exitOK, "providers", "route", "collect", "MTN", "--tenant", id, "--drop", "--reason", "no more")
		w.run(exitNotFound, "providers", "route", "collect", "MTN", "--tenant", id, "--drop", "--reason", "no more")
		w.run(exitNotFound, "providers", "route", "collect", "MTN", "--tenant", "nobody", "--reason", "x")
		w.run(exitUsage, "providers", "route", "steal", "MTN", "--reason", "x")
		w.run(exitUsage, "providers", "route", "collect", "GLO", "mtn", "--reason", "x")
		w.run(exitUsage, "providers", "route", "collect", "MTN", "hubtle", "--reason", "x")
		bank := w.list("catalogue", "list", "--kind", "bank")[0]["id"].(string)
		w.run(exitOK, "providers", "route", "disburse_bank", bank, "hubtel", "--tenant", id, "--reason", "x")
		w.run(exitOK, "providers", "route", "disburse_bank", bank, "--tenant", id, "--drop", "--reason", "x")
		// For all accounts: a route that names a removed provider can be removed, and a default route can be changed.
		w.named("gone", func(tx *db.Tx, then *route.Table) error {
			return then.SetRoute(tx, route.Route{Tenant: route.Any, Mode: "live", Operation: route.Collect, Channel: "MTN", Providers: []string{"gone"}, Actor: "ama"})
		})
		w.run(exitOK, "providers", "route", "collect", "mtn", "--mode", "live", "--drop", "--reason", "it has gone")
		w.run(exitNotFound, "providers", "route", "collect", "mtn", "--mode", "live", "--drop", "--reason", "it has gone")
		w.run(exitNotFound, "providers", "route", "collect", "MTN", "--tenant", "nobody", "--drop", "--reason", "x")
		w.run(exitUsage, "providers", "route", "collect", "MTN", "--drop", "--reason", "x")
		if after := len(w.list("providers", "routes")); after != before {
			t.Errorf("%d routes, before %d", after, before)
		}
	})
}

func TestExchanges_byPayment(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		table := w.served()
		if err := table.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "10.00", "--reason", "bank slip", "--reference", "r20")
		pay := w.stuck(t, id, "order-000000001")
		table.Record(provider.Exchange{At: time.Now(), Provider: "hubtel", Mode: "live", Operation: "collect", Payment: pay.ID, Reference: pay.ProviderReference,
			Method: "POST", Status: 200, Answer: `{"a":1}`, Written: true})
		if err := table.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{pay.ID, pay.ProviderReference, provider.PlainReference(pay.ProviderReference)} {
			got := w.list("providers", "exchanges", id)
			if len(got) != 1 || got[0]["answer"] != `{"a":1}` || got[0]["sent"] != true || got[0]["status"] != 200.0 || got[0]["payment"] != pay.ID {
				t.Errorf("exchanges of %s: %v", id, got)
			}
		}
		w.run(exitNotFound, "providers", "exchanges", "0b9e1c9e-8f1d-4c7b-9d53-0c4f9a8e7d21")
		if out, _ := w.run(exitOK, "providers", "exchanges"); !strings.Contains(out, "collect") {
			t.Errorf("printed %s", out)
		}
	})
}

// The printed callback address is an address at which the server listens.
func TestProviders_callbackAddress(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.served()
		out, _ := w.run(exitOK, "providers", "callback", "paystack", "--public-url", "https://pay.example/")
		if !regexp.MustCompile(`https://pay\.example/callbacks/paystack/[0-9a-f]{32}`).MatchString(out) {
			t.Errorf("printed %s", out)
		}
		if test, _ := w.run(exitOK, "providers", "callback", "paystack", "--mode", "test", "--public-url", "https://pay.example/"); test == out {
			t.Error("test and live money have one address")
		}
		w.run(exitUsage, "providers", "callback", "paystak")
	})
}

func TestCatalogue_entriesChanged(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.served()
		if all := w.list("catalogue", "list"); len(all) != 3+4+26 {
			t.Errorf("%d entries", len(all))
		}
		got := w.list("catalogue", "set", "network", "MTN", "--id", "7", "--reason", "as before")
		if len(got) != 1 || got[0]["id"] != "7" || got[0]["name"] != "MTN" || got[0]["status"] != "active" {
			t.Errorf("set %v", got)
		}
		got = w.list("catalogue", "bank-code", "090100", "hubtel", "300308", "--reason", "told by Hubtel")
		if codes := got[0]["provider_codes"].([]any); len(codes) != 2 || codes[0] != "hubtel=300308" || codes[1] != "paystack=090100" {
			t.Errorf("bank code %v", got)
		}
		if out, _ := w.run(exitOK, "catalogue", "prefix", "0553", "vodafone", "--reason", "x"); !strings.Contains(out, "TELECEL") {
			t.Errorf("printed %s", out)
		}
		w.run(exitNotFound, "catalogue", "set", "bank", "999999", "--name", "x", "--reason", "x")
		w.run(exitNotFound, "catalogue", "bank-code", "999999", "hubtel", "1", "--reason", "x")
		w.run(exitUsage, "catalogue", "bank-code", "090100", "hubtle", "1", "--reason", "x")
		w.run(exitUsage, "catalogue", "set", "bank", "040100", "--reason", "x")
		w.run(exitUsage, "catalogue", "prefix", "24", "MTN", "--reason", "x")
	})
}

// The list of providers also has lines for an unbound message centre and for unmatched receipts.
func TestProvidersList_messageCentres(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.served()
		before := len(w.list("providers", "list"))
		c := clock.Real()
		l := ledger.New(w.db, c, "server")
		m := messaging.New(messaging.Deps{DB: w.db, Ledger: l, Tenants: tenant.New(w.db, l, c), Jobs: jobs.New(w.db, c, nil, jobs.Options{Node: "server"}), Answers: idempotency.NewAnswers(w.db, c), Clock: c, Log: slog.New(slog.DiscardHandler)})
		defer m.Close()
		why := "smpp: the bind was refused with status 0x0000000e, ESME_RINVPASWD: invalid password"
		binds := []messaging.Bind{{Name: "mtn", Connections: 1, Bound: 1, Since: c.Now()}, {Name: "telecel", Connections: 1, Since: c.Now(), Why: why}}
		if err := m.NoteBinds(t.Context(), tenant.Live, binds); err != nil {
			t.Fatal(err)
		}
		got := w.list("providers", "list", "--mode", "live")
		got = got[len(got)-3:]
		if got[0]["breaker"] != "bound" || got[1]["breaker"] != "not bound" || !strings.Contains(got[1]["why"].(string), "ESME_RINVPASWD") || got[2]["breaker"] != "matched" {
			t.Errorf("listed %v", got)
		}
		// The receipt arrived a minute ago.
		old := provider.Receipt{UpstreamID: "1a2b", State: provider.Delivered, To: "233241234567", At: c.Now().Add(-time.Minute)}
		if err := m.Receive(t.Context(), old)(); err != nil {
			t.Fatal(err)
		}
		got = w.list("providers", "list")
		if last := got[len(got)-1]; len(got) != before+3 || last["breaker"] != "unmatched" || !strings.Contains(last["why"].(string), "1 receipts since") || !strings.Contains(last["why"].(string), "1a2b") {
			t.Errorf("listed %v", got)
		}
	})
}

// After the runbook of a failing provider, routes and pauses are as before.
func TestRunbook_providerIsDownPutsTheRouteBack(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks/provider-down.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?s)`makola (.*?)`").FindAllStringSubmatch(string(page), -1)
	each(t, func(t *testing.T, w where) {
		w.served()
		routes := func() (list []string) {
			for _, r := range w.list("providers", "routes") {
				list = append(list, fmt.Sprint(r["tenant"], r["mode"], r["operation"], r["channel"], r["providers"]))
			}
			return list
		}
		before, rerouted := routes(), false
		for _, command := range commands {
			var args []string
			for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(command[1], -1) {
				args = append(args, strings.Trim(word, `"`))
			}
			w.run(exitOK, args...)
			rerouted = rerouted || !slices.Equal(routes(), before)
		}
		if after := routes(); !rerouted || !slices.Equal(after, before) {
			t.Errorf("rerouted: %v; the routes were\n%s\nand are\n%s", rerouted, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		for _, p := range w.list("providers", "list") {
			if p["paused"] != false {
				t.Errorf("still paused: %v", p)
			}
		}
	})
}

// simulator runs a simulator until the test ends, and returns its address.
func simulator(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	file, ended := filepath.Join(t.TempDir(), "ready.json"), make(chan error, 1)
	go func() {
		ended <- app.RunSimulator(ctx, app.SimulatorOptions{Listen: "127.0.0.1:0", Data: filepath.Dir(file), ReadyFile: file, Out: io.Discard, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var ready app.Ready
	clocktest.Await(t, "the simulator", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &ready) == nil
	})
	return ready.SimURL
}

// The test of providers prints each check of the configured providers, and is recorded in the audit log. It fails if a check fails.
func TestProviders_tested(t *testing.T) {
	right := simulator(t)
	each(t, func(t *testing.T, w where) {
		w.served()
		out, _ := w.run(exitOK, "providers", "test", "paystack", "--sim", right)
		for _, line := range []string{"credentials", "callbacks", "status of collect", "float disbursement", "last payment"} {
			if !strings.Contains(out, line) {
				t.Errorf("no %s in %s", line, out)
			}
		}
		rows := w.list("providers", "test", "--sim", right)
		tested := map[string]bool{}
		for _, r := range rows {
			tested[fmt.Sprint(r["provider"])] = true
			if r["state"] == "fail" {
				t.Errorf("%v", r)
			}
		}
		for _, name := range []string{"mtn", "hubtel", "paystack", "arkesel", "hubtelsms"} {
			if !tested[name] {
				t.Errorf("%s is not tested: %v", name, tested)
			}
		}
		if _, errs := w.run(exitInternal, "providers", "test", "arkesel", "--sim", "http://127.0.0.1:1"); !strings.Contains(errs, "1 of 3 checks fail") { // the routes and the reports are in order
			t.Error(errs)
		}
		if _, errs := w.run(exitUsage, "providers", "test", "voda", "--sim", right); !strings.Contains(errs, "has no account here") {
			t.Error(errs)
		}
		n := 0
		for _, entry := range w.list("audit", "list") {
			if entry["action"] == "provider.test" {
				n++
			}
		}
		if n < 7 {
			t.Errorf("%d tests are in the audit log", n)
		}
	})
}
