package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// Tests with the helpers of this file use Makola as its users do: they build, start and kill the program, and send HTTP
// requests.

// patience limits every wait of these tests. Only a failing test reaches it, because a slow machine must not make a correct program
// look wrong.
const patience = 10 * time.Minute

// builtIn is the folder of the program that builtProgram built.
var builtIn string

func TestMain(m *testing.M) {
	if told := os.Getenv(attackVariable); told != "" {
		os.Exit(attackAsConfigured(told))
	}
	if text := os.Getenv(floodVariable); text != "" {
		os.Exit(floodAsConfigured(text))
	}
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // a remaining file is in a temporary folder
	}
	os.Exit(code)
}

// builtProgram builds cmd/makola once for each run of the tests.
var builtProgram = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("MAKOLA_TEST_BENCH_BINARY"); given != "" {
		return given, nil
	}
	folder, err := os.MkdirTemp("", "makola-program-")
	if err != nil {
		return "", err
	}
	builtIn = folder
	path := filepath.Join(folder, "makola")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "github.com/makola/makola/cmd/makola")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func program(t testing.TB) string {
	t.Helper()
	path, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is one started program.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	ready  ready
	log    *tail
	exited chan struct{}
	state  *os.ProcessState
	ended  atomic.Bool // the test has sent a signal, or waits for the end
}

// ready is the content of the ready file.
type ready struct {
	SignInURL     string `json:"sign_in_url"`
	PID           int    `json:"pid"`
	APIURL        string `json:"api_url"`
	SimURL        string `json:"sim_url"`
	MetricsURL    string `json:"metrics_url"`
	TenantID      string `json:"tenant_id"`
	APIKey        string `json:"api_key"`
	BankID        string `json:"bank_id"`
	SenderID      string `json:"sender_id"`
	WebhookSecret string `json:"webhook_secret"`
}

// tail keeps the last output of a program, which is printed if its test fails.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > tailBytes {
		l.text = append([]byte(nil), l.text[len(l.text)-tailBytes:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// start runs the program and waits for its ready file.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	return startIn(t, name, program(t), nil, args...)
}

// startIn starts the program at a path, with additional environment variables.
func startIn(t testing.TB, name, path string, environment []string, args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	if i := slices.Index(args, "--smpp-password"); i >= 0 { // production accepts the password only from the environment
		environment = append(slices.Clone(environment), "MAKOLA_SMPP_PASSWORD="+args[i+1])
		args = slices.Delete(slices.Clone(args), i, i+2)
	}
	p := &process{t: t, name: name, log: &tail{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, append(args, "--ready-file", file)...)
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.state = p.cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		select {
		case <-p.exited:
			if !p.ended.Load() {
				t.Errorf("%s ended by itself: %v", name, p.state)
			}
		default:
		}
		p.kill()
		if t.Failed() {
			t.Logf("the end of what %s printed:\n%s", name, lastLines(p.log.String(), 60))
		}
	})
	clocktest.Await(t, name+" to be ready", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("%s ended before it was ready: %v\n%s", name, p.state, p.log)
		default:
		}
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &p.ready) == nil
	})
	t.Logf("%s was ready after %v", name, time.Since(begun).Round(time.Millisecond))
	return p
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// kill sends SIGKILL, and returns when the process has ended.
func (p *process) kill() {
	p.ended.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// signal sends a signal to a process that runs.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	p.ended.Store(true)
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// wait waits until the process ends by itself, and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	p.ended.Store(true)
	select {
	case <-p.exited:
		return p.state.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%s did not end", p.name)
		return 0
	}
}

// pause waits between two checks of another process, which sends no signal.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// command runs a command of the program and returns its output. The command must succeed, or end with one of the allowed exit
// codes.
func command(t testing.TB, environment []string, allowed []int, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, program(t), args...)
	run.Env = append(os.Environ(), environment...)
	var out, complaints bytes.Buffer
	run.Stdout, run.Stderr = &out, &complaints
	if err := run.Run(); err != nil && !slices.Contains(allowed, run.ProcessState.ExitCode()) {
		t.Fatalf("makola %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), complaints.String())
	}
	return out.Bytes()
}

// site is the data of one installation: the arguments that every start and command shares.
type site struct {
	engine db.Engine
	data   string
	url    string // PostgreSQL
	// environment has the settings of a production server; it is empty in development.
	environment []string
}

// live changes the site to live money: a production server behind a proxy on this machine.
func (s *site) live(t testing.TB) {
	t.Helper()
	key := sha256.Sum256([]byte(rand.Text()))
	s.environment = []string{"MAKOLA_ENV=production", "MAKOLA_PUBLIC_URL=https://makola.example", "MAKOLA_TRUSTED_PROXIES=127.0.0.1",
		"MAKOLA_GENERAL_LIMIT=0", "MAKOLA_MASTER_KEY=" + hex.EncodeToString(key[:])}
	if s.engine == db.Postgres {
		s.command(t, "migrate", "up")
	}
}

func newSite(t testing.TB, engine db.Engine) site {
	t.Helper()
	s := site{engine: engine, data: t.TempDir()}
	if engine == db.Postgres {
		s.url = dbtest.URL(t)
	}
	return s
}

func (s site) args() []string {
	args := []string{"--data", s.data}
	if s.url != "" {
		args = append(args, "--database", s.url)
	}
	return args
}

// command runs a command against the site's database.
func (s site) command(t testing.TB, args ...string) []byte {
	t.Helper()
	return command(t, s.environment, nil, append(args, s.args()...)...)
}

// commandUnlessDone is command for a change that another process may already have made.
func (s site) commandUnlessDone(t testing.TB, args ...string) {
	t.Helper()
	const conflict = 5
	command(t, s.environment, []int{conflict}, append(args, s.args()...)...)
}

// serve starts a server of the site with a simulator in another process.
func (s site) serve(t testing.TB, name string, sim *process, extra ...string) *process {
	t.Helper()
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--sim", sim.ready.SimURL}, s.args()...)
	return startIn(t, name, program(t), s.environment, append(args, extra...)...)
}

func startSim(t testing.TB) *process {
	t.Helper()
	return start(t, "the simulator", "sim", "--listen", "127.0.0.1:0", "--data", t.TempDir())
}

// answer is a reply of the interface.
type answer struct {
	status   int
	message  string
	data     json.RawMessage
	replayed bool // Idempotent-Replayed
}

// client calls the interface of one server.
type client struct {
	base, key string
	http      *http.Client
}

func newClient(base, key string) *client {
	return &client{base: base, key: key, http: &http.Client{
		Timeout:   2 * time.Minute, // a server answers within a minute; a client that leaves earlier would find its request still in progress
		Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 0},
	}}
}

// call makes one request with additional headers, as alternating names and values. It returns an error if no answer arrived.
func (c *client) call(method, path string, body any, header ...string) (answer, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.base+path, reader)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("x-api-key", c.key)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	var envelope struct {
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return answer{}, fmt.Errorf("%s %s: %d %q: %w", method, path, response.StatusCode, text, err)
	}
	return answer{status: response.StatusCode, message: envelope.Message, data: envelope.Data, replayed: response.Header.Get("Idempotent-Replayed") == "true"}, nil
}

// get decodes the data of an answer with the status 200.
func (c *client) get(t testing.TB, path string, into any) {
	t.Helper()
	a, err := c.call(http.MethodGet, path, nil)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	if a.status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, a.status, a.message)
	}
	if err := json.Unmarshal(a.data, into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// scrape returns all metrics. If the database does not answer a query in time, the metrics of that query are missing. So scrape
// repeats until the metric of the last query is present.
func scrape(t testing.TB, p *process) (text string) {
	t.Helper()
	clocktest.Await(t, "the metrics of "+p.name, func() bool {
		response, err := http.Get(p.ready.MetricsURL)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		all, err := io.ReadAll(response.Body)
		text = string(all)
		return err == nil && response.StatusCode == http.StatusOK && strings.Contains(text, "\nmakola_ledger_imbalance_pesewas{")
	})
	return text
}

// metric returns the sum of a metric's series, 0 when it has none.
func metric(t testing.TB, p *process, name string) float64 {
	t.Helper()
	sum := 0.0
	for line := range strings.Lines(scrape(t, p)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && (fields[0] == name || strings.HasPrefix(fields[0], name+"{")) {
			value, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			sum += value
		}
	}
	return sum
}
