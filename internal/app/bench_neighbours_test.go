package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// The attacks of one customer, and the modest traffic of the neighbour.
const (
	neighbourFor     = 10 * time.Second // length of each phase, quiet and attack
	neighbours       = 8                // number of the neighbour's clients, each with a payout every 50 ms
	attackers        = 16               // number of clients of each attack
	attackGroup      = 100_000          // contacts
	silentReceivers  = 40
	silentPayoutWait = 50 * time.Millisecond // 20 payouts a second to receivers that never answer
)

// BenchmarkNeighbours measures the payouts and webhooks of an account while another account attacks, and without attacks. The
// attacks run at the same time: large groups that are named a hundred times, receivers that never answer, bodies without a key,
// and lists of empty contacts. The attackers run in a process of the lowest priority, because real attackers use other
// machines, and only the server's work is measured.
func BenchmarkNeighbours(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkNeighbours(b, engine)
			}
		})
	}
}

func benchmarkNeighbours(b *testing.B, engine db.Engine) {
	sim, where := startSim(b), newSite(b, engine)
	server := where.serve(b, "makola", sim)
	n := newNeighbour(b, server.ready.APIURL, benchTenants(b, where, server, 2)[1])
	a := newAttacker(b, server.ready.APIURL, server.ready.APIKey, server.ready.SenderID)
	quiet := n.run(b, "quiet", neighbourFor)
	stop := a.begin(b)
	attacked := n.run(b, "attacked", neighbourFor)
	stop()
	a.release()
	milli := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(milli(quiet.payout), "payout-p99-ms")
	b.ReportMetric(milli(attacked.payout), "attacked-payout-p99-ms")
	b.ReportMetric(milli(quiet.webhook), "webhook-p99-ms")
	b.ReportMetric(milli(attacked.webhook), "attacked-webhook-p99-ms")
	b.ReportMetric(milli(attacked.payout)/milli(quiet.payout), "payout-times")
	b.ReportMetric(milli(attacked.webhook)/milli(quiet.webhook), "webhook-times")
	b.ReportMetric(peakMemory(b, server.ready.PID), "MB-peak")
	b.ReportMetric(0, "ns/op")
	where.command(b, "ledger", "check")
	server.kill()
	sim.kill()
}

// benchCall makes one request and returns its result.
func benchCall(ctx context.Context, client *http.Client, method, url, key, body string) (status int, answer []byte) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	got, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer got.Body.Close()
	answer, _ = io.ReadAll(got.Body)
	return got.StatusCode, answer
}

// neighbour sends payouts and stores the time of each answer and each webhook.
type neighbour struct {
	api, key, hook string
	mu             sync.Mutex
	begun          map[string]time.Time // start by reference, until the webhook arrives
	webhooks       []time.Duration
}

// felt has the 99th percentiles of a phase.
type felt struct{ payout, webhook time.Duration }

func newNeighbour(b *testing.B, api, key string) *neighbour {
	n := &neighbour{api: api, key: key, begun: map[string]time.Time{}}
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var told struct {
			Reference string `json:"transaction_id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&told)
		n.mu.Lock()
		defer n.mu.Unlock()
		if begun, ok := n.begun[told.Reference]; ok {
			n.webhooks = append(n.webhooks, time.Since(begun))
			delete(n.begun, told.Reference)
		}
	}))
	b.Cleanup(sink.Close)
	n.hook = sink.URL
	return n
}

func (n *neighbour) run(b *testing.B, phase string, length time.Duration) felt {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: neighbours, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	var answers []time.Duration
	var group sync.WaitGroup
	end := time.Now().Add(length)
	for worker := range neighbours {
		group.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				reference, begun := fmt.Sprintf("%s-%d-%08d", phase, worker, i), time.Now()
				n.mu.Lock()
				n.begun[reference] = begun
				n.mu.Unlock()
				status, answer := benchCall(b.Context(), client, "POST", n.api+"/payment-api/send/mobilemoney", n.key,
					fmt.Sprintf(`{"amount":0.5,"account_number":"0240000001","channel":"MTN","client_reference":%q,"callback_url":%q}`, reference, n.hook))
				if status != http.StatusOK {
					b.Errorf("a neighbour's payout: %d %s", status, answer)
				}
				n.mu.Lock()
				answers = append(answers, time.Since(begun))
				n.mu.Unlock()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	group.Wait()
	clocktest.Await(b, "the neighbour's webhooks", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.begun) == 0
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	f := felt{payout: p99(answers), webhook: p99(n.webhooks)}
	n.webhooks = nil
	return f
}

func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// attacker is a customer with a large group and receivers that never answer.
type attacker struct {
	API, Key, Sender, Group string
	Silent                  []string // addresses of the receivers
	client                  *http.Client
	release                 func() // lets the receivers answer
}

func newAttacker(b *testing.B, api, key, sender string) *attacker {
	a := &attacker{API: api, Key: key, Sender: sender, client: http.DefaultClient}
	never := make(chan struct{})
	a.release = sync.OnceFunc(func() { close(never) })
	for i := range silentReceivers {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", i+2))
		if err != nil {
			b.Fatal(err)
		}
		s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never })}}
		s.Start()
		b.Cleanup(func() { a.release(); s.Close() })
		a.Silent = append(a.Silent, s.URL)
	}
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_, answer := benchCall(b.Context(), a.client, "POST", api+"/sms-api/contact/addGroup", key, `{"group_name":"crowd","name":"crowd"}`)
	decode(b, answer, &made)
	a.Group = made.Data.ID
	for from := 0; from < attackGroup; from += 10_000 {
		var list bytes.Buffer
		for i := range 10_000 {
			fmt.Fprintf(&list, `,{"phone_number":"024%07d"}`, from+i)
		}
		status, answer := benchCall(b.Context(), a.client, "POST", api+"/sms-api/contact/addBulkContact", key,
			fmt.Sprintf(`{"contact_group_id":%q,"contacts":[%s]}`, a.Group, list.Bytes()[1:]))
		if status != http.StatusOK {
			b.Fatalf("contacts: %d %s", status, answer)
		}
	}
	return a
}

// attackVariable is the environment variable that makes the test program an attacker. Its value is the attack in JSON.
const attackVariable = "MAKOLA_TEST_ATTACK"

// begin starts the attacks in a process of the lowest priority.
func (a *attacker) begin(b *testing.B) (stop func()) {
	b.Helper()
	return beginClients(b, attackVariable, a)
}

// beginClients starts the test program again as clients of the lowest priority. variable is the environment variable
// that selects the clients, and as is its value, in JSON.
func beginClients(b *testing.B, variable string, as any) (stop func()) {
	b.Helper()
	text, err := json.Marshal(as)
	if err != nil {
		b.Fatal(err)
	}
	clients := exec.Command("nice", "-n", "19", os.Args[0])
	clients.Env, clients.Stderr = append(os.Environ(), variable+"="+string(text)), os.Stderr
	alive, err := clients.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := clients.Start(); err != nil {
		b.Fatal(err)
	}
	return func() {
		_ = alive.Close()
		if err := clients.Wait(); err != nil {
			b.Errorf("%s: %v", variable, err)
		}
	}
}

// attackAsConfigured is the process of the attackers. It runs until its standard input ends.
func attackAsConfigured(told string) int {
	a := attacker{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * attackers}}}
	if err := json.Unmarshal([]byte(told), &a); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	a.attack(ctx, &group)
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	group.Wait()
	return 0
}

// attack runs every attack until ctx ends.
func (a *attacker) attack(ctx context.Context, group *sync.WaitGroup) {
	again := func(clients int, pause time.Duration, one func(i int)) {
		for client := range clients {
			group.Go(func() {
				for i := client; ctx.Err() == nil; i += clients {
					one(i)
					select {
					case <-time.After(pause):
					case <-ctx.Done():
					}
				}
			})
		}
	}
	named := strings.Repeat(`"`+a.Group+`",`, 99) + `"` + a.Group + `"`
	again(attackers, time.Millisecond, func(int) {
		benchCall(ctx, a.client, "POST", a.API+"/sms-api/send", a.Key, fmt.Sprintf(`{"sender_id":%q,"message":"hello","group_id_list":[%s]}`, a.Sender, named))
	})
	again(1, silentPayoutWait, func(i int) {
		benchCall(ctx, a.client, "POST", a.API+"/payment-api/send/mobilemoney", a.Key, fmt.Sprintf(
			`{"amount":0.5,"account_number":"0240000001","channel":"MTN","client_reference":"silent-%09d","callback_url":%q}`, i, a.Silent[i%len(a.Silent)]))
	})
	large := strings.Repeat(" ", 4<<20-2) + "{}"
	again(attackers, 100*time.Millisecond, func(int) { benchCall(ctx, a.client, "POST", a.API+"/sms-api/send", "", large) })
	empty := `{"contact_group_id":"` + a.Group + `","contacts":[` + strings.Repeat("{},", 1_300_000) + `{}]}`
	again(attackers, 100*time.Millisecond, func(int) {
		benchCall(ctx, a.client, "POST", a.API+"/sms-api/contact/addBulkContact", a.Key, empty)
	})
}
