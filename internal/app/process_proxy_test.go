//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// freeAddress returns an address on loopback without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// proxy is a proxy program in front of several nodes, with its file in deploy.
type proxy struct {
	program, file string
	args          func(file string) []string
}

var proxies = []proxy{
	{"haproxy", "haproxy.cfg", func(file string) []string { return []string{"-db", "-f", file} }},
	{"nginx", "nginx.conf", func(file string) []string {
		return []string{"-c", file, "-p", filepath.Dir(file), "-e", "stderr", "-g", "daemon off;"}
	}},
}

// secondNode matches the line of the second node in a proxy's file.
var secondNode = regexp.MustCompile(`(?m)^ *server .*(?:\{two\}|\$\{NODE_TWO\}).*\n`)

// start starts the proxy before two nodes or more, and returns its address.
func (p proxy) start(t *testing.T, one, two string, more ...string) (address string) {
	t.Helper()
	program, err := exec.LookPath(p.program)
	if err != nil {
		t.Fatalf("%s is not here; scripts/tools.sh gets it", p.program)
	}
	text, err := os.ReadFile("../../deploy/" + p.file)
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range more { // further lines like that of the second node
		line := secondNode.FindString(string(text))
		text = []byte(strings.Replace(string(text), line, line+strings.NewReplacer("{two}", node, `"${NODE_TWO}"`, node, "two", fmt.Sprintf("more%d", i)).Replace(line), 1))
	}
	// On a busy machine a late answer to a check must not make a node look dead.
	text = []byte(strings.Replace(string(text), "    timeout connect 2s\n", "    timeout connect 2s\n    timeout check 10s\n", 1))
	folder := t.TempDir()
	address = freeAddress(t)
	file := filepath.Join(folder, p.file)
	filled := strings.NewReplacer("{bind}", address, "{one}", one, "{two}", two, "{folder}", folder).Replace(string(text))
	if os.Getuid() == 0 && p.program == "nginx" { // its workers run as the user nobody, who may not write into the folder
		filled = "user root;\n" + filled
	}
	if err := os.WriteFile(file, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &tail{}
	run := exec.Command(program, p.args(file)...)
	run.Env = append(os.Environ(), "BIND="+address, "NODE_ONE="+one, "NODE_TWO="+two) // haproxy's
	run.Stdout, run.Stderr = said, said
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) // this also ends its workers
		_ = run.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", p.program, said)
		}
	})
	return address
}

// slowest collects the response times.
type slowest struct{ took [callers][]time.Duration }

func (s *slowest) p99() time.Duration {
	var all []time.Duration
	for _, one := range s.took {
		all = append(all, one...)
	}
	return p99(all)
}

// Two nodes behind a proxy are stopped and started one after the other, while clients send payouts over kept connections. No
// request fails, and each payout is paid once.
func TestStopped_behindAProxy(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.program, func(t *testing.T) {
			t.Parallel()
			stoppedBehind(t, p)
		})
	}
}

func stoppedBehind(t *testing.T, before proxy) {
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	addresses := []string{freeAddress(t), freeAddress(t)}
	serve := func(n int) *process {
		return where.serve(t, fmt.Sprintf("node %d", n+1), sim, "--listen", addresses[n], "--drain-notice", "5s", "--drain-for", "5m")
	}
	nodes := []*process{serve(0), serve(1)}
	first := nodes[0].ready
	where.command(t, "wallet", "fund", first.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, newClient(first.APIURL, first.APIKey))
	proxy := newClient("http://"+before.start(t, addresses[0], addresses[1])+"/api/v1", first.APIKey)
	clocktest.Await(t, "the proxy to serve", func() bool {
		a, err := proxy.call(http.MethodGet, "/account-api/balance", nil)
		return err == nil && a.status == http.StatusOK
	})

	l := &load{crowd: crowd[payout]{t: t}, callback: in.server.URL}
	var times slowest
	var failed atomic.Int64
	l.begin(callers, proxy, func(caller, n int) {
		p := payout{reference: fmt.Sprintf("rolling-%03d-%06d", caller, n), payee: "0240000001"}
		begun := time.Now()
		a, err := proxy.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{
			"amount": "0.50", "account_number": p.payee, "channel": "MTN", "client_reference": p.reference, "callback_url": l.callback,
		})
		times.took[caller] = append(times.took[caller], time.Since(begun))
		if err != nil || a.status != http.StatusOK {
			failed.Add(1)
			t.Errorf("%s: %v %d %s", p.reference, err, a.status, a.message)
			return
		}
		p.accepted, p.external = true, field(a.data, "transaction_id")
		l.keep(p)
		pause(10 * time.Millisecond)
	})
	grows := func() {
		t.Helper()
		before := l.sent.Load()
		clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+10*callers })
	}
	for n := range nodes {
		grows()
		nodes[n].signal(syscall.SIGTERM)
		if code := nodes[n].wait(); code != 0 {
			t.Errorf("node %d ended with %d", n+1, code)
		}
		nodes[n] = serve(n)
		command(t, nil, nil, "health", "--listen", addresses[n], "--ready-for", "6s") // deploy/haproxy.cfg has 3 s, but haproxy checks late on a busy machine
	}
	grows()
	payouts := l.end()
	t.Logf("%d payouts over two restarts, %d failed, p99 %v", len(payouts), failed.Load(), times.p99().Round(time.Millisecond))
	verify(t, verification{site: where, sim: sim, servers: nodes[:], api: newClient("http://"+addresses[0]+"/api/v1", first.APIKey), inbox: in, opening: opening, payouts: payouts})
}

// While no node accepts requests, the proxy itself answers with JSON and Retry-After.
func TestProxies_answerWithoutNodes(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.program, func(t *testing.T) {
			t.Parallel()
			api := &http.Client{Timeout: time.Minute}
			address := p.start(t, freeAddress(t), freeAddress(t))
			var answer *http.Response
			clocktest.Await(t, "the proxy to answer", func() (ok bool) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/api/v1/payment-api/momopay", strings.NewReader("{}"))
				if err == nil {
					answer, err = api.Do(r)
				}
				return err == nil
			})
			defer answer.Body.Close()
			var body struct{ Message, Code string }
			err := json.NewDecoder(answer.Body).Decode(&body)
			if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") || err != nil || body.Message == "" || body.Code == "" {
				t.Errorf("%d %v, %+v, %v", answer.StatusCode, answer.Header, body, err)
			}
		})
	}
}
