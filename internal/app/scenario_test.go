package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/apitest"
	"github.com/makola/makola/internal/test/dbtest"
)

// The scenarios describe the interface: requests, expected answers, webhooks and wallet balances. They are in
// testdata/scenarios/*.txt, and their language is in scenario_language_test.go. Each scenario runs with its own tenant on a
// full server with its simulator, on both engines. Each request and answer is checked against the OpenAPI document. At the end
// the books are compared with each other.

// scenarioNow is the time at which every scenario begins: not at the end of a day, an hour or a minute.
var scenarioNow = time.Date(2026, 3, 10, 12, 30, 30, 0, time.UTC)

func TestScenarios(t *testing.T) {
	files := scenarioFiles(t)
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		for _, name := range files {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
				for _, each := range readScenarios(t, name) {
					t.Run(each.title, func(t *testing.T) { s.play(t, each) })
				}
			})
		}
	})
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	slices.Sort(files)
	return files
}

func readScenarios(t *testing.T, name string) []scenario {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseScenarios(string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

// stage is a server with its simulator, on which scenarios run one after the other.
type stage struct {
	engine   db.Engine
	document *apitest.Document
	clock    *clock.Clock
	sim      *simulated
	app      *App
	inbox    *hookInbox
	played   int
}

// eachEngine runs a test on a stage of each engine of this run.
func eachEngine(t *testing.T, fn func(t *testing.T, s *stage, document *apitest.Document)) {
	document, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, newStage(t, engine, document), document)
		})
	}
}

func newStage(t *testing.T, engine db.Engine, document *apitest.Document) *stage {
	t.Helper()
	s := &stage{engine: engine, document: document, clock: clock.NewManual(scenarioNow), inbox: newInbox(t)}
	var err error
	if s.sim, err = simulate(sim.Options{Clock: s.clock}, mtn.Options{}, smsc.Options{EnquireEvery: quietCentre}); err != nil {
		t.Fatal(err)
	}
	serveSMPP(t, s.sim)
	server := httptest.NewServer(s.sim.Handler())
	t.Cleanup(func() { server.Close(); _ = s.sim.Close() })
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Sim: server.URL, Connections: 8, DrainFor: time.Minute,
		OTPTap:    config.OTPTap{Sends: 50, Within: time.Hour, Wait: 3 * time.Minute, Unverified: 90, Closed: time.Hour}, // as by default
		PublicURL: "", Storage: freshStorage(t, engine)}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if s.app, err = Start(context.Background(), cfg, Options{Version: "scenarios", Clock: s.clock, Log: log, Lease: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.app.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	connected(t, s.app)
	return s
}

// settle waits until no goroutine has work at the present time of the clock.
func (s *stage) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfScenarios)
	defer cancel()
	for range 2 { // the end of one piece of work may start another
		if err := s.app.jobs.Quiet(ctx); err != nil {
			t.Fatalf("jobs do not come to rest: %v; %+v", err, s.app.jobs.Counts())
		}
		if err := s.app.payments.Quiet(ctx); err != nil {
			t.Fatalf("second looks do not come to rest: %v", err)
		}
		if err := s.sim.Quiet(ctx); err != nil {
			t.Fatalf("the simulator does not come to rest: %v", err)
		}
	}
}

// quietCentre disables the message centre's enquiries, because minutes of the stage pass faster than any client can answer.
const quietCentre = 10_000 * time.Hour

const patienceOfScenarios = 3 * time.Minute

// advance lets time pass.
func (s *stage) advance(t *testing.T, d time.Duration) {
	t.Helper()
	s.settle(t)
	s.clock.Advance(d)
	s.settle(t)
}

// play makes the tenant, runs every step and compares the books with each other.
func (s *stage) play(t *testing.T, sc scenario) {
	s.played++
	a := &actor{stage: s, t: t, vars: map[string]string{}, keys: map[string]string{}}
	a.vars["ref"] = fmt.Sprintf("scenario-%04d-a", s.played)
	for _, letter := range "bcdefg" {
		a.vars["ref_"+string(letter)] = fmt.Sprintf("scenario-%04d-%c", s.played, letter)
	}
	a.hook = fmt.Sprintf("/hooks/%d", s.played)
	a.vars["hook"] = s.inbox.server.URL + a.hook
	a.vars["today"] = s.clock.Now().Format(time.DateOnly)
	a.vars["yesterday"] = s.clock.Now().AddDate(0, 0, -1).Format(time.DateOnly)
	a.begun = s.clock.Now()
	a.vars["unknown"] = "00000000-0000-4000-8000-000000000001"
	a.catalogue()
	a.enter(sc.tenant)
	for _, step := range sc.steps {
		a.line = step.line
		step.do(a)
		if t.Failed() {
			t.Fatalf("at line %d", step.line)
		}
	}
	a.leave()
}

// actor is the tenant of one scenario, with the values that its steps have stored.
type actor struct {
	stage  *stage
	t      *testing.T
	line   int
	tenant tenant.Tenant
	key    string
	keys   map[string]string
	secret string
	hook   string
	vars   map[string]string
	begun  time.Time
	told   int // number of webhooks that were expected so far
	last   *httptest.ResponseRecorder
}

// catalogue sets the names for ids of networks, services and banks: $network.mtn, $service.mtn_data, $bank.
func (a *actor) catalogue() {
	ctx, routes := context.Background(), a.stage.app.routes
	networks, err := routes.Networks(ctx)
	a.must(err)
	for _, n := range networks {
		a.vars["network."+strings.ToLower(string(n.Network))] = n.ID
	}
	services, err := routes.Services(ctx)
	a.must(err)
	for _, each := range services {
		a.vars["service."+each.Key] = each.ID
	}
	all, err := routes.Catalogue(ctx)
	a.must(err)
	for _, b := range all.Banks {
		if b.Code == demoBank {
			a.vars["bank"] = b.ID
		}
	}
}

func (a *actor) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("line %d: %v", a.line, err)
	}
}

// enter creates the tenant with GHS 100.00, collections enabled, loopback on its list, and the fees of the demo.
func (a *actor) enter(settings map[string]string) {
	app, ctx := a.stage.app, context.Background()
	id := uuid.NewString()
	key, err := app.access.Mint(access.NewKey{Tenant: id})
	a.must(err)
	a.must(app.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		if a.tenant, err = app.tenants.Create(tx, tenant.Tenant{ID: id, Name: "Scenario", Mode: tenant.Test, CollectionsEnabled: true}); err != nil {
			return err
		}
		app.access.CreateKey(tx, key)
		if a.secret, err = app.webhooks.EnsureSecret(tx, id); err != nil {
			return err
		}
		if _, err := app.tenants.SetFeePlan(tx, id, a.stage.clock.Now(), tenant.DemoPlan()); err != nil {
			return err
		}
		_, err = app.access.SetPayoutIPs(tx, id, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		return err
	}))
	a.key = key.Text
	fund := "100.00"
	if given, ok := settings["fund"]; ok {
		fund = given
		delete(settings, "fund")
	}
	a.fund(fund)
	credits := int64(usualCredits)
	if given, ok := settings["credits"]; ok {
		credits, err = strconv.ParseInt(given, 10, 64)
		a.must(err)
		delete(settings, "credits")
	}
	a.sell(credits)
	a.set(settings)
}

func (a *actor) fund(text string) {
	a.t.Helper()
	amount, err := money.Parse(text)
	a.must(err)
	if amount > 0 {
		a.must(a.stage.app.treasury.Fund(context.Background(), a.tenant.ID, amount, "scenario", "test"))
	}
}

// set changes the tenant as an operator does with the command line.
func (a *actor) set(settings map[string]string) {
	a.t.Helper()
	app := a.stage.app
	a.must(app.db.Write(context.Background(), func(tx *db.Tx) error {
		var c tenant.Change
		for name, value := range settings {
			on := value == "on"
			switch name {
			case "collections":
				c.CollectionsEnabled = &on
			case "blocked":
				c.Blocked = &on
			case "stopped":
				c.PayoutsStopped = &on
			case "email":
				c.Email = &value
			case "voucher":
				c.Voucher = &on
			case "bearer":
				bearer := tenant.FeeBearer(value)
				c.FeeBearer = &bearer
			case "duplicates":
				duplicates := tenant.Duplicates(value)
				c.Duplicates = &duplicates
			case "wallet-limit", "bank-limit":
				limit, err := money.Parse(value)
				if err != nil {
					return err
				}
				if name == "wallet-limit" {
					c.PayoutLimitWallet = &limit
				} else {
					c.PayoutLimitBank = &limit
				}
			case "ips":
				var list []netip.Prefix
				for _, text := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
					if text == "none" {
						continue
					}
					list = append(list, netip.MustParsePrefix(text))
				}
				if _, err := app.access.SetPayoutIPs(tx, a.tenant.ID, list); err != nil {
					return err
				}
			default:
				return fmt.Errorf("no setting is called %q", name)
			}
		}
		_, _, err := app.tenants.Set(tx, a.tenant.ID, c)
		return err
	}))
}

// newKey creates a key and sets $key.<name> to it.
func (a *actor) newKey(name string, settings map[string]string) {
	a.t.Helper()
	app := a.stage.app
	var scopes []access.Scope
	for _, text := range strings.FieldsFunc(settings["scopes"], func(r rune) bool { return r == ',' }) {
		scopes = append(scopes, access.Scope(text))
	}
	var daily money.Pesewas
	if text, ok := settings["daily"]; ok {
		var err error
		daily, err = money.Parse(text)
		a.must(err)
	}
	key, err := app.access.Mint(access.NewKey{Tenant: a.tenant.ID, Member: settings["member"], Scopes: scopes, Daily: daily})
	a.must(err)
	a.must(app.db.Write(context.Background(), func(tx *db.Tx) error { app.access.CreateKey(tx, key); return nil }))
	a.vars["key."+name] = key.Text
}

// resolve resolves a payment as an operator does.
func (a *actor) resolve(id string, paid bool) {
	a.t.Helper()
	_, err := a.stage.app.payments.Resolve(context.Background(), id, paid, "the statement says so", "test")
	a.must(err)
	a.stage.settle(a.t)
}

// pauses pauses a provider, or resumes it.
func (a *actor) pauses(name string, paused bool) {
	a.t.Helper()
	routes := a.stage.app.routes
	a.must(a.stage.app.db.Write(context.Background(), func(tx *db.Tx) error {
		if paused {
			return routes.Pause(tx, route.Pause{Mode: string(tenant.Test), Provider: name, Operation: route.Any, Reason: "maintenance", Actor: "ama"})
		}
		_, err := routes.Resume(tx, string(tenant.Test), name, route.Any)
		return err
	}))
	a.stage.advance(a.t, 3*time.Second)
}

// transfer moves money to the wallet of another tenant, whose id becomes $other.
func (a *actor) transfer(text string) {
	a.t.Helper()
	amount, err := money.Parse(text)
	a.must(err)
	other := &actor{stage: a.stage, t: a.t, line: a.line}
	other.enter(map[string]string{"fund": "0.00"})
	a.vars["other"], a.vars["key.other"] = other.tenant.ID, other.key
	_, err = a.stage.app.payments.Transfer(context.Background(), a.tenant.ID, other.tenant.ID, amount, "scenario", "test")
	a.must(err)
}

// ask sends a request, and checks the request and the answer against the OpenAPI document.
func (a *actor) ask(method, path, body string, header []string) {
	a.t.Helper()
	key := a.key
	for i := 0; i < len(header); i += 2 {
		if strings.EqualFold(header[i], "x-api-key") {
			key = header[i+1]
		}
	}
	if strings.HasPrefix(path, "/account-api/requests/") || path == "/account-api/addresses" { // failed requests are written a moment after their answer
		a.must(a.stage.app.requests.Flush(context.Background()))
	}
	a.last = call(a.stage.app, key, method, path, body, header...)
	status := a.last.Code
	if status >= 400 {
		a.explained()
	}
	operation, known := a.stage.document.Match(method, "/api/v1"+strings.SplitN(path, "?", 2)[0])
	if !known {
		return
	}
	if status < 300 && body != "" {
		if err := a.stage.document.CheckRequest(operation, []byte(body)); err != nil {
			a.t.Errorf("line %d: the request is not as documented: %v", a.line, err)
		}
	}
	if err := a.stage.document.CheckAnswer(operation, status, a.last.Header(), a.last.Body.Bytes()); err != nil {
		a.t.Errorf("line %d: the answer is not as documented: %v\n%s", a.line, err, a.last.Body)
	}
}

// explained reports whether the page about testing knows the code of the last answer.
func (a *actor) explained() {
	a.t.Helper()
	var refusal apitest.Refusal
	a.must(json.Unmarshal(a.last.Body.Bytes(), &refusal))
	_, path, ok := strings.Cut(refusal.DocURL, "/docs/")
	if page := plainCall(a.stage.app, http.MethodGet, "/docs/"+path, ""); !ok || page.Code != http.StatusOK || !strings.HasSuffix(path, refusal.Code) {
		a.t.Errorf("line %d: %q explains the code %q with %d", a.line, refusal.DocURL, refusal.Code, page.Code)
	}
}

// answered compares the last answer with the expected answer.
func (a *actor) answered(status int, header []string, body string) {
	a.t.Helper()
	if a.last.Code != status {
		a.t.Fatalf("line %d: answered %d, want %d: %s", a.line, a.last.Code, status, a.last.Body)
	}
	for i := 0; i < len(header); i += 2 {
		if err := a.match(header[i], header[i+1], a.last.Header().Get(header[i])); err != nil {
			a.t.Errorf("line %d: %v", a.line, err)
		}
	}
	if body != "" {
		a.same(body, a.last.Body.Bytes())
	}
}

// same compares JSON with the expected JSON.
func (a *actor) same(want string, got []byte) {
	a.t.Helper()
	w, err := decodeJSON([]byte(want))
	if err != nil {
		a.t.Fatalf("line %d: what is expected is no JSON: %v: %s", a.line, err, want)
	}
	g, err := decodeJSON(got)
	if err != nil {
		a.t.Fatalf("line %d: no JSON came: %v: %s", a.line, err, got)
	}
	if err := a.match("", w, g); err != nil {
		a.t.Errorf("line %d: %v\n got %s\nwant %s", a.line, err, got, want)
	}
}

func decodeJSON(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value)
}

// webhook expects the next webhook of the scenario with a valid signature.
func (a *actor) webhook(want string) {
	a.t.Helper()
	a.stage.settle(a.t)
	all := a.stage.inbox.of(a.hook)
	if len(all) <= a.told {
		a.t.Fatalf("line %d: no webhook came", a.line)
	}
	got := all[a.told]
	a.told++
	verifier, err := standardwebhooks.NewWebhook(a.secret)
	a.must(err)
	if err := verifier.VerifyIgnoringTimestamp(got.body, got.header); err != nil {
		a.t.Errorf("line %d: the signature: %v", a.line, err)
	}
	if err := a.stage.document.CheckWebhook(got.header, got.body); err != nil {
		a.t.Errorf("line %d: the webhook is not as documented: %v", a.line, err)
	}
	a.same(want, got.body)
}

// leave waits until everything is final, and compares the books with each other.
func (a *actor) leave() {
	a.t.Helper()
	s, ctx := a.stage, context.Background()
	s.sim.ClearFaults()
	for range 8 {
		s.advance(a.t, time.Minute)
	}
	if all := s.inbox.of(a.hook); len(all) != a.told {
		a.t.Errorf("%d webhooks came, %d were expected; the last is %s", len(all), a.told, all[len(all)-1].body)
	}
	if report, err := s.app.ledger.Check(ctx); err != nil || !report.OK() {
		a.t.Errorf("the ledger does not add up: %v %v", err, report.Problems)
	}
	if report, err := s.app.payments.Check(ctx); err != nil || !report.OK() {
		a.t.Errorf("the payments do not agree with the ledger: %v %+v", err, report)
	}
	a.textsAddUp()
	for _, rail := range s.sim.Providers() {
		theirs := s.sim.Float(rail)
		if off, err := s.app.payments.CheckFloat(ctx, rail, string(tenant.Test), theirs); err != nil || off != 0 {
			a.t.Errorf("the float at %s is %v in its own book, ours is off by %v: %v", rail, theirs, off, err)
		}
		in, out := s.sim.Accounts(rail)
		ours, err := s.app.payments.Floats(ctx, rail, string(tenant.Test))
		if err != nil || ours[provider.AccountCollection] != in || ours[provider.AccountDisbursement] != out || ours[""] != 0 {
			a.t.Errorf("the accounts at %s hold %v and %v in its own book, ours %v: %v", rail, in, out, ours, err)
		}
	}
	clearing, err := s.app.ledger.Balance(ctx, ledger.Key{Asset: ledger.TestGHS, ID: ledger.Clearing})
	a.must(err)
	if clearing != 0 {
		a.t.Errorf("%v are left in clearing", money.Pesewas(clearing))
	}
}

// hookInbox receives and stores complete webhooks.
type hookInbox struct {
	server *httptest.Server
	mu     sync.Mutex
	came   map[string][]received
	refuse map[string]int // number of further answers with the status 500, by path
}

type received struct {
	header http.Header
	body   []byte
}

func newInbox(t *testing.T) *hookInbox {
	in := &hookInbox{came: map[string][]received{}, refuse: map[string]int{}}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.ContainsFunc(r.RequestURI, func(c rune) bool { return c > '~' }) {
			w.WriteHeader(http.StatusBadRequest) // this is the answer of strict receivers
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.refuse[r.URL.Path] > 0 {
			in.refuse[r.URL.Path]--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		in.came[r.URL.Path] = append(in.came[r.URL.Path], received{r.Header, body})
	}))
	t.Cleanup(in.server.Close)
	return in
}

func (in *hookInbox) of(path string) []received {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.came[path])
}

// advanceTo advances the clock of the stage by the time in a Retry-After header.
func (s *stage) advanceTo(t *testing.T, retryAfter string) {
	t.Helper()
	seconds, err := strconv.Atoi(retryAfter)
	if err != nil || seconds < 1 {
		t.Fatalf("Retry-After is %q", retryAfter)
	}
	s.advance(t, time.Duration(seconds)*time.Second)
}
