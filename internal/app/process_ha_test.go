//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// ensemble is the cluster of deploy/ha: three members of PostgreSQL under Patroni.
type ensemble struct {
	t      *testing.T
	folder string
	first  int // first of its ports
	url    string
}

// members are the names by their numbers, which begin with 1.
var members = []string{"", "one", "two", "three"}

func startEnsemble(t *testing.T) *ensemble {
	t.Helper()
	for _, program := range []string{"patroni", "patronictl", "etcd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not here; scripts/tools.sh gets it", program)
		}
	}
	folder, err := os.MkdirTemp("", "makola-ha-") // PostgreSQL's user cannot enter a test's folder that belongs to root
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	e := &ensemble{t: t, folder: folder, first: freePortsOf(t, 30)}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range members[1:] {
				text, _ := os.ReadFile(filepath.Join(folder, name+".log"))
				t.Logf("the end of what member %s printed:\n%s", name, lastLines(string(text), 15))
			}
		}
		e.script("stop")
		_ = os.RemoveAll(folder)
	})
	e.url = strings.TrimSpace(e.script("start"))
	return e
}

// freePortsOf finds consecutive free ports below the range that systems assign.
func freePortsOf(t *testing.T, n int) (first int) {
	t.Helper()
	for range 100 {
		first = 11_000 + 50*rand.IntN(400)
		taken := false
		for port := first; port < first+n && !taken; port++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if taken = err != nil; !taken {
				_ = l.Close()
			}
		}
		if !taken {
			return first
		}
	}
	t.Fatal("there are no free ports")
	return 0
}

// script runs deploy/ha/loopback.sh.
func (e *ensemble) script(action string, more ...string) string {
	e.t.Helper()
	run := exec.Command("../../deploy/ha/loopback.sh", append([]string{action, e.folder}, more...)...)
	run.Env = append(os.Environ(), fmt.Sprintf("HA_PORT=%d", e.first))
	out, err := os.CreateTemp(e.t.TempDir(), "") // a pipe would stay open for the processes that the script leaves running
	if err != nil {
		e.t.Fatal(err)
	}
	run.Stdout, run.Stderr = out, out
	failed := run.Run()
	said, err := os.ReadFile(out.Name())
	if err != nil || failed != nil {
		e.t.Errorf("loopback.sh %s: %v\n%s", action, failed, said)
	}
	return string(said)
}

// is queries the Patroni of a member for a role: primary, replica or synchronous.
func (e *ensemble) is(member int, role string) bool {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", e.first+20+member, role))
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// await waits until a member has a role, and returns its name.
func (e *ensemble) await(role string) (member int) {
	e.t.Helper()
	clocktest.Await(e.t, "a member to be "+role, func() bool {
		for member = 1; member < len(members); member++ {
			if e.is(member, role) {
				return true
			}
		}
		return false
	})
	return member
}

// receiver returns the process that receives a standby's log.
func (e *ensemble) receiver(member int) (pid int) {
	e.t.Helper()
	connection, err := pgx.Connect(e.t.Context(), fmt.Sprintf("postgres://postgres@127.0.0.1:%d/makola?sslmode=disable", e.first+10+member))
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = connection.Close(e.t.Context()) }()
	if err := connection.QueryRow(e.t.Context(), "SELECT pid FROM pg_stat_wal_receiver").Scan(&pid); err != nil {
		e.t.Fatal(err)
	}
	return pid
}

// service has the observations of the callers: the longest time without an answer, and failures at times when none is allowed.
type service struct {
	mu     sync.Mutex
	last   time.Time
	gap    time.Duration
	calm   atomic.Bool // no failure is allowed
	failed atomic.Int64
}

func (s *service) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.gap = max(s.gap, now.Sub(s.last))
	}
	s.last = now
}

// away returns the longest time without an answer since the last call of away.
func (s *service) away() (gap time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gap, s.gap = s.gap, 0
	return gap.Round(10 * time.Millisecond)
}

// Three nodes of the previous release run behind haproxy on a Patroni cluster. They are upgraded one by one. The primary is
// lost while its synchronous standby receives nothing, and a planned switchover follows. One node is killed and another is
// paused. Every accepted payout exists and is paid once, and no request fails during the upgrade.
func TestCluster_patroniLosesNoPayout(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t)
	sim, in := startSim(t), newInbox(t)
	where := site{engine: db.Postgres, data: t.TempDir(), url: e.url, environment: []string{"MAKOLA_SYNCHRONOUS_STANDBY=true"}}
	before := previousRelease(t)
	addresses := []string{freeAddress(t), freeAddress(t), freeAddress(t)}
	serve := func(n int, path string) *process {
		return startIn(t, fmt.Sprintf("node %d", n+1), path, where.environment, append([]string{"serve", "--listen", addresses[n], "--metrics-listen", "127.0.0.1:0",
			"--sim", sim.ready.SimURL, "--drain-notice", "3s", "--drain-for", "5m"}, where.args()...)...)
	}
	nodes := []*process{serve(0, before), serve(1, before), serve(2, before)}
	first := nodes[0].ready
	where.command(t, "migrate", "up")
	where.command(t, "wallet", "fund", first.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, newClient(first.APIURL, first.APIKey))
	front := newClient("http://"+proxies[0].start(t, addresses[0], addresses[1], addresses[2])+"/api/v1", first.APIKey)
	clocktest.Await(t, "the proxy to serve", func() bool {
		a, err := front.call(http.MethodGet, "/account-api/balance", nil)
		return err == nil && a.status == http.StatusOK
	})

	l := &load{crowd: crowd[payout]{t: t}, callback: in.server.URL}
	var seen service
	seen.calm.Store(true)
	l.begin(callers, front, func(caller, n int) {
		p := payout{reference: fmt.Sprintf("ha-%03d-%06d", caller, n), payee: "0240000001"}
		for {
			a, err := front.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{
				"amount": "0.50", "account_number": p.payee, "channel": "MTN", "client_reference": p.reference, "callback_url": l.callback,
			})
			switch {
			case err == nil && a.status == http.StatusOK:
				p.external = field(a.data, "transaction_id")
			case err == nil && a.status == http.StatusUnprocessableEntity: // an earlier try of ours was accepted
				p.external = field(a.data, "ext_transaction_id")
			default:
				if seen.calm.Load() {
					seen.failed.Add(1)
					t.Errorf("%s: %v %d %s", p.reference, err, a.status, a.message)
				}
				pause(50 * time.Millisecond)
				continue
			}
			break
		}
		seen.answered()
		p.accepted = true
		l.keep(p)
		pause(20 * time.Millisecond)
	})
	grows := func() {
		t.Helper()
		before := l.sent.Load()
		clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+5*callers })
	}
	grows()
	for n := range nodes {
		nodes[n].signal(syscall.SIGTERM)
		if code := nodes[n].wait(); code != 0 {
			t.Errorf("node %d ended with %d", n+1, code)
		}
		nodes[n] = serve(n, program(t))
		clocktest.Await(t, "the proxy to send requests to the node again", func() bool {
			return strings.Contains(scrape(t, nodes[n]), `route="payment-api/send/mobilemoney"`)
		})
	}
	grows()
	seen.calm.Store(false)
	t.Logf("upgrade of three nodes: %d requests failed, at most %v without an answer", seen.failed.Load(), seen.away())

	primary, standby := e.await("primary"), e.await("synchronous")
	receiver := e.receiver(standby)
	if err := syscall.Kill(receiver, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	pause(500 * time.Millisecond) // no COMMIT is answered during this time
	e.script("lose", members[primary])
	if err := syscall.Kill(receiver, syscall.SIGCONT); err != nil {
		t.Log(err) // it ends with the primary
	}
	grows()
	t.Logf("primary lost: %v without an answer", seen.away())
	e.script("back", members[primary])
	clocktest.Await(t, "the old primary to follow", func() bool { return e.is(primary, "replica") })

	primary, standby = e.await("primary"), e.await("synchronous")
	file := filepath.Join(e.folder, members[primary]+".yml")
	if out, err := exec.Command("patronictl", "-c", file, "switchover", "makola", "--candidate", members[standby], "--force").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Successfully switched over")) {
		t.Errorf("switchover: %v\n%s", err, out)
	}
	grows()
	t.Logf("switchover: %v without an answer", seen.away())

	nodes[0].kill()
	grows()
	nodes[0] = serve(0, program(t))
	nodes[1].signal(syscall.SIGSTOP)
	pause(5 * time.Second)
	nodes[1].signal(syscall.SIGCONT)
	grows()
	t.Logf("a node killed, another paused: %v without an answer", seen.away())
	payouts := l.end()
	api := newClient(nodes[2].ready.APIURL, first.APIKey)
	verify(t, verification{site: where, sim: sim, api: api, inbox: in, opening: opening, payouts: payouts})
	if phase := string(where.command(t, "recovery", "status", "-o", "csv")); strings.Contains(phase, "open") || strings.Contains(phase, "closed") {
		t.Errorf("a recovery began: %s", phase)
	}
}
