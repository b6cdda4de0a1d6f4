//go:build !race

// The program under test is built without the race detector, which would make it ten times slower. Other tests run the same code
// with it.

package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// kills is the number of kills under load, on each engine.
const kills = 10

// callers is the number of clients that send payouts at the same time, so that requests are in progress at each kill.
const callers = 16

// outcomes are the payees of the load. Their last digits select the simulator's behaviour. Most payments succeed at once.
var outcomes = []string{
	"0240000001", "0240000001", "0240000001", "0240000000", // paid at once, paid after two seconds
	"0240000004", "0240000005", // the callback is sent twice, or never
	"0240000006", "0240000007", // the answer is lost: paid later, refused later
	"0240000024", "0240000030", // refused after acceptance, refused at once
}

// payout is one payout as its client knows it: the request and its answers.
type payout struct {
	reference string
	payee     string
	accepted  bool   // a 200 was read
	refused   bool   // the interface reported that it failed and was refunded
	external  string // our provider reference, from the 200
}

// crowd is a pool of callers that send requests until they are stopped, also while the server is down. It stores each answered
// request.
type crowd[T any] struct {
	t        testing.TB
	target   atomic.Pointer[client]
	stop     atomic.Bool
	sent     atomic.Int64
	done     sync.WaitGroup
	mu       sync.Mutex
	answered []T
}

// begin starts the callers. send makes the n-th request of a caller. If a test fails before it calls end, its cleanup stops the
// callers, because a report to a finished test ends the test program.
func (c *crowd[T]) begin(callers int, target *client, send func(caller, n int)) {
	c.target.Store(target)
	c.t.Cleanup(func() { c.end() })
	for caller := range callers {
		c.done.Add(1)
		go func() {
			defer c.done.Done()
			for n := 0; !c.stop.Load(); n++ {
				send(caller, n)
			}
		}()
	}
}

// insist repeats a POST with the same reference or Idempotency-Key until the server has answered it, as a careful merchant's
// program does. It ends its goroutine when the test is over.
func (c *crowd[T]) insist(path string, body any, header ...string) answer {
	for begun := time.Now(); ; {
		if c.t.Context().Err() != nil {
			runtime.Goexit()
		}
		a, err := c.target.Load().call(http.MethodPost, path, body, header...)
		if err == nil && a.status < 500 {
			return a
		}
		giveUp(c.t, begun, path, err)
		pause(20 * time.Millisecond)
	}
}

// answerWithin is the maximum time without an answer from a server that is killed repeatedly.
const answerWithin = 3 * time.Minute

// giveUp ends the caller's goroutine with a failure if a server has not answered for too long.
func giveUp(t testing.TB, begun time.Time, path string, err error) {
	if time.Since(begun) < answerWithin {
		return
	}
	t.Errorf("%s had no answer within %s: %v", path, answerWithin, err)
	runtime.Goexit()
}

// keep stores an answered request.
func (c *crowd[T]) keep(one T) {
	c.sent.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, one)
}

// end stops the callers and waits until each has its last answer.
func (c *crowd[T]) end() []T {
	c.stop.Store(true)
	c.done.Wait()
	return c.answered
}

// load is a pool of callers that send payouts.
type load struct {
	crowd[payout]
	callback string
}

func startLoad(t testing.TB, name, callback string, target *client) *load {
	l := &load{crowd: crowd[payout]{t: t}, callback: callback}
	l.begin(callers, target, func(caller, n int) {
		l.send(payout{
			reference: fmt.Sprintf("%s-%03d-%06d", name, caller, n),
			payee:     outcomes[(caller+n)%len(outcomes)],
		})
	})
	return l
}

func (l *load) send(p payout) {
	a := l.insist("/payment-api/send/mobilemoney", map[string]any{
		"amount": "0.50", "account_number": p.payee, "channel": "MTN",
		"client_reference": p.reference, "callback_url": l.callback,
	})
	switch a.status {
	case http.StatusOK:
		p.accepted = true
		p.external = field(a.data, "transaction_id")
	case http.StatusBadRequest:
		p.refused = true
	case http.StatusUnprocessableEntity: // an earlier try of ours was accepted: data has its payment
		p.accepted = true
		p.external = field(a.data, "ext_transaction_id")
	default:
		l.t.Errorf("payout %s: %d %s", p.reference, a.status, a.message)
		return
	}
	l.keep(p)
}

func field(data json.RawMessage, name string) string {
	var members map[string]any
	_ = json.Unmarshal(data, &members)
	text, _ := members[name].(string)
	return text
}

// inbox receives webhooks and stores the statuses of each reference.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	told   map[string]map[string]bool // received statuses by reference
}

func newInbox(t testing.TB) *inbox {
	in := &inbox{told: map[string]map[string]bool{}}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		reference := field(body, "transaction_id")
		if in.told[reference] == nil {
			in.told[reference] = map[string]bool{}
		}
		in.told[reference][field(body, "status")] = true
	}))
	t.Cleanup(in.server.Close)
	return in
}

func (in *inbox) statuses(reference string) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all []string
	for s := range in.told[reference] {
		all = append(all, s)
	}
	return all
}

func TestKilled_underLoad(t *testing.T) {
	t.Parallel() // a test that is not parallel would wait for its subtests before the next test begins
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, in, where := startSim(t), newInbox(t), newSite(t, engine)
			server := where.serve(t, "makola", sim)
			key, tenant := server.ready.APIKey, server.ready.TenantID
			where.command(t, "wallet", "fund", tenant, "100000.00", "--reason", "load", "--reference", "load")
			opening := balance(t, newClient(server.ready.APIURL, key))
			l := startLoad(t, "kill-"+engine.String(), in.server.URL, newClient(server.ready.APIURL, key))
			random := rand.New(rand.NewPCG(1, uint64(engine)))
			for n := range kills {
				// Waits for enough answers that requests are certainly in progress, and then for a random time.
				before := l.sent.Load()
				clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+3*callers })
				pause(time.Duration(random.IntN(200)) * time.Millisecond)
				server.kill()
				server = where.serve(t, fmt.Sprintf("makola %d", n+2), sim)
				l.target.Store(newClient(server.ready.APIURL, key))
			}
			payouts := l.end()
			verify(t, verification{site: where, sim: sim, servers: []*process{server}, api: newClient(server.ready.APIURL, key), inbox: in, opening: opening, payouts: payouts})
		})
	}
}

// A graceful stop under load answers every request in progress, and then the process ends.
func TestStopped_underLoad(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	first := where.serve(t, "first", sim, "--drain-for", "5m") // enough time for a slow machine
	second := where.serve(t, "second", sim)
	key := first.ready.APIKey
	where.command(t, "wallet", "fund", first.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, newClient(first.ready.APIURL, key))
	l := startLoad(t, "stop", in.server.URL, newClient(first.ready.APIURL, key))
	clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= 5*callers })
	l.target.Store(newClient(second.ready.APIURL, key))
	first.signal(syscall.SIGTERM)
	if code := first.wait(); code != 0 {
		t.Errorf("the stopped server ended with %d", code)
	}
	before := l.sent.Load()
	clocktest.Await(t, "the other node to answer", func() bool { return l.sent.Load() >= before+2*callers })
	v := verification{site: where, sim: sim, servers: []*process{second}, api: newClient(second.ready.APIURL, key), inbox: in, opening: opening, payouts: l.end()}
	verify(t, v)
	// A webhook about a payout is found by the reference that the customer has.
	_, external := v.status(t, v.payouts[0])
	var said []struct {
		Operation string `json:"operation"`
	}
	decode(t, where.command(t, "providers", "exchanges", external, "-o", "json"), &said)
	if len(said) == 0 || said[0].Operation != "transfer" {
		t.Errorf("the log of exchanges has %v of %s", said, external)
	}
}

// verification has the sources with which a run under faults is compared.
type verification struct {
	site    site
	sim     *process
	servers []*process // the running servers
	api     *client
	inbox   *inbox
	opening float64
	payouts []payout
}

// verify waits until no payout is open. It then compares each payout with the interface, the simulator's book, the webhooks and
// the wallet, and checks the ledger.
func verify(t *testing.T, v verification) {
	t.Helper()
	if len(v.payouts) < kills {
		t.Fatalf("only %d payouts were answered", len(v.payouts))
	}
	hasten(t, v.servers, "every payout to be settled", func() bool { return openTransfers(t, v.api) == 0 })
	want := v.opening
	counts := map[string]int{}
	for _, p := range v.payouts {
		status, external := v.status(t, p)
		counts[status]++
		if status == "success" {
			want -= 0.60 // 0.50 and the minimum fee
		}
		v.book(t, p, external, status)
	}
	t.Logf("%d payouts: %v", len(v.payouts), counts)
	if got := balance(t, v.api); got < want-0.001 || got > want+0.001 {
		t.Errorf("the wallet holds %.2f, the payouts leave %.2f", got, want)
	}
	v.told(t, v.payouts)
	v.site.command(t, "ledger", "check")
}

// hasten waits like Await, while the clocks of servers and simulator run twenty times as fast, so that queries a minute apart
// take seconds. A step is never longer than the maximum time of a request to a provider. The load must have ended.
func hasten(t testing.TB, servers []*process, what string, so func() bool) {
	t.Helper()
	const step, every = 2.0, 100 * time.Millisecond // step in seconds, and the interval between steps
	last := time.Now()
	clocktest.Await(t, what, func() bool {
		if so() {
			return true
		}
		if time.Since(last) < every {
			return false
		}
		last = time.Now()
		for _, server := range servers {
			if a, err := newClient(server.ready.SimURL, "").call(http.MethodPost, "/clock", map[string]any{"advance_s": step}); err != nil || a.status != http.StatusOK {
				t.Fatalf("the clock: %v %+v", err, a)
			}
		}
		return false
	})
}

// told waits for the webhook of each payout. A payout that the provider refused at once has no webhook, because the response
// already reports the refusal. The same holds if a kill lost that response.
func (v verification) told(t *testing.T, payouts []payout) {
	t.Helper()
	for _, p := range payouts {
		if !p.refused && !strings.HasSuffix(p.payee, "030") {
			hasten(t, v.servers, "the webhook of "+p.reference, func() bool { return len(v.inbox.statuses(p.reference)) > 0 })
		}
	}
}

// status queries the interface and compares the status with the answer to the caller and with the outcome of the payee.
func (v verification) status(t *testing.T, p payout) (status, external string) {
	t.Helper()
	var seen struct {
		Status   string `json:"status"`
		External string `json:"ext_transaction_id"`
	}
	v.api.get(t, "/payment-api/checkstatus/"+p.reference, &seen)
	code := p.payee[len(p.payee)-3:]
	want := "success"
	if code == "007" || code == "024" || code == "030" {
		want = "failed"
	}
	if seen.Status != want {
		t.Errorf("payout %s to %s is %s, want %s", p.reference, p.payee, seen.Status, want)
	}
	if p.refused && seen.Status != "failed" {
		t.Errorf("payout %s was refused and is %s", p.reference, seen.Status)
	}
	if p.external != "" && p.external != seen.External {
		t.Errorf("payout %s has the provider reference %s, the answer said %s", p.reference, seen.External, p.external)
	}
	return seen.Status, seen.External
}

// book checks one payout against the simulator's book: paid once if it succeeded, otherwise never.
func (v verification) book(t *testing.T, p payout, external, status string) {
	t.Helper()
	var rows []struct {
		Status string `json:"status"`
		Amount any    `json:"amount"`
	}
	root := &client{base: v.sim.ready.SimURL, http: v.api.http}
	root.get(t, "/transactions?reference="+external, &rows)
	paid := 0
	for _, r := range rows {
		if r.Status == "success" {
			paid++
		}
	}
	want := 0
	if status == "success" {
		want = 1
	}
	if paid != want {
		t.Errorf("payout %s is %s and the provider paid it %d times: %+v", p.reference, status, paid, rows)
	}
}

func balance(t testing.TB, c *client) float64 {
	t.Helper()
	var b struct {
		Wallet float64 `json:"wallet_balance"`
	}
	c.get(t, "/account-api/balance", &b)
	return b.Wallet
}

// openTransfers counts the payouts that are not final.
func openTransfers(t testing.TB, c *client) int {
	t.Helper()
	response, err := historyTotal(c, "pending")
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func historyTotal(c *client, status string) (int, error) {
	request, err := http.NewRequest(http.MethodGet, c.base+"/payment-api/transfers/history?page_size=1&status="+status, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("x-api-key", c.key)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var page struct {
		Meta *struct {
			Total int `json:"total"`
		} `json:"meta"`
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return 0, err
	}
	if page.Meta == nil {
		return 0, errors.New("the history has no meta")
	}
	return page.Meta.Total, nil
}
