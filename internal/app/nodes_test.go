//go:build !race

// The program under test is built without the race detector, which would make it ten times slower. Other tests run the same code
// with it.

package app_test

import (
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// Two nodes share one PostgreSQL. The other node takes over and finishes the work of a killed node.
func TestKilled_nodeIsTakenOver(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	first := where.serve(t, "first", sim)
	second := where.serve(t, "second", sim)
	key := first.ready.APIKey
	api := newClient(second.ready.APIURL, key)
	where.command(t, "wallet", "fund", first.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, api)
	l := startLoad(t, "take", in.server.URL, newClient(first.ready.APIURL, key))
	clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= 10*callers })
	l.target.Store(api)
	first.kill()
	payouts := l.end()
	verify(t, verification{site: where, sim: sim, servers: []*process{second}, api: api, inbox: in, opening: opening, payouts: payouts})
}

// A paused node loses its lease and its work. When it continues, it must do no harm and work again.
func TestPaused_nodeDoesNoHarm(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	first := where.serve(t, "first", sim)
	second := where.serve(t, "second", sim)
	key := first.ready.APIKey
	api := newClient(second.ready.APIURL, key)
	where.command(t, "wallet", "fund", first.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, api)
	l := startLoad(t, "pause", in.server.URL, newClient(first.ready.APIURL, key))
	clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= 5*callers })
	first.signal(syscall.SIGSTOP)
	// The callers hang on the paused node. In the meantime other callers use the second node.
	l2 := startLoad(t, "other", in.server.URL, api)
	clocktest.Await(t, "the second node to take over what the first accepted", func() bool {
		return l2.sent.Load() >= 10*callers && adopted(t, second)
	})
	first.signal(syscall.SIGCONT)
	before := l.sent.Load()
	clocktest.Await(t, "the woken node to answer", func() bool { return l.sent.Load() >= before+3*callers })
	payouts := append(l.end(), l2.end()...)
	verify(t, verification{site: where, sim: sim, servers: []*process{first, second}, api: api, inbox: in, opening: opening, payouts: payouts})
}

// Each payout is sent to two of three nodes at once, with one Idempotency-Key. Both answers are the same, also while a node is
// paused and after one is killed, and nothing is paid twice.
func TestKilled_repeatsAtOtherNodes(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	first := where.serve(t, "first", sim)
	second, third := where.serve(t, "second", sim), where.serve(t, "third", sim)
	key := first.ready.APIKey
	api := newClient(second.ready.APIURL, key)
	where.command(t, "wallet", "fund", first.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, api)
	newClient(sim.ready.SimURL, "").post(t, "/faults", map[string]any{"provider": "mtn", "operation": "disburse", "fault": "slow", "delay_s": 0.3, "seconds": 600})
	d := &doubled{crowd: crowd[payout]{t: t}, callback: in.server.URL, others: [2]*client{api, newClient(third.ready.APIURL, key)}}
	d.begin(callers, newClient(first.ready.APIURL, key), d.send)
	clocktest.Await(t, "the load to get answers", func() bool { return d.sent.Load() >= 3*callers })
	third.signal(syscall.SIGSTOP)
	before := d.sent.Load()
	clocktest.Await(t, "answers beside a paused node", func() bool { return d.sent.Load() >= before+callers })
	third.signal(syscall.SIGCONT)
	d.target.Store(api)
	first.kill()
	before = d.sent.Load()
	clocktest.Await(t, "answers without the killed node", func() bool { return d.sent.Load() >= before+3*callers })
	payouts := d.end()
	t.Logf("%d repeated requests were answered by another node; %d were told to come again", d.replayed.Load(), d.conflicts.Load())
	if d.replayed.Load() == 0 {
		t.Error("no repeated request was answered by another node")
	}
	verify(t, verification{site: where, sim: sim, servers: []*process{second, third}, api: api, inbox: in, opening: opening, payouts: payouts})
}

// doubled is a pool of callers that sends each payout to two nodes at the same time.
type doubled struct {
	crowd[payout]
	callback            string
	others              [2]*client
	replayed, conflicts atomic.Int64
}

func (d *doubled) send(caller, n int) {
	p := payout{reference: fmt.Sprintf("doubled-%03d-%06d", caller, n), payee: outcomes[(caller+n)%len(outcomes)]}
	other := make(chan answer, 1)
	go func() {
		defer close(other)
		other <- d.ask(p, func() *client { return d.others[caller%2] })
	}()
	one := d.ask(p, d.target.Load)
	two, answered := <-other
	if !answered {
		return // the test is over
	}
	if one.status != two.status || field(one.data, "transaction_id") != field(two.data, "transaction_id") {
		d.t.Errorf("payout %s: one node answered %d %s, the other %d %s", p.reference, one.status, one.data, two.status, two.data)
	}
	p.accepted, p.refused = one.status == http.StatusOK, one.status == http.StatusBadRequest
	if p.accepted {
		p.external = field(one.data, "transaction_id")
	}
	if !p.accepted && !p.refused {
		d.t.Errorf("payout %s: %d %s", p.reference, one.status, one.message)
		return
	}
	d.keep(p)
}

// ask sends a payout until a node answers other than "in progress".
func (d *doubled) ask(p payout, at func() *client) answer {
	for begun := time.Now(); ; {
		if d.t.Context().Err() != nil {
			runtime.Goexit()
		}
		a, err := at().call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{
			"amount": "0.50", "account_number": p.payee, "channel": "MTN", "client_reference": p.reference, "callback_url": d.callback,
		}, "Idempotency-Key", p.reference)
		switch {
		case err == nil && a.status == http.StatusConflict:
			d.conflicts.Add(1)
		case err == nil && a.status < http.StatusInternalServerError:
			if a.replayed {
				d.replayed.Add(1)
			}
			return a
		}
		giveUp(d.t, begun, p.reference, err)
		pause(20 * time.Millisecond)
	}
}

// adopted reports whether a node has taken over jobs, by its metric.
func adopted(t testing.TB, p *process) bool {
	t.Helper()
	return metric(t, p, "makola_jobs_adopted_total") > 0
}

// A revoked key is refused by the other node within a second of real time, plus the time of a request.
func TestRevocation_reachesEveryNode(t *testing.T) {
	t.Parallel()
	sim, where := startSim(t), newSite(t, db.Postgres)
	first := where.serve(t, "first", sim)
	second := where.serve(t, "second", sim)
	api := newClient(second.ready.APIURL, first.ready.APIKey)
	balance(t, api) // the second node has the key in its cache
	where.command(t, "tenant", "set", first.ready.TenantID, "--blocked", "on", "--reason", "fraud")
	at := time.Now()
	clocktest.Await(t, "the block to be in force", func() bool {
		a, err := api.call(http.MethodGet, "/account-api/balance", nil)
		return err == nil && a.status == http.StatusForbidden
	})
	t.Logf("in force after %v", time.Since(at).Round(time.Millisecond))
}

// With ten times as many callers as database connections, no caller stalls or gets a 5xx.
func TestLoad_moreCallersThanConnections(t *testing.T) {
	t.Parallel()
	sim, in, where := startSim(t), newInbox(t), newSite(t, db.Postgres)
	server := where.serve(t, "makola", sim, "--connections", "4")
	where.command(t, "wallet", "fund", server.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	api := newClient(server.ready.APIURL, server.ready.APIKey)
	done := make(chan answer, 40)
	for caller := range 40 {
		go func() {
			a, err := api.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{
				"amount": "0.50", "account_number": "0240000001", "channel": "MTN",
				"client_reference": "many-callers-" + string(rune('a'+caller/26)) + string(rune('a'+caller%26)), "callback_url": in.server.URL,
			})
			if err != nil {
				t.Error(err)
			}
			done <- a
		}()
	}
	for range 40 {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.message)
		}
	}
	clocktest.Await(t, "every payout to be settled", func() bool { return openTransfers(t, api) == 0 })
	where.command(t, "ledger", "check")
}
