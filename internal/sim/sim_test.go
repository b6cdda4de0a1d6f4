package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/money"
)

var start = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// Two providers with callbacks, and a message centre.
const (
	mtn    = "mtn"
	hubtel = "hubtel"
	smsc   = "smsc"
)

// callbackPart returns a provider that has only callbacks: PUT for collections and POST for the others, with the
// status in capital letters.
func callbackPart(name, adapter string) Part {
	return func(*Sim) Provider {
		return Provider{Name: name, Adapter: adapter, Serve: http.NotFoundHandler(), Callback: func(e Entry) Callback {
			method := http.MethodPost
			if e.Kind == Collection {
				method = http.MethodPut
			}
			word := "FAILED"
			if e.Status == Success {
				word = "SUCCESSFUL"
			}
			return Callback{Method: method, URL: e.CallbackURL, Body: []byte(`{"status":"` + word + `"}`)}
		}}
	}
}

func centre(*Sim) Provider { return Provider{Name: smsc, Adapter: "smpp", Messages: true} }

func parts() []Part { return []Part{callbackPart(mtn, "mtnmomo"), callbackPart(hubtel, ""), centre} }

func newSim(t testing.TB, o Options) (*Sim, *clock.Clock) {
	t.Helper()
	c := clock.NewManual(start)
	o.Clock = c
	s, err := New(o, parts()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, c
}

// enter adds an order, as a provider's API does.
func (s *Sim) enter(o Order) Placed {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	c, _ := s.Begin(httptest.NewRecorder(), r, o.Provider, OpCollect)
	p, _ := c.Order(o)
	return p
}

func order(kind Kind, party string) Order {
	return Order{Provider: mtn, Kind: kind, Reference: uuid.NewString(), Amount: 500, Party: party, Wire: `"currency":"GHS"`}
}

// Each magic number selects its plan.
func TestPlanFor_magicNumbers(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		party  string
		status Status
		reason Reason
		delay  time.Duration
	}{
		{Collection, "233244123456", Success, "", 2 * time.Second},
		{Collection, "233240000000", Success, "", 2 * time.Second},
		{Collection, "233200000001", Success, "", 0},
		{Payout, "233270000002", Success, "", 45 * time.Second},
		{Payout, "1441000000024", Failed, NotRegistered, 2 * time.Second},
		{Collection, "233240000020", Failed, Declined, 2 * time.Second},
		{Payout, "233240000020", Success, "", 2 * time.Second},
		{Collection, "233240000021", Failed, Expired, 10 * time.Second},
		{TopUp, "233240000021", Success, "", 2 * time.Second},
		{Collection, "233240000022", Failed, NoFunds, 2 * time.Second},
		{Collection, "233240000023", Failed, WrongPIN, 2 * time.Second},
		{Bundle, "233240000025", Failed, OverLimit, 2 * time.Second},
		{Collection, "233240000026", Failed, Barred, 2 * time.Second},
		{Collection, "233240000006", Success, "", 3 * time.Second},
		{Payout, "233240000007", Failed, Internal, 3 * time.Second},
		{Collection, "233240000030", Success, "", 2 * time.Second},
		{Payout, "233240000040", Success, "", 2 * time.Second},
		{Collection, "233240001020", Success, "", 2 * time.Second},
	} {
		p := PlanFor(c.kind, c.party)
		if p.Then != c.status || p.Reason != c.reason || p.Delay != c.delay || p.Refuse != "" {
			t.Errorf("%s %s: %+v", c.kind, c.party, p)
		}
	}
	if p := PlanFor(Payout, "233240000030"); p.Refuse != Refused {
		t.Errorf("030: %+v", p)
	}
	for party, want := range map[string]string{"233240000024": "024", "0000024": "024", "000024": "", "23324000002x": "", "": "", "233241000024": ""} {
		if code, ok := Magic(party); code != want || ok != (want != "") {
			t.Errorf("%q: %q", party, code)
		}
	}
	if g, f, ok := Name("233240000024"); g+" "+f != "KWAME TEST 024" || !ok {
		t.Errorf("%s %s", g, f)
	}
	g1, f1, _ := Name("233244123456")
	g2, f2, _ := Name("233244123456")
	if g1 != g2 || f1 != f2 || g1 == "" || f1 == "" {
		t.Error("a number changed its name")
	}
}

// After a kill the book is read again. It was not closed, and its last line is incomplete.
func TestBook_survivesKill(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	s, c := newSim(t, Options{Dir: dir, OpeningFloat: 100_000})
	settled := s.enter(order(Collection, "233240000001")).Entry
	out := s.enter(order(Payout, "233244000001")).Entry
	lazy := s.enter(order(Collection, "233240000000")).Entry
	held := s.enter(order(Collection, "233240000003")).Entry
	c.Advance(2 * time.Second)
	if err := s.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.ReverseEntry(mtn, settled.Reference) || !s.Resolve(mtn, held.Reference, Failed, Declined) {
		t.Fatal("could not reverse and resolve")
	}
	if err := s.SetFloat(mtn, 70_000); err != nil {
		t.Fatal(err)
	}
	open := s.enter(order(Collection, "233240000002")).Entry
	text, err := os.ReadFile(filepath.Join(dir, "simulator.book"))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, `{"enter":{"number":99,"prov`...)
	if err := os.WriteFile(filepath.Join(copied, "simulator.book"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	again, c2 := newSim(t, Options{Dir: copied, OpeningFloat: 100_000})
	c2.Advance(c.Now().Sub(c2.Now()))
	for _, e := range []Entry{settled, out, lazy, held, open} {
		was, _ := s.Status(mtn, e.Reference)
		is, ok := again.Status(mtn, e.Reference)
		was.group, is.group = nil, nil
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if !ok || !bytes.Equal(a, b) {
			t.Errorf("was %s\n is %s", a, b)
		}
	}
	if a, b := s.Float(mtn), again.Float(mtn); a != b || a != 70_000+500 {
		t.Errorf("float %v, then %v", a, b)
	}
	c2.Advance(45 * time.Second)
	if err := again.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, _ := again.book.get(mtn, open.Reference); e.Status != Success {
		t.Errorf("what was open does not settle: %+v", e)
	}
	next := again.enter(order(Collection, "233240000000")).Entry
	if next.Number <= open.Number {
		t.Errorf("number %d after %d", next.Number, open.Number)
	}
	again.Close()
	third, _ := newSim(t, Options{Dir: copied})
	if _, ok := third.Status(mtn, next.Reference); !ok || len(third.All()) != 6 {
		t.Errorf("of 6 entries around a torn line %d are left", len(third.All()))
	}
}

// A book is refused if a line before its end is damaged.
func TestBook_damagedIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, _ := newSim(t, Options{Dir: dir})
	for range 3 {
		s.enter(order(Collection, "233240000000"))
	}
	s.Close()
	name := filepath.Join(dir, "simulator.book")
	text, _ := os.ReadFile(name)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[1] = []byte("{\"enter\":\n")
	os.WriteFile(name, bytes.Join(lines, nil), 0o600)
	if s, err := New(Options{Dir: dir}, parts()...); err == nil {
		s.Close()
		t.Error("a book with a hole was opened")
	}
}

// If the disk is full, the caller gets an error and the movement is not acknowledged.
func TestBook_fullDiskIsAnError(t *testing.T) {
	dir := t.TempDir()
	s, _ := newSim(t, Options{Dir: dir})
	s.book.journal.file.Close() // every later write fails
	r := httptest.NewRecorder()
	c, _ := s.Begin(r, httptest.NewRequest("POST", "/", nil), mtn, OpCollect)
	o := order(Collection, "233240000000")
	if _, ok := c.Order(o); ok || r.Code != http.StatusInternalServerError {
		t.Errorf("answered %d without a book", r.Code)
	}
	if _, ok := s.Status(mtn, o.Reference); ok {
		t.Error("the provider tells of what it may forget")
	}
}

// The float must cover a payout and its fee.
func TestFloat_coversPayoutsAndFees(t *testing.T) {
	s, c := newSim(t, Options{OpeningFloat: 1000})
	pay := func(amount, fee money.Pesewas) Placed {
		o := order(Payout, "233244000001")
		o.Amount, o.Fee = amount, fee
		return s.enter(o)
	}
	if p := pay(990, 11); p.Refused != FloatLow {
		t.Errorf("more than there is: %+v", p)
	}
	if p := pay(600, 0); p.Refused != "" {
		t.Errorf("%+v", p)
	}
	if p := pay(600, 0); p.Refused != FloatLow {
		t.Errorf("reserved money was spent: %+v", p)
	}
	if s.Float(mtn) != 1000 {
		t.Errorf("spent before it settled: %v", s.Float(mtn))
	}
	c.Advance(2 * time.Second)
	if s.Float(mtn) != 400 || s.Opening(mtn) != 1000 {
		t.Errorf("%v", s.Float(mtn))
	}
	in := s.enter(order(Collection, "233240000001")).Entry
	if s.Float(mtn) != 900 {
		t.Errorf("%v", s.Float(mtn))
	}
	if p := pay(401, 0); p.Refused != FloatLow {
		t.Errorf("collections paid for a payout: %+v", p)
	}
	s.ReverseEntry(mtn, in.Reference)
	if s.Float(mtn) != 400 {
		t.Errorf("%v", s.Float(mtn))
	}
	if s.ReverseEntry(mtn, in.Reference) || s.ReverseEntry(mtn, "nothing") {
		t.Error("reversed twice")
	}
}

// Orders with the same reference make one entry.
func TestBook_oneEntryPerReference(t *testing.T) {
	s, _ := newSim(t, Options{Dir: t.TempDir()})
	o := order(Collection, "233240000000")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 50 {
		o := o
		if i%2 == 0 {
			o.Reference = strings.ToUpper(strings.ReplaceAll(o.Reference, "-", ""))
		}
		wg.Go(func() {
			if p := s.enter(o); !p.Existed {
				mu.Lock()
				defer mu.Unlock()
				made++
			}
		})
	}
	wg.Wait()
	if made != 1 || len(s.All()) != 1 || len(s.Entries(o.Reference)) != 1 {
		t.Errorf("made %d times, %d entries", made, len(s.All()))
	}
}

// Faults take effect in their order, and as often as their count.
func TestFaults_takenInOrderAndCount(t *testing.T) {
	s, c := newSim(t, Options{})
	inject := func(f Fault) {
		t.Helper()
		if err := s.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	next := func(provider, op string) string { return fmt.Sprint(kindsOf(s.faults.next(provider, op))) }
	inject(Fault{Provider: mtn, Operation: OpCollect, Kind: AnswerLost, Count: 2})
	inject(Fault{Kind: CallbackMissing})
	inject(Fault{Operation: "*", Kind: Slow, Count: 1})
	inject(Fault{Kind: Outage, For: time.Minute})
	for i, c := range []struct{ provider, op, want string }{
		{mtn, OpCollectStatus, "[slow outage]"},
		{hubtel, OpCollect, "[callback_missing outage]"},
		{mtn, OpDisburse, "[outage]"},
		{mtn, OpCollect, "[answer_lost outage]"},
		{mtn, OpCollect, "[answer_lost outage]"},
		{mtn, OpCollect, "[outage]"},
		{mtn, OpToken, "[outage]"},
	} {
		if got := next(c.provider, c.op); got != c.want {
			t.Errorf("%d: %s %s: %s", i, c.provider, c.op, got)
		}
	}
	c.Advance(time.Minute)
	if got := next(mtn, OpCollect); got != "[]" || s.faults.armed.Load() {
		t.Errorf("after its time: %s", got)
	}
	inject(Fault{Kind: Stuck, Count: 100, For: time.Hour})
	s.ClearFaults()
	if got := next(mtn, OpCollect); got != "[]" {
		t.Errorf("after clearing: %s", got)
	}
	for _, f := range []Fault{{Kind: "nonsense"}, {Provider: "paypal", Kind: Slow}, {Operation: "pray", Kind: Slow}, {Kind: Slow, Count: -1}} {
		if s.Inject(f) == nil {
			t.Errorf("took %+v", f)
		}
	}
	for _, k := range FaultKinds() {
		if err := s.Inject(Fault{Kind: k}); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
}

// If a fault requires it, a statement omits entries or changes amounts.
func TestStatement_disagreesOnRequest(t *testing.T) {
	s, c := newSim(t, Options{})
	for _, code := range []string{"000", "009", "010", "020"} {
		s.enter(order(Collection, "233240000"+code))
	}
	reversed := s.enter(order(Collection, "233240000001")).Entry
	s.ReverseEntry(mtn, reversed.Reference)
	c.Advance(time.Minute)
	rows := s.Statement(mtn)
	amounts := []money.Pesewas{}
	for _, r := range rows {
		amounts = append(amounts, r.Amount)
	}
	if !slices.Equal(amounts, []money.Pesewas{500, 501, 500}) || !rows[2].Reversed {
		t.Errorf("%v", amounts)
	}
	if len(s.Statement(hubtel)) != 0 || len(s.Statement("")) != 3 {
		t.Error("statements of other providers")
	}
}

// ask sends a request to the control interface.
func ask(t *testing.T, url, method, path, body string, data any) int {
	t.Helper()
	req, _ := http.NewRequest(method, url+path, strings.NewReader(body))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var whole struct{ Data json.RawMessage }
	if err := json.Unmarshal(text, &whole); err != nil || whole.Data == nil {
		t.Errorf("%s %s: no data member in %s", method, path, text)
	}
	if data != nil && res.StatusCode == 200 {
		if err := json.Unmarshal(whole.Data, data); err != nil {
			t.Errorf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return res.StatusCode
}

// The messages of handsets are read, and answered, over HTTP.
func TestControl_handsets(t *testing.T) {
	s, _ := newSim(t, Options{})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	url := server.URL + "/sim/v1"
	s.Deliver("0244123456", "ADOM", "Your code is 1")
	s.Deliver("+233 24 412 3456", "ADOM", "Your code is 2")
	var messages []struct {
		From, Text string
		ReceivedAt time.Time `json:"received_at"`
	}
	ask(t, url, "GET", "/handsets/233244123456/messages", "", &messages)
	if len(messages) != 2 || messages[1].Text != "Your code is 2" || messages[0].From != "ADOM" || !messages[0].ReceivedAt.Equal(start) {
		t.Errorf("%+v", messages)
	}
	asked := s.enter(order(Collection, "233240000040")).Entry
	s.enter(order(Payout, "233240000040"))
	var prompts []struct {
		ID, Provider, Text, Status string
		Amount                     float64
	}
	ask(t, url, "GET", "/handsets/0240000040/prompts", "", &prompts)
	if len(prompts) != 1 || prompts[0].Status != "pending" || prompts[0].Amount != 5 || prompts[0].Provider != mtn || !strings.Contains(prompts[0].Text, "5.00") {
		t.Fatalf("%+v", prompts)
	}
	path := "/handsets/0240000040/prompts/" + prompts[0].ID
	for body, want := range map[string]int{`{"action":"eat"}`: 422, `{`: 400, ``: 422} {
		if got := ask(t, url, "POST", path, body, nil); got != want {
			t.Errorf("%s: %d", body, got)
		}
	}
	if got := ask(t, url, "POST", "/handsets/0240000041/prompts/"+prompts[0].ID, `{"action":"approve"}`, nil); got != 404 {
		t.Errorf("a prompt of another handset: %d", got)
	}
	if got := ask(t, url, "POST", path, `{"action":"decline"}`, nil); got != 200 {
		t.Errorf("decline: %d", got)
	}
	if got := ask(t, url, "POST", path, `{"action":"approve"}`, nil); got != 409 {
		t.Errorf("a second answer: %d", got)
	}
	testTransactions(t, s, url, asked)
	for _, path := range []string{"/", "/nothing", "/handsets/x"} {
		if got := ask(t, url, "GET", path, "", nil); got != 404 {
			t.Errorf("%s: %d", path, got)
		}
	}
}

func testTransactions(t *testing.T, s *Sim, url string, asked Entry) {
	var list []struct {
		Provider, Reference, Kind, Status string
		Amount                            float64
		At                                time.Time
	}
	ask(t, url, "GET", "/transactions?reference="+strings.ToUpper(Plain(asked.Reference)), "", &list)
	if len(list) != 1 || list[0].Status != "failed" || list[0].Kind != "collection" || list[0].Amount != 5 || list[0].Reference != asked.Reference || !list[0].At.Equal(start) {
		t.Errorf("%+v", list)
	}
	if got := ask(t, url, "GET", "/transactions", "", nil); got != 422 {
		t.Errorf("no reference: %d", got)
	}
	ask(t, url, "GET", "/transactions?reference=nothing", "", &list)
	if len(list) != 0 {
		t.Errorf("%+v", list)
	}
	held := s.enter(order(Collection, "233240000003")).Entry
	for _, step := range []struct {
		action string
		code   int
		status Status
	}{{"reverse", 409, Pending}, {"succeed", 200, Success}, {"fail", 409, Success}, {"reverse", 200, Failed}, {"dance", 422, Failed}} {
		if got := ask(t, url, "POST", "/transactions/"+held.Reference, `{"action":"`+step.action+`"}`, nil); got != step.code {
			t.Errorf("%s: %d", step.action, got)
		}
		if e, _ := s.Status(mtn, held.Reference); e.Status != step.status {
			t.Errorf("after %s: %s", step.action, e.Status)
		}
	}
	var rows []struct{ Reference string }
	ask(t, url, "GET", "/statement?provider=mtn", "", &rows)
	if len(rows) != 1 || rows[0].Reference != held.Reference {
		t.Errorf("%d rows", len(rows))
	}
}

// Faults, the clock and the float are set over HTTP.
func TestControl_faultsClockAndFloat(t *testing.T) {
	s, c := newSim(t, Options{})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	url := server.URL + "/sim/v1"
	if got := ask(t, url, "POST", "/faults", `{"provider":"mtn","operation":"collect","fault":"Answer-Lost","count":2}`, nil); got != 200 || len(s.Faults()) != 1 || s.Faults()[0].Kind != AnswerLost {
		t.Errorf("%d %+v", got, s.Faults())
	}
	if got := ask(t, url, "POST", "/faults", `{"fault":"nonsense"}`, nil); got != 422 {
		t.Errorf("a fault that is none: %d", got)
	}
	if got := ask(t, url, "DELETE", "/faults", "", nil); got != 200 || len(s.Faults()) != 0 {
		t.Errorf("%d %+v", got, s.Faults())
	}
	if got := ask(t, url, "POST", "/clock", `{"advance_s":90}`, nil); got != 200 || !c.Now().Equal(start.Add(90*time.Second)) {
		t.Errorf("%d, it is %v", got, c.Now())
	}
	if got := ask(t, url, "POST", "/clock", `{"advance_s":-1}`, nil); got != 422 {
		t.Errorf("backwards: %d", got)
	}
	before := s.Float(mtn)
	if got := ask(t, url, "POST", "/float", `{"provider":"mtn","amount":12.5}`, nil); got != 200 || s.Float(mtn) != 1250 || before == 1250 {
		t.Errorf("%d, float %v", got, s.Float(mtn))
	}
}

// Callbacks are sent as the magic numbers and faults define.
func TestCallbacks_followNumbersAndFaults(t *testing.T) {
	s, c := newSim(t, Options{})
	var mu sync.Mutex
	var got []string
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b struct{ Status string }
		json.NewDecoder(r.Body).Decode(&b)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+b.Status)
	}))
	defer back.Close()
	for _, x := range []struct {
		kind  Kind
		code  string
		fault FaultKind
		soon  string // after 2 s
		later string // after a minute more
	}{
		{Collection, "000", "", "[PUT SUCCESSFUL]", "[]"},
		{Payout, "000", "", "[POST SUCCESSFUL]", "[]"},
		{Collection, "001", "", "[PUT SUCCESSFUL]", "[]"},
		{Collection, "004", "", "[PUT SUCCESSFUL PUT SUCCESSFUL]", "[]"},
		{Collection, "005", "", "[]", "[]"},
		{Collection, "008", "", "[PUT SUCCESSFUL]", "[PUT FAILED]"},
		{Collection, "020", CallbackForged, "[PUT FAILED PUT SUCCESSFUL]", "[]"},
		{Collection, "000", CallbackLate, "[]", "[PUT SUCCESSFUL]"},
		{Collection, "000", CallbackMissing, "[]", "[]"},
		{Collection, "000", Reverse, "[PUT SUCCESSFUL]", "[PUT FAILED]"},
		{Collection, "003", "", "[]", "[]"},
		{Collection, "000", Stuck, "[]", "[]"},
		{Collection, "000", FailLater, "[PUT FAILED]", "[]"},
	} {
		if x.fault != "" {
			s.Inject(Fault{Kind: x.fault})
		}
		o := order(x.kind, "233240000"+x.code)
		o.CallbackURL = back.URL
		if x.code == "001" {
			o.Kind = Collection
		}
		s.enter(o)
		for i, want := range []string{x.soon, x.later} {
			c.Advance([]time.Duration{2 * time.Second, time.Minute}[i])
			if err := s.Quiet(t.Context()); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if x.fault == CallbackForged {
				slices.Sort(got) // two workers send them, in any order
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s %s %s, step %d: %v, want %s", x.kind, x.code, x.fault, i, got, want)
			}
			got = nil
			mu.Unlock()
		}
	}
}

// Quiet returns when its context ends.
func TestQuiet_endsWithItsContext(t *testing.T) {
	s, _ := newSim(t, Options{})
	release := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	defer back.Close()
	defer close(release)
	o := order(Collection, "233240000001")
	o.CallbackURL = back.URL
	s.enter(o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Quiet(ctx) == nil {
		t.Error("quiet while a callback is under way")
	}
}

func kindsOf(h Hit) (kinds []FaultKind) {
	for _, f := range h {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

// A fault accepts every listed Answer and refuses any other.
func TestFaults_acceptKnownAnswersOnly(t *testing.T) {
	s, _ := newSim(t, Options{})
	for kind, answers := range map[FaultKind][]string{RefuseAfter: RefusalAnswers("3050"), StatusAnswer: StatusAnswers("500:3000")} {
		for _, a := range answers {
			if err := s.Inject(Fault{Provider: mtn, Kind: kind, Answer: a}); err != nil {
				t.Errorf("%s %q: %v", kind, a, err)
			}
		}
	}
	for _, k := range Contradictions() {
		if err := s.Inject(Fault{Kind: k}); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	for _, f := range []Fault{{Kind: RefuseAfter, Answer: "100:x"}, {Kind: RefuseAfter, Answer: "x:y"}, {Kind: RefuseAfter, Answer: "400:"}, {Kind: Outage, Answer: "html"}} {
		if err := s.Inject(f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}

// A fault of payments is not used up by messages, nor the other way round.
func TestFaults_ofPaymentsAndMessages(t *testing.T) {
	s, _ := newSim(t, Options{})
	next := func(provider, op string) string { return fmt.Sprint(kindsOf(s.faults.next(provider, op))) }
	for _, f := range []Fault{{Kind: CallbackMissing}, {Kind: Outage}, {Operation: "*", Kind: Slow}, {Provider: smsc, Kind: Throttle, Count: 2, Every: 3}, {Kind: Silent}} {
		if err := s.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 7 {
		got = append(got, next(smsc, OpSubmit))
	}
	if fmt.Sprint(got) != "[[silent] [] [throttle] [] [] [throttle] []]" {
		t.Errorf("%v", got)
	}
	if got := next(mtn, OpCollect); got != "[callback_missing outage slow]" {
		t.Errorf("%s", got)
	}
	for kind, op := range map[FaultKind]string{Unauthorized: OpBind, Outage: OpBind, AnswerLost: OpSubmit} {
		if err := s.Inject(Fault{Provider: smsc, Kind: kind}); err != nil {
			t.Fatal(err)
		}
		if got := next(smsc, op); got != fmt.Sprintf("[%s]", kind) {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if err := s.Inject(Fault{Operation: OpSubmit, Kind: RefuseOutright}); err != nil || next(smsc, OpSubmit) != "[refuse]" {
		t.Error("an operation of the centre's names it too")
	}
	for _, f := range []Fault{{Provider: smsc, Kind: Reverse}, {Provider: smsc, Kind: StatementOff}, {Provider: smsc, Kind: Throttle, Every: -1}} {
		if s.Inject(f) == nil {
			t.Errorf("took %+v", f)
		}
	}
}

// A handset keeps only its newest messages, and all handsets together a limited number.
func TestInbox_isBounded(t *testing.T) {
	s, _ := newSim(t, Options{})
	for i := range handsetTotal {
		s.Deliver(fmt.Sprintf("2332440%05d", i%1000), "A", fmt.Sprint(i))
	}
	if got := s.Messages("233244000007"); len(got) != min(handsetHistory, handsetTotal/1000) || got[0].Text != "7" {
		t.Errorf("%d messages", len(got))
	}
	for i := range 2 * handsetTotal {
		s.Deliver("233244999999", "A", fmt.Sprint(i))
	}
	if got := s.Messages("233244999999"); len(got) != handsetHistory || got[handsetHistory-1].Text != fmt.Sprint(2*handsetTotal-1) {
		t.Errorf("%d messages", len(got))
	}
	if len(s.handsets.messages) != 1 || len(s.handsets.oldest) != handsetTotal {
		t.Errorf("%d handsets, %d remembered", len(s.handsets.messages), len(s.handsets.oldest))
	}
}
