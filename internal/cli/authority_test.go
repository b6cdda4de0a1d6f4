package cli

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/identitytest"
	"github.com/makola/makola/internal/treasury"
)

// reads has the commands that change nothing, or that exist for an installation without a server or without people. Only the
// owner of the machine can run the latter.
var reads = map[string]string{
	"": "serve sim sample doctor health version help complete completion restore", "migrate": "status up copy", "account": "list show", "people": "list", "approvals": "list show kinds policy",
	"fees": "show", "key": "list", "keys": "status", "wallet": "show", "float": "show", "payouts": "contradicted find list stuck show references", "ledger": "check balance statement funds journal totals",
	"audit": "list verify export", "privacy": "export", "providers": "list routes exchanges callback", "catalogue": "list", "webhooks": "list attempts", "senders": "list", "credits": "report",
	"campaigns": "list messages", "otp": "ranges", "contacts": "groups optouts", "incoming": "list numbers", "backup": "create verify list drill record", "jobs": "list dead depth", "figures": "status",
	"batch": "check list status results", "statements": "list exceptions", "day": "show month", "bank": "list transfers",
	"clock": "steps", "recovery": "status access begin open skip allow dismiss claim claims end",
}

func readsOnly(path string) bool {
	noun, verb, two := strings.Cut(path, " ")
	if !two {
		noun, verb = "", path
	}
	return slices.Contains(strings.Fields(reads[noun]), verb)
}

// TestCommands_declaredAsReadingOrChanging: a new command fails here until it is in needs, with the flags that name its caller, or
// in the list of this test.
func TestCommands_declaredAsReadingOrChanging(t *testing.T) {
	t.Parallel()
	model, err := Model()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, leaf := range model.Leaves(false) {
		var flags []string
		for _, f := range leaf.Flags {
			flags = append(flags, f.Name)
		}
		path := frame.CommandName(leaf)
		_, changes := frame.Needs[path]
		declared[path] = true
		switch says := slices.Contains(flags, "break-glass") && slices.Contains(flags, "token-file") && slices.Contains(flags, "reason"); {
		case changes == readsOnly(path):
			t.Errorf("makola %s must be either in needs or in reads", path)
		case changes != says:
			t.Errorf("makola %s changes something: %v; it takes --token-file, --break-glass and --reason: %v", path, changes, says)
		}
	}
	for path := range frame.Needs {
		if !declared[path] {
			t.Errorf("there is no makola %s", path)
		}
		if _, tried := changing[path]; !tried {
			t.Errorf("TestProduction_changesNeedAPerson does not try makola %s", path)
		}
	}
}

// house is an installation in production with people.
type house struct {
	where
	acts      *changes.Changes
	people    *identity.Identity
	log       *audit.Log
	requester identitytest.One // operations
	second    identitytest.One // approver
}

// produce changes a development database into a production database with people.
func produce(w where) *house {
	w.t.Helper()
	at := func(flag string) string {
		if n := slices.Index(w.flags, flag); n >= 0 {
			return w.flags[n+1]
		}
		return ""
	}
	storage := config.Storage{Data: at("--data"), Database: at("--database")}
	if _, err := app.DevelopmentSecret(storage, true); err != nil { // if no variable names a master key
		w.t.Fatal(err)
	}
	secret, err := frame.StoredSecret(storage)
	if err != nil {
		w.t.Fatal(err)
	}
	c := clock.Real()
	h := &house{where: w, log: audit.New(w.db, c)}
	h.people = identity.New(w.db, c, h.log, identity.Options{Secret: secret, HashMemory: identitytest.HashMemory})
	a := access.New(w.db, c)
	of := installation.New(w.db, c)
	if err := of.Check(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
	if err := of.MarkProduction(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	l := ledger.New(w.db, c, "test")
	tenants := tenant.New(w.db, l, c)
	orders := treasury.New(w.db, l, tenants, c, slog.New(slog.DiscardHandler), func(*problem.Fields, string, string) {})
	h.acts = changes.New(changes.Deps{Store: changes.NewStore(w.db, c, h.log, h.people, true), Ledger: l, Tenants: tenants, Access: a, People: h.people, Seal: changes.NewSealer(secret), Treasury: orders})
	h.requester, h.second = h.joins("ama@example.com", roles.Operations), h.joins("kofi@example.com", roles.Approver)
	return h
}

func (h *house) joins(email string, role roles.Role) identitytest.One {
	h.t.Helper()
	return identitytest.Join(h.t, h.db, clock.Real(), h.people, email, identity.Membership{Role: role})
}

// token writes a personal token into a file, and returns the flag with it.
func (h *house) token(who identitytest.One) (flag string, token identity.PersonalToken) {
	h.t.Helper()
	text, token, err := h.people.NewPersonalToken(h.t.Context(), who.Visitor, "a test", netip.MustParseAddr("192.0.2.7"))
	if err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return "--token-file=" + path, token
}

// glass breaks it.
const glass = "--break-glass"

// changing are the commands that change something, each with an example line. ID stands for a customer.
var changing = map[string]string{
	"account create": "Kejetia --mode test", "account set": "ID --blocked on",
	"people create": "--email x@example.com --role support", "people invite": "x@example.com --role support", "people role": "kofi@example.com --role support",
	"people disable": "kofi@example.com", "people enable": "kofi@example.com", "people reset": "kofi@example.com",
	"fees set": "ID --free", "change": "wallet.recover --tenant ID", "key create": "--tenant ID", "key set": "x --tenant ID --daily 1", "key rotate": "x --tenant ID", "keys rotate": "", "figures rebuild": "", "key revoke": "x --tenant ID",
	"wallet fund": "ID 5 --reference r1", "wallet adjust": "ID 5 --reference r2", "wallet transfer": "ID ID 5 --reference r3", "wallet recover": "ID",
	"day statement": "2026-11-01 bank/gcb=5", "day exception": "2026-11-01 bank/gcb 5 --text cheque", "day close": "2026-11-01", "day reopen": "2026-11-01",
	"bank add": "gcb --bank GCB --number 1011012345", "bank close": "gcb", "bank open": "gcb=5", "bank sweep": "gcb 5 --reference b1",
	"bank top-up": "gcb mtn 5 --reference b2", "bank settle": "gcb mtn 5 --reference b3", "bank arrived": "x",
	"float add": "mtn 5 --reference r4", "payouts resolve": "x --paid", "payouts decide": "x --for house", "payouts refund": "ID x",
	"providers pause": "mtn --mode live", "providers resume": "mtn --mode live", "providers route": "collect MTN mtn", "providers test": "mtn",
	"catalogue set": "network MTN --id 7", "catalogue bank-code": "090100 hubtel 1", "catalogue prefix": "0553 MTN",
	"webhooks replay": "--tenant ID x", "webhooks secret": "ID", "senders create": "--tenant ID --name Adum", "senders approve": "x", "senders reject": "x",
	"credits sell": "ID 5 --price 1 --reference r5", "credits refund": "ID 5 --price 1 --reference r6", "campaigns stop": "x", "otp reopen": "ID 0244",
	"statements import": "FILE --source live/mtn/collection",
	"batch check":       "ID testdata/salaries.csv", "batch send": "ID testdata/salaries.csv", "batch pause": "ID x", "batch resume": "ID x", "batch cancel": "ID x",
	"contacts add-group": "ID Traders", "contacts import": "ID FILE --group x", "contacts optout": "ID 0244123456", "contacts optin": "ID 0244123456", "jobs rerun": "x", "clock accept": "", "privacy erase": "0244123456",
}

// line returns such a command with its arguments.
func (w where) line(command, customer string) []string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "contacts.csv")
	if err := os.WriteFile(file, []byte("0244123456\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	args := strings.Fields(command + " " + strings.NewReplacer("ID", customer, "FILE", file).Replace(changing[command]))
	return append(args, "--reason", "a test")
}

func TestProduction_changesNeedAPerson(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant() // before there are people, a command needs no person
		h := produce(w)
		auditor, _ := h.token(h.joins("yaa@example.com", roles.Auditor))
		before := len(w.list("audit", "list", "--limit", "1000"))
		for command := range frame.Needs {
			args := w.line(command, id)
			if _, errs := w.run(exitForbidden, args...); !strings.Contains(errs, "MAKOLA_TOKEN or --token-file") || !strings.Contains(errs, "--break-glass --reason") {
				t.Errorf("makola %s says %s", command, errs)
			}
			if _, errs := w.run(exitForbidden, append(args, auditor)...); !strings.Contains(errs, "yaa@example.com does not have the permission") {
				t.Errorf("makola %s of an auditor says %s", command, errs)
			}
			if _, errs := w.run(exitForbidden, append(args, "--token-file", w.file("mk_person_x"))...); !strings.Contains(errs, "token is not valid") {
				t.Errorf("makola %s with nobody's token says %s", command, errs)
			}
			without := slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--reason" || s == "a test" })
			if _, errs := w.run(exitUsage, append(without, glass)...); !strings.Contains(errs, "reason") {
				t.Errorf("makola %s breaks the glass without a reason and says %s", command, errs)
			}
		}
		if after := len(w.list("audit", "list", "--limit", "1000")); after != before {
			t.Errorf("%d entries more in the audit log", after-before)
		}
		w.run(exitOK, "people", "list")
		w.run(exitOK, "migrate", "up")
		w.run(exitOK, "recovery", "begin", "--reason", "a snapshot") // a person who is locked out can do everything that a recovery needs
	})
}

// file makes a file that only its owner can read.
func (w where) file(text string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func TestToken_waitsForApproval(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.requester)
		fund := []string{"wallet", "fund", id, "500000", "--reason", "paid by bank", "--reference", "slip 17/3", flag}
		out, errs := w.run(exitWaits, append(fund, "-o", "json")...)
		if !strings.Contains(errs, "/ops/acts/") || !strings.Contains(out, `"state": "waiting"`) || !strings.Contains(out, "slip 17/3") {
			t.Fatal(out, errs)
		}
		w.run(exitWaits, fund...) // the same command again is the same request
		waiting := w.list("acts", "list", "--state", "waiting")
		if len(waiting) != 1 || waiting[0]["maker"] != "ama@example.com" || waiting[0]["kind"] != "wallet.fund" {
			t.Fatalf("%v", waiting)
		}
		fund[3] = "500001"
		if _, errs := w.run(exitConflict, fund...); !strings.Contains(errs, "slip 17/3") {
			t.Fatal(errs)
		}
		fund[3] = "500000"
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "0.00"})
		by := changes.By{Visitor: h.second.Visitor, Place: roles.Installation}
		request, err := h.acts.Get(t.Context(), roles.Installation, waiting[0]["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := h.acts.Approve(t.Context(), by, request.ID, request.Digest); err != nil && problem.From(err).Code != changes.CodeEnded {
				t.Fatal(err)
			}
		}
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "500000.00"})
		w.run(exitConflict, fund...)
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "500000.00"})
		// A change without an approval is applied at once, and printed as before.
		has(t, w.object("tenant", "set", id, "--blocked", "on", "--reason", "fraud", flag), map[string]any{"blocked": true})
		log := w.list("audit", "list", "--action", "tenant.block")
		if len(log) != 1 || log[0]["actor"] != "ama@example.com" || log[0]["person"] != h.requester.Person.ID {
			t.Fatalf("%v", log)
		}
		// A command that is no kind of change is also recorded under its person.
		w.run(exitOK, "contacts", "optout", id, "0244123456", "--reason", "asked by phone", flag)
		if log := w.list("audit", "list", "--action", "contacts.optout"); len(log) != 1 || log[0]["actor"] != "ama@example.com" {
			t.Fatalf("%v", log)
		}
	})
}

// Each of these commands moves money or decides about it. With a token it makes a request of its person, and moves nothing before a
// second person has approved it.
func TestMoney_waitsForApproval(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip 1", "--reference", "r12")
		paid := w.stuck(t, id, "order-000000001").ID
		other := w.object("tenant", "create", "Kejetia", "--mode", "live")["id"].(string)
		w.owe(t, id, 300)
		bank := w.list("catalogue", "list", "--kind", "bank")[0]["key"].(string)
		h := produce(w)
		h.acts.Messaging = w.messaging()
		h.acts.Routes = route.New(w.db, clock.Real(), slog.New(slog.DiscardHandler), app.Providers(), nil)
		flag, _ := h.token(h.joins("efua@example.com", roles.Owner))
		for _, tt := range []struct {
			line, kind string
		}{
			{"float add hubtel 900 --reference f1", changes.KindAddFloat},
			{"credits sell " + id + " 50000 --price 1500 --reference s1", changes.KindSellCredits},
			{"fees set " + id + " --free", changes.KindFees},
			{"payouts resolve " + paid + " --paid", changes.KindResolve},
			{"wallet transfer " + id + " " + other + " 7 --reference t1", changes.KindTransfer},
			{"wallet recover " + id, changes.KindRecover},
			{"catalogue bank-code " + bank + " hubtel 300399", changes.KindBankCode},
			{"catalogue set bank " + bank + " --name Renamed", changes.KindCatalogue},
			{"providers route disburse_wallet MTN hubtel --tenant " + id, changes.KindRoute},
		} {
			args := append(strings.Fields(tt.line), "--reason", "by the statement", flag)
			if out, errs := w.run(exitWaits, append(args, "-o", "json")...); !strings.Contains(errs, "/ops/acts/") || !strings.Contains(out, `"state": "waiting"`) {
				t.Errorf("%s: %s %s", tt.line, out, errs)
			}
			if waiting := w.list("acts", "list", "--state", "waiting"); len(waiting) == 0 || waiting[0]["kind"] != tt.kind || waiting[0]["maker"] != "efua@example.com" {
				t.Errorf("%s: %v", tt.line, waiting)
			}
		}
		if list := w.list("float", "show"); len(list) != 1 { // of the debt
			t.Errorf("floats: %v", list)
		}
		has(t, w.object("wallet", "show", id), map[string]any{"sms_credits": float64(0), "owes": "3.00"})
		has(t, w.object("payouts", "show", paid), map[string]any{"status": "submitted"})
		// The approval of the second person applies them.
		by := changes.By{Visitor: h.second.Visitor, Place: roles.Installation}
		for _, waiting := range w.list("acts", "list", "--state", "waiting") {
			request, err := h.acts.Get(t.Context(), roles.Installation, waiting["id"].(string))
			if err == nil && request.Kind != changes.KindResolve && request.Kind != changes.KindTransfer { // a server applies requests of this kind
				_, err = h.acts.Approve(t.Context(), by, request.ID, request.Digest)
			}
			if err != nil {
				t.Errorf("%v: %v", waiting, err)
			}
		}
		if list := w.list("float", "show"); len(list) != 2 || list[0]["held"] != "900.00" {
			t.Errorf("floats: %v", list)
		}
		has(t, w.object("wallet", "show", id), map[string]any{"sms_credits": float64(50000), "owes": "0.00"})
		if routes := w.list("providers", "routes", "--tenant", id); len(routes) != 1 {
			t.Errorf("routes: %v", routes)
		}
		w.run(exitConflict, "float", "add", "hubtel", "900", "--reference", "f1", "--reason", "once more", flag)
	})
}

// A refund of a collection with a token awaits the second person. A refund by the machine's user awaits a server. Neither moves
// money here.
func TestRefund_leftToOthers(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant("--collections", "on")
		w.run(exitOK, "wallet", "fund", id, "100", "--reason", "bank slip 1", "--reference", "r12")
		of := w.collected(t, id, "invoice-0000001")
		h := produce(w)
		flag, _ := h.token(h.requester)
		before := w.object("wallet", "show", id)
		refund := []string{"payouts", "refund", id, of.Reference, "--amount", "6", "--reason", "goods returned", "-o", "json"}
		out, errs := w.run(exitWaits, append(refund, flag)...)
		if !strings.Contains(errs, "/ops/acts/") || !strings.Contains(out, `"state": "waiting"`) || !strings.Contains(out, "Refund GHS 6.00 of the collection invoice-0000001 to MTN 233****4567") || !strings.Contains(out, `"checkers_needed": 1`) {
			t.Fatal(out, errs)
		}
		out, errs = w.run(exitWaits, append(refund, glass)...)
		if !strings.Contains(errs, "a server applies the request") || !strings.Contains(out, `"checkers_needed": 0`) {
			t.Fatal(out, errs)
		}
		if depth := w.list("jobs", "list", "--kind", "act"); len(depth) != 1 {
			t.Errorf("jobs: %v", depth)
		}
		if log := w.list("audit", "list", "--action", "act.make"); len(log) != 2 || log[0]["reason"] != "goods returned" || !strings.HasPrefix(log[0]["actor"].(string), audit.BreakGlass) {
			t.Errorf("%v", log)
		}
		w.run(exitUsage, "payouts", "refund", id, of.ID, "--amount", "10.01", "--reason", "x", glass)
		w.run(exitNotFound, "payouts", "refund", id, "nothing", "--reason", "x", glass)
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": before["wallet"]})
	})
}

func TestToken_ended(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		block := []string{"tenant", "set", id, "--blocked", "on", "--reason", "fraud"}
		flag, token := h.token(h.requester)
		if err := h.people.EndPersonalToken(t.Context(), h.requester.Visitor, token.ID, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		w.run(exitForbidden, append(block, flag)...)
		flag, _ = h.token(h.requester)
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
			tx.Defer(`UPDATE personal_tokens SET created_at = created_at - $1, expires_at = expires_at - $1`, -1, identity.TokenLasts.Microseconds())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.run(exitForbidden, append(block, flag)...)
		flag, _ = h.token(h.requester)
		h.joins("efua@example.com", roles.Owner)
		w.run(exitOK, "people", "disable", "ama@example.com", "--reason", "left", glass)
		w.run(exitForbidden, append(block, flag)...)
		w.run(exitOK, "people", "enable", "ama@example.com", "--reason", "is back", glass)
		w.run(exitForbidden, append(block, flag)...)
		has(t, w.object("tenant", "show", id), map[string]any{"blocked": false})
		w.run(exitUsage, append(block, "--token-file", filepath.Join(t.TempDir(), "none"))...)
		open := w.file("mk_person_x")
		if err := os.Chmod(open, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs := w.run(exitUsage, append(block, "--token-file", open)...); !strings.Contains(errs, "chmod 600") {
			t.Fatal(errs)
		}
		w.run(exitUsage, append(block, "--token-file", w.file(" \n"))...)
		w.run(exitUsage, append(block, "--token-file", open, glass)...)
	})
}

func TestBreakGlass_appliesAtOnceAndAlerts(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		has(t, w.object("wallet", "fund", id, "5", "--reason", "the bank closes", "--reference", "slip 1", glass), map[string]any{"wallet": "5.00"})
		log, err := h.log.List(t.Context(), audit.Filter{Action: "wallet.fund"})
		if err != nil || len(log) != 1 || !log[0].BrokeGlass() || log[0].Actor != audit.BreakGlass+frame.LoggedIn() || log[0].Reason != "the bank closes" {
			t.Fatalf("%+v, %v", log, err)
		}
		if n, err := h.log.BrokeGlassSince(t.Context(), time.Now().Add(-time.Hour)); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		if n, err := h.log.BrokeGlassSince(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 0 {
			t.Fatal(n, err)
		}
		w.run(exitOK, "tenant", "create", "Kejetia", "--mode", "test", "--reason", "at night", glass)
		if log, err := h.log.List(t.Context(), audit.Filter{Action: "tenant.create", Limit: 1}); err != nil || log[0].Reason != "at night" || !log[0].BrokeGlass() {
			t.Fatalf("%+v, %v", log, err)
		}
	})
}

func TestReference_onceByTokenAndBreakGlass(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.requester)
		fund := []string{"wallet", "fund", id, "5", "--reason", "paid by bank", "--reference", "slip 1"}
		w.run(exitWaits, append(fund, flag)...)
		w.run(exitOK, append(fund, glass)...)
		waiting, err := h.acts.Store.List(t.Context(), changes.Filter{State: changes.Waiting, Limit: 10})
		if err != nil || len(waiting) != 1 {
			t.Fatal(waiting, err)
		}
		// The slip was used in the meantime. The page must show this before an approval counts.
		by := changes.By{Visitor: h.second.Visitor}
		if _, err := h.acts.Approve(t.Context(), by, waiting[0].ID, waiting[0].Digest); problem.From(err).Code != "facts_changed" {
			t.Fatalf("an approval of a page without the warning: %v", err)
		}
		seen, err := h.acts.Review(t.Context(), by.Place, waiting[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		late, err := h.acts.Approve(t.Context(), by, waiting[0].ID, seen.Shown)
		if err != nil || late.State != changes.Failed {
			t.Fatalf("%+v, %v", late, err)
		}
		w.run(exitConflict, append(fund, flag)...)
		w.run(exitConflict, append(fund, glass)...)
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "5.00"})
		fund[len(fund)-1] = "slip 2"
		w.run(exitWaits, append(fund, flag)...)
		waiting, err = h.acts.Store.List(t.Context(), changes.Filter{State: changes.Waiting, Limit: 10})
		if err != nil || len(waiting) != 1 {
			t.Fatal(waiting, err)
		}
		if done, err := h.acts.Approve(t.Context(), changes.By{Visitor: h.second.Visitor}, waiting[0].ID, waiting[0].Digest); err != nil || done.State != changes.Done {
			t.Fatalf("%+v, %v", done, err)
		}
		w.run(exitConflict, append(fund, glass)...)
		has(t, w.object("wallet", "show", id), map[string]any{"wallet": "10.00"})
	})
}

func TestToken_fromTheEnvironment(t *testing.T) {
	eachAlone(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.requester)
		text, err := os.ReadFile(strings.TrimPrefix(flag, "--token-file="))
		if err != nil {
			t.Fatal(err)
		}
		block := []string{"tenant", "set", id, "--blocked", "on", "--reason", "fraud"}
		t.Setenv(config.EnvToken, "mk_person_x")
		w.run(exitForbidden, block...)
		w.run(exitOK, "tenant", "show", id) // a command that only reads needs no person
		t.Setenv(config.EnvToken, string(text))
		w.run(exitOK, block...)
		// The command line takes precedence over the environment.
		w.run(exitOK, "tenant", "set", id, "--blocked", "off", "--reason", "a mistake", glass)
		if log, err := h.log.List(t.Context(), audit.Filter{Action: "tenant.block", Limit: 1}); err != nil || len(log) != 1 || !log[0].BrokeGlass() {
			t.Fatalf("%+v, %v", log, err)
		}
	})
}

// With only one person there is nobody to wait for. A command with a token is applied at once, with its usual error codes.
func TestProduction_onePersonAlone(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.requester)
		w.run(exitOK, "people", "disable", "kofi@example.com", "--reason", "left", glass)
		has(t, w.object("wallet", "fund", id, "5", "--reason", "x", "--reference", "r1", flag), map[string]any{"wallet": "5.00"})
		w.run(exitFunds, "wallet", "adjust", id, "6", "--take", "--reason", "x", "--reference", "r2", flag)
		w.run(exitConflict, "wallet", "fund", id, "5", "--reason", "x", "--reference", "r1", flag)
		key := w.object("key", "create", "--tenant", id, "--reason", "x", flag)
		if !strings.HasPrefix(key["key"].(string), "mk_live_") || key["state"] != "active" {
			t.Fatalf("%v", key)
		}
		next := w.object("key", "rotate", key["id"].(string), "--tenant", id, "--reason", "x", flag)
		if next["key"] == key["key"] || next["id"] == key["id"] {
			t.Fatalf("%v", next)
		}
		has(t, w.object("key", "set", next["id"].(string), "--tenant", id, "--daily", "5", "--reason", "x", flag), map[string]any{"daily": "5.00"})
		has(t, w.object("key", "revoke", next["id"].(string), "--tenant", id, "--reason", "x", flag), map[string]any{"state": "revoked"})
		has(t, w.object("tenant", "set", id, "--transfer-limit", "7", "--payout-ip", "192.0.2.0/24", "--name", "Adom", "--reason", "x", flag),
			map[string]any{"transfer_limit": "7.00", "name": "Adom", "payout_ips": []string{"192.0.2.0/24"}})
		has(t, w.object("tenant", "set", id, "--no-payout-ip", "--reason", "x", flag), map[string]any{"payout_ips": []string{}})
		has(t, w.object("tenant", "set", id, "--no-payout-ip", "--reason", "x", flag), map[string]any{"payout_ips": []string{}}) // nothing changes
		made := w.object("tenant", "create", "Kejetia", "--mode", "test", "--collections", "on", "--reason", "x", flag)
		has(t, made, map[string]any{"collections": true, "mode": "test"})
		if secret := w.object("webhooks", "secret", id, "--rotate", "--reason", "x", flag); secret["secret"] == secret["former"] {
			t.Fatalf("%v", secret)
		}
		invited := w.object("people", "invite", "yaa@example.com", "--role", "finance", "--tenant", id, "--reason", "x", flag)
		if !strings.Contains(invited["link"].(string), "/first?t=") || len(invited["code"].(string)) != 8 {
			t.Fatalf("%v", invited)
		}
		for _, p := range w.list("people", "list") { // nobody else approved it
			if p["email"] == "yaa@example.com" && (p["independent"] != false || p["invited_by"] == "") {
				t.Errorf("%v", p)
			}
		}
		w.run(exitConflict, "people", "create", "--email", "yaa@example.com", "--role", "support", "--reason", "x", flag)
		w.run(exitOK, "people", "role", "yaa@example.com", "--tenant", id, "--role", "support", "--reason", "x", flag)
		w.run(exitNotFound, "people", "role", "yaa@example.com", "--role", "support", "--reason", "x", flag)
		reset := w.object("people", "reset", "yaa@example.com", "--reason", "x", flag)
		if reset["link"] == invited["link"] || reset["code"] == invited["code"] || !strings.Contains(reset["link"].(string), "/first?t=") {
			t.Fatalf("%v", reset)
		}
		w.run(exitOK, "people", "disable", "yaa@example.com", "--reason", "x", flag)
		w.run(exitOK, "people", "enable", "yaa@example.com", "--reason", "x", flag)
		w.run(exitForbidden, "people", "disable", "ama@example.com", "--reason", "myself", flag)
	})
}

// Only people of an account send its batches, and approve them. A token of the installation is refused before the file is read.
func TestToken_sendsNoBatch(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.requester)
		_, errs := w.run(exitForbidden, "batch", "send", id, "testdata/no-such-file.csv", "--reason", "salaries", flag)
		if !strings.Contains(errs, "/app/"+id+"/batches") || !strings.Contains(errs, "payouts.request") {
			t.Fatal(errs)
		}
		if list := w.list("batch", "list", id); len(list) != 0 {
			t.Fatalf("%v", list)
		}
	})
}

// An owner has every permission of an installation. If an owner cannot run a command with a token, nobody can, so the command must
// explain this.
func TestToken_runsEachCommand(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		id := w.tenant()
		h := produce(w)
		flag, _ := h.token(h.joins("efua@example.com", roles.Owner))
		for _, command := range slices.Backward(slices.Sorted(maps.Keys(frame.Needs))) { // in reverse order, so that the account is blocked last
			var errs bytes.Buffer
			Run(append(append(w.line(command, id), flag), w.flags...), io.Discard, &errs) // most of them find nothing to do
			if strings.Contains(errs.String(), "does not have the permission") {
				t.Errorf("makola %s: nobody can run it with a token: %s", command, errs.String())
			}
		}
	})
}
