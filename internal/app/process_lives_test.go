//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// The parts of the first load. Each part ends after a number of answers, with other routes and a backup.
const (
	partsOfALife     = 3
	answersOfPart    = 80
	answersOfTrouble = 10
)

// troubles has the faults of providers that are injected before and after the restore. None of them makes a provider report a
// false status: other tests cover the decisions that then need an operator.
var troubles = []map[string]any{
	{"fault": "answer_lost"}, {"fault": "request_lost"}, {"fault": "error_before"}, {"fault": "error_after"}, {"fault": "slow", "delay_s": 1},
	{"fault": "malformed"}, {"fault": "throttle"}, {"fault": "unauthorized"}, {"fault": "callback_duplicate"}, {"fault": "callback_missing"},
	{"fault": "outage", "seconds": 1}, {"fault": "status_hang"}, {"fault": "status_not_found"},
}

// life is one life of a database, before or after a restore: a server under load whose providers have faults.
type life struct {
	t       *testing.T
	where   site
	server  *process
	sim     *process
	control *client // of sim
	random  *rand.Rand
	mu      sync.Mutex // of random
}

func (l *life) pick(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.IntN(n)
}

// trouble injects a fault for some of the requests to one provider.
func (l *life) trouble() {
	fault := maps.Clone(troubles[l.pick(len(troubles))])
	fault["provider"] = []string{"mtn", "hubtel"}[l.pick(2)]
	if fault["seconds"] == nil {
		fault["count"] = 1 + l.pick(3)
	}
	if a, err := l.control.call(http.MethodPost, "/faults", fault); err != nil || a.status != http.StatusOK {
		l.t.Errorf("a fault: %v %+v", err, a)
	}
}

// turmoil injects a fault once for every few answers until it is stopped, at the latest by the end of the test. If an open breaker
// refuses everything, turmoil removes the faults that have not affected a request yet. Otherwise single probes would meet them, and
// the breaker would stay open.
func (l *life) turmoil(answers *atomic.Int64) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		last, since := answers.Load(), time.Now()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				switch now := answers.Load(); {
				case now >= last+answersOfTrouble:
					last, since = now, time.Now()
					l.trouble()
				case time.Since(since) > peaceAfter:
					since = time.Now()
					l.peace()
				}
			}
		}
	}()
	end := sync.OnceFunc(func() {
		close(over)
		<-done
	})
	l.t.Cleanup(end) // stops also if the test fails before it calls stop
	return func() {
		end()
		l.peace()
	}
}

// peaceAfter is how long a breaker may refuse all requests before the faults are removed.
const peaceAfter = 5 * time.Second

// peace removes the faults that have not affected a request yet.
func (l *life) peace() {
	if _, err := l.control.call(http.MethodDelete, "/faults", nil); err != nil {
		l.t.Error(err)
	}
}

// resume closes the breakers, as an operator does after a check. A breaker that has met several faults stays open for five minutes.
// Pauses by turn stay.
func (l *life) resume() {
	l.t.Helper()
	for provider, operations := range map[string][]string{"mtn": {"collect"}, "hubtel": {"collect", "disburse_wallet", "disburse_bank", "topup", "bundle"}} {
		for _, operation := range operations {
			l.where.command(l.t, "providers", "resume", provider, "--mode", "test", "--operation", operation, "--reason", "a test")
		}
	}
}

// turn changes a route or pauses a rail, so that requests go to another rail than before.
func (l *life) turn() {
	l.t.Helper()
	route := func(providers ...string) {
		l.where.command(l.t, append(append([]string{"providers", "route", "disburse_wallet", "MTN"}, providers...), "--reason", "a test")...)
	}
	pause := func(verb string) {
		l.where.command(l.t, "providers", verb, "mtn", "--mode", "test", "--operation", "disburse_wallet", "--reason", "a test")
	}
	switch l.pick(4) {
	case 0:
		route("mtn", "hubtel")
	case 1:
		route("hubtel", "mtn")
	case 2:
		route("mtn", "hubtel")
		pause("pause")
	default:
		pause("resume")
	}
}

// later moves the clock of the server and the simulator.
func (l *life) later(d time.Duration) {
	l.t.Helper()
	a, err := newClient(l.server.ready.SimURL, "").call(http.MethodPost, "/clock", map[string]any{"advance_s": int(d.Seconds())})
	if err != nil || a.status != http.StatusOK {
		l.t.Fatalf("the clock: %v %+v", err, a)
	}
}

// sendText sends a campaign, or a one-time password.
func sendText(api *client, sender string, n int) (answer, error) {
	if n%2 == 0 {
		return api.call(http.MethodPost, "/sms-api/otp/send", map[string]any{"phoneNumber": fmt.Sprintf("02440%05d", n), "senderId": sender, "message": "<%otp_code%>"})
	}
	return api.call(http.MethodPost, "/sms-api/send", map[string]any{"sender_id": sender, "message": "A text", "recipients": []string{fmt.Sprintf("02450%05d", n)}})
}

// A database goes back in time under every kind of load, with provider faults, other routes and pauses before and after. One of its
// backups is restored. Clients send all requests again in another order, and new requests arrive.
func TestTwoLives_restore(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			where := newSite(t, engine)
			where.environment = []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("7e", 32)}
			folder := filepath.Join(t.TempDir(), "backups")
			var backups []string
			twoLives(t, where, uint64(engine), func(l *life, part int) {
				if part < partsOfALife {
					var made struct{ File string }
					decode(t, where.command(t, "backup", "create", "--folder", folder, "-o", "json"), &made)
					backups = append(backups, made.File)
				}
			}, func(l *life) {
				l.server.kill()
				l.where = where.beside(t)
				l.where.command(t, "restore", backups[l.pick(len(backups))])
				l.server = l.where.serve(t, "the second life", l.sim)
				l.where.letIn(t)
			})
		})
	}
}

// The same with an asynchronous standby that is promoted. It lacks the commits that it did not receive. The server continues.
func TestTwoLives_standby(t *testing.T) {
	t.Parallel()
	c := startCouple(t)
	where := site{engine: db.Postgres, data: t.TempDir(), url: c.url()}
	twoLives(t, where, 3, func(_ *life, part int) {
		if part == partsOfALife-1 {
			c.freeze()
		}
	}, func(*life) {
		c.killPrimary()
		c.promote()
		clocktest.Await(t, "a recovery", func() bool { return c.ask(c.standby, "makola", "SELECT phase FROM recovery") == "open" })
	})
}

// twoLives runs the load before and after the database goes back in time. It calls partOver at the end of each part of the first
// load, and forget between the two. Every successful request is carried out once, a failed one never, and the floats agree with the
// providers' books.
func twoLives(t *testing.T, where site, seed uint64, partOver func(l *life, part int), forget func(*life)) {
	l := &life{t: t, where: where, sim: startSim(t), random: rand.New(rand.NewPCG(13, seed))}
	l.server = where.serve(t, "the first life", l.sim)
	l.control = newClient(l.sim.ready.SimURL, "")
	key, sender, tenant := l.server.ready.APIKey, l.server.ready.SenderID, l.server.ready.TenantID
	api := newClient(l.server.ready.APIURL, key)
	gap := floats(t, where, l.sim, api)
	where.command(t, "wallet", "fund", tenant, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, api)

	crowd := startEverything(t, fmt.Sprintf("lives-%d", seed), everyProduct(t, l.server), api)
	grows := func() {
		t.Helper()
		before, since := crowd.sent.Load(), time.Now()
		clocktest.Await(t, "the load to get answers", func() bool {
			if time.Since(since) > 2*peaceAfter {
				l.resume()
				since = time.Now()
			}
			return crowd.sent.Load() >= before+answersOfPart
		})
	}
	calm := l.turmoil(&crowd.sent)
	for part := range partsOfALife + 1 {
		grows()
		for n := range 4 {
			if a, err := sendText(api, sender, 10*part+n); err != nil || a.status != http.StatusOK {
				t.Errorf("a text: %v %+v", err, a)
			}
		}
		l.turn()
		partOver(l, part)
	}
	forget(l)

	api = newClient(l.server.ready.APIURL, key)
	crowd.target.Store(api) // clients without an answer send again, and new clients arrive
	l.turn()
	if a, err := sendText(api, sender, 1); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("a campaign of a customer that is not let through: %v %+v", err, a)
	}
	l.where.command(t, "recovery", "allow", tenant, "--reason", "campaigns may come twice")
	l.later(301 * time.Second) // from now on a not-found answer counts
	grows()
	l.where.command(t, "providers", "route", "disburse_wallet", "MTN", "hubtel", "mtn", "--reason", "a test")
	all := crowd.end()
	errands := make([]errand, len(all))
	for i, one := range all {
		errands[i] = errand{one.product, one.reference, one.n}
	}
	l.random.Shuffle(len(errands), func(i, j int) { errands[i], errands[j] = errands[j], errands[i] })
	calm()
	l.resume()
	for range 3 { // there is no load any more whose answers would trigger these changes
		l.trouble()
	}
	unmet := time.AfterFunc(peaceAfter, l.peace)
	sendAll(t, api, errands)
	unmet.Stop()
	l.peace()
	decide(t, l.where, l.sim, l.server)
	judge(t, l.sim, api, all, opening)
	if now := floats(t, l.where, l.sim, api); !maps.Equal(now, gap) {
		t.Errorf("the floats differ by %v, before by %v", now, gap)
	}
	l.where.command(t, "recovery", "end", "--reason", "all sent again", "--sign-floats", "the simulator's book")
	l.where.command(t, "ledger", "check")
}

// everyProduct returns products, and payouts over the rail that recognises a repeated request. It excludes airtime that is paid by
// mobile money: an account may request it 60 times an hour, and requests that a recovery refuses count, too.
func everyProduct(t *testing.T, server *process) []product {
	t.Helper()
	limited := func(p product) bool { return p.path == "/airtime-api/buy" }
	return append(slices.DeleteFunc(products(t, server), limited), product{"payout", "/payment-api/send/mobilemoney", "/payment-api/checkstatus/", math.MaxInt64, -60, func(reference string, n int) map[string]any {
		return map[string]any{"amount": "0.50", "channel": "MTN", "account_number": outcomes[n%len(outcomes)], "client_reference": reference}
	}})
}

// A database that lost nothing causes no recovery and no status queries. The cases are a plain restart, a moved data folder, a
// new node without a folder, and a failover to a synchronous standby.
func TestTwoLives_unchangedDatabase(t *testing.T) {
	t.Parallel()
	key := []string{"MAKOLA_MASTER_KEY=" + strings.Repeat("8e", 32)}
	moved := func(t *testing.T, where site) site {
		to := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(where.data, to); err != nil {
			t.Fatal(err)
		}
		where.data = to
		return where
	}
	for name, tt := range map[string]struct {
		engine db.Engine
		next   func(*testing.T, site) site
	}{
		"a restart on SQLite":             {db.SQLite, func(_ *testing.T, where site) site { return where }},
		"a restart on PostgreSQL":         {db.Postgres, func(_ *testing.T, where site) site { return where }},
		"a moved folder with its file":    {db.SQLite, moved},
		"a moved folder of a node":        {db.Postgres, moved},
		"a new node on PostgreSQL":        {db.Postgres, func(t *testing.T, where site) site { where.data = t.TempDir(); return where }},
		"a restart after SIGKILL, SQLite": {db.SQLite, func(_ *testing.T, where site) site { return where }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, where := startSim(t), newSite(t, tt.engine)
			where.environment = key
			server := where.serve(t, "before", sim)
			ordinary(t, where, server, server.ready.APIKey, "before-it-00001")
			if strings.Contains(name, "SIGKILL") {
				server.kill()
			} else {
				server.signal(syscall.SIGTERM)
				server.wait()
			}
			where = tt.next(t, where)
			ordinary(t, where, where.serve(t, "after", sim), server.ready.APIKey, "after-it-000001")
		})
	}
	t.Run("a failover to a synchronous standby", func(t *testing.T) {
		t.Parallel()
		c := startCouple(t)
		c.synchronous()
		where := site{engine: db.Postgres, data: t.TempDir(), url: c.url(), environment: key}
		server := where.serve(t, "the node", startSim(t), "--synchronous-standby")
		ordinary(t, where, server, server.ready.APIKey, "before-it-00001")
		c.killPrimary()
		c.promote()
		ordinary(t, where, server, server.ready.APIKey, "after-it-000001")
	})
}

// ordinary makes one payment in normal operation. The provider's first request about it is its submission, not a query.
func ordinary(t *testing.T, where site, server *process, key, reference string) {
	t.Helper()
	api := newClient(server.ready.APIURL, key)
	clocktest.Await(t, "the payout "+reference, func() bool {
		a, err := api.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{"amount": "0.50", "account_number": "0240000001",
			"channel": "MTN", "client_reference": reference})
		if err == nil && strings.Contains(string(a.data)+a.message, "recover") {
			t.Errorf("the payout is answered %d %s", a.status, a.message)
		}
		return err == nil && (a.status == http.StatusOK || a.status == http.StatusUnprocessableEntity)
	})
	clocktest.Await(t, "it to be settled", func() bool { return openTransfers(t, api) == 0 })
	var seen struct {
		External string `json:"ext_transaction_id"`
	}
	api.get(t, "/payment-api/checkstatus/"+reference, &seen)
	clocktest.Await(t, "the log of its exchanges, which is written behind it", func() bool {
		var said []struct{ Operation string }
		decode(t, where.command(t, "providers", "exchanges", seen.External, "-o", "json"), &said)
		if len(said) > 0 && said[0].Operation != "transfer" {
			t.Errorf("the provider was asked %v", said)
		}
		return len(said) > 0
	})
	if phase := metric(t, server, "makola_recovery"); phase != 0 {
		t.Errorf("a recovery is in progress: %v", phase)
	}
}
