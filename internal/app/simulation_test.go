package app

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// The simulation runs a year of faults in a minute. Nodes on a database send HTTP requests to the simulator, and one virtual
// clock drives them all. A seeded random generator chooses the requests of customers, the faults of providers and database, and
// the actions of operators. At the end the faults stop, every payment reaches its end, and the books are compared with each
// other.

var (
	simulationOps  = flag.Int("simulation.ops", 0, "operations of the simulation, on each engine; 0: the usual number")
	simulationSeed = flag.Uint64("simulation.seed", 0, "one seed of the simulations, instead of those in testdata/simulation-seeds")
	simulationLog  = flag.Bool("simulation.log", false, "show the errors that the nodes of the simulation log")
)

// The lengths of the simulations in make deep.
const (
	wholeOps        = 10_000
	wholeTextRounds = 24
)

// booksEvery is the interval, in virtual time, in which the nodes of a simulation check the books. verify checks them at the end.
const booksEvery = 2 * time.Hour

// callersAtOnce is the number of customers that send requests at the same time in one round.
const callersAtOnce = 128

// simulationPatience is the maximum time until everything is idle. Only a broken program reaches it.
const simulationPatience = 10 * time.Minute

// roundsBetweenRestarts is the number of rounds between two graceful restarts of a node.
const roundsBetweenRestarts = 16

// simulationRun is a seed of the simulations and the length of the run. 0 is the usual length.
type simulationRun struct {
	seed   uint64
	length int
}

// simulationRuns returns the runs of the command line. Without them it returns the runs of the file: those of the gate, and each
// run that once failed.
func simulationRuns(t *testing.T, simulation string) (runs []simulationRun) {
	t.Helper()
	if *simulationSeed > 0 {
		return []simulationRun{{seed: *simulationSeed}}
	}
	file, err := os.ReadFile("testdata/simulation-seeds")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		var which string
		var run simulationRun
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &which, &run.seed, &run.length); err != nil || run.seed == 0 {
			t.Fatalf("a line of the seeds is %q: %v", line, err)
		}
		if which == simulation {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		t.Fatalf("no seed is for %s", simulation)
	}
	return runs
}

// eachSimulation runs a simulation with each of its seeds on each engine. The engines use different seeds.
func eachSimulation(t *testing.T, simulation string, one func(t *testing.T, engine db.Engine, run simulationRun)) {
	t.Parallel()
	for _, run := range simulationRuns(t, simulation) {
		for _, engine := range dbtest.Engines() {
			t.Run(fmt.Sprint(engine, " seed ", run.seed), func(t *testing.T) {
				t.Parallel()
				t.Logf("repeat with -args -simulation.seed=%d", run.seed)
				run := run
				run.seed += uint64(engine)
				one(t, engine, run)
			})
		}
	}
}

// gateOr returns the length of a simulation: short in the gate, complete in make deep.
func gateOr(gate, whole int) int {
	if matrix.Whole() {
		return whole
	}
	return gate
}

func TestSimulation_payments(t *testing.T) {
	eachSimulation(t, "payments", func(t *testing.T, engine db.Engine, run simulationRun) {
		w := newWorld(t, engine, run.seed, nil)
		for length := cmp.Or(run.length, *simulationOps, gateOr(simulationOpsDefault, wholeOps)); w.asked < length && !t.Failed(); {
			w.changeWeather()
			w.round()
		}
		w.clearUp()
		w.cover()
		w.verify()
	})
}

// world is one simulated installation with the records of the test.
type world struct {
	t      *testing.T
	engine db.Engine
	random *rand.Rand
	clock  *clock.Clock // clock of the nodes, which steps change
	theirs *clock.Clock // clock of the providers
	faults *db.Faults
	sim    *simulated
	door   *door
	nodes  []*App
	cfg    config.Server
	inbox  *simInbox

	customers []*customer
	networks  map[string]string // ids by name
	services  []route.Service
	asked     int
	rounds    int
	storms    int // number of rounds with a fault of a provider
	started   int // nodes
	orders    []*order
	weather   weather
	changes   [7]int // number of operators' changes, by kind
	steps     int    // number of clock steps
	lookedAt  int    // number of orders whose second status query was made
	takenBack bool   // a success was reversed, so payouts of a tenant may be stopped
}

// customer is a tenant with a key, and the money that the test gave it.
type customer struct {
	id, key string
	given   int64
}

// worldBegins is the time at which the clocks of a world begin.
var worldBegins = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// newWorld creates a world. prepare, which may be nil, completes it before its first node starts.
func newWorld(t *testing.T, engine db.Engine, seed uint64, prepare func(*world)) *world {
	w := &world{t: t, engine: engine, random: rand.New(rand.NewPCG(seed, 42)), faults: &db.Faults{},
		clock: clock.NewManual(worldBegins), theirs: clock.NewManual(worldBegins)}
	var err error
	if w.sim, err = simulate(sim.Options{Clock: w.theirs}, mtn.Options{}, smsc.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.sim.Close() })
	w.door = newDoor(t, w.sim.Handler())
	w.inbox = newSimInbox(t)
	w.cfg = config.Server{Environment: "development", Listen: "127.0.0.1:0", Sim: w.door.url(), Connections: 8, DrainFor: time.Minute,
		Storage: freshStorage(t, engine)}
	if prepare != nil {
		prepare(w)
	}
	w.startNode()
	if engine == db.Postgres {
		w.startNode()
	}
	t.Cleanup(func() {
		for _, n := range w.nodes {
			if err := n.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	})
	w.makeCustomers()
	w.readCatalogue()
	return w
}

// startNode starts a node on the world's database.
func (w *world) startNode() {
	w.t.Helper()
	w.started++
	cfg := w.cfg
	cfg.Node = fmt.Sprintf("node-%d", w.started)
	cfg.SMSRoutes = []config.SMSRoute{{Providers: []string{"smpp"}}} // the checks of texts support only the message centre
	log := slog.New(slog.DiscardHandler)
	if *simulationLog {
		log = slog.New(slog.NewTextHandler(testLog{w.t}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	// A lease uses the database's own clock, because a slow machine must not make a node look dead.
	n, err := Start(context.Background(), cfg, Options{Version: "simulation", Clock: w.clock, Faults: w.faults, Log: log, Lease: 10 * time.Minute, BooksEvery: booksEvery})
	if err != nil {
		w.t.Fatalf("start: %v", err)
	}
	w.nodes = append(w.nodes, n)
}

// testLog sends a node's log to the test's.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// restart stops the oldest node and starts another. If two nodes can run at once, the new node starts first.
func (w *world) restart() {
	if w.engine == db.Postgres {
		w.startNode()
	}
	oldest := w.nodes[0]
	w.nodes = w.nodes[1:]
	if err := oldest.Stop(context.Background()); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	if w.engine == db.SQLite {
		w.startNode()
	}
	w.adopted()
}

// adopted waits until the running nodes have the jobs of ended nodes. Nodes search by the machine's clock, and the world's clock
// may be days ahead by then.
func (w *world) adopted() {
	w.t.Helper()
	owners := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		owners[i] = fmt.Sprintf("%s/%d", n.jobs.Node(), n.jobs.Epoch())
	}
	clocktest.Await(w.t, fmt.Sprintf("every job to be of %v", owners), func() bool {
		var left int64
		err := w.nodes[0].db.Read(context.Background(), func(tx *db.Tx) error {
			_, err := tx.One(nobodysJobs, []any{owners}, &left)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return left == 0
	})
}

// nobodysJobs counts the jobs of nodes that have ended. It omits jobs that wait for a node with a handler of their kind.
const nobodysJobs = `SELECT count(*) FROM jobs WHERE owner <> 'dead' AND substr(owner, 1, 1) <> '?' AND owner NOT IN (SELECT value FROM texts($1))`

// node returns one of the nodes.
func (w *world) node() *App { return w.nodes[w.random.IntN(len(w.nodes))] }

// round is one period with the same faults: customers send requests at the same time, operators act, and time passes.
func (w *world) round() {
	w.rounds++
	orders := make([]*order, callersAtOnce)
	for i := range orders {
		orders[i] = w.draw()
	}
	var group sync.WaitGroup
	for _, o := range orders {
		node := w.node()
		group.Add(1)
		go func() {
			defer group.Done()
			o.ask(node)
		}()
	}
	w.await(&group)
	w.asked += len(orders)
	for _, o := range orders {
		w.keep(o)
	}
	w.operate()
	w.pass(1+w.random.IntN(3), 5*time.Second)
	if w.rounds%roundsBetweenRestarts == 0 {
		w.calm()
		w.restart()
	}
}

// await waits for the answers to customers. A request may itself wait for the clock, for example until a lost transaction is tried
// again.
func (w *world) await(group *sync.WaitGroup) {
	w.t.Helper()
	answered := make(chan struct{})
	go func() { group.Wait(); close(answered) }()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for until := time.Now().Add(simulationPatience); ; {
		select {
		case <-answered:
			return
		case <-look.C:
		}
		if time.Now().After(until) {
			w.t.Fatalf("round %d: requests are not answered", w.rounds)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		idle := !slices.ContainsFunc(w.nodes, func(n *App) bool { return n.jobs.Quiet(ctx) != nil })
		cancel()
		if idle {
			w.advance(time.Second)
		}
	}
}

// pass advances the time in steps. Everything due happens before the next step.
func (w *world) pass(steps int, step time.Duration) {
	for range steps {
		w.settle()
		w.advance(step)
	}
	w.settle()
}

// advance advances all clocks.
func (w *world) advance(d time.Duration) {
	w.theirs.Advance(d)
	w.clock.Advance(d)
}

// settle waits until no goroutine has work at the present time of the clock.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), simulationPatience)
	defer cancel()
	for range 2 { // the end of one piece of work may start another
		for _, n := range w.nodes {
			if err := n.jobs.Quiet(ctx); err != nil {
				w.t.Fatalf("round %d: jobs do not come to rest: %v; %+v", w.rounds, err, n.jobs.Counts())
			}
		}
		for _, n := range w.nodes {
			if err := n.payments.Quiet(ctx); err != nil {
				w.t.Fatalf("round %d: second looks do not come to rest: %v", w.rounds, err)
			}
		}
		if err := w.sim.Quiet(ctx); err != nil {
			w.t.Fatalf("round %d: the simulator does not come to rest: %v", w.rounds, err)
		}
	}
}

// call makes one request of a customer.
func call(n *App, key, method, path, body string, header ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, "http://localhost/api/v1"+path, reader)
	r.RemoteAddr = "127.0.0.1:4000"
	r.Header.Set("x-api-key", key)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Del(header[i])
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	n.handler().ServeHTTP(answer, r)
	return answer
}

// simInbox receives webhooks and stores the statuses of each reference.
type simInbox struct {
	server *httptest.Server
	mu     sync.Mutex
	told   map[string][]string
	refuse func() bool // whether to answer 500
}

func newSimInbox(t *testing.T) *simInbox {
	in := &simInbox{told: map[string][]string{}}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.refuse != nil && in.refuse() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		in.told[r.URL.Path] = append(in.told[r.URL.Path], member(body, "status"))
	}))
	t.Cleanup(in.server.Close)
	return in
}

// of returns the webhooks that arrived at the address of an order, oldest first.
func (in *simInbox) of(path string) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.told[path]
}
