package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

func TestTraffic_slowReceiversGetLess(t *testing.T) {
	tr := newTraffic()
	if most, pool := tr.limit("new", "new"), tr.pool("new", "new"); most != leastAtOnce || pool != newPool {
		t.Errorf("a new receiver gets %d in the pool %d", most, pool)
	}
	for took, want := range map[time.Duration][2]int{
		time.Millisecond: {maxPerReceiver, quickPool}, 500 * time.Millisecond: {16, quickPool}, 2 * time.Second: {4, slowPool}, 15 * time.Second: {leastAtOnce, slowPool},
	} {
		tenant, host := "of "+took.String(), "host"
		tr.note(tenant, host, took)
		if got := [2]int{tr.limit(tenant, host), tr.pool(tenant, host)}; got != want {
			t.Errorf("one that takes %v gets %d", took, got)
		}
		if got := tr.pool(tenant, "another"); got != newPool {
			t.Errorf("beside one that takes %v a new one is in the pool %d", took, got)
		}
		for range 30 {
			tr.note(tenant, host, time.Millisecond)
		}
		if got := [2]int{tr.limit(tenant, host), tr.pool(tenant, host)}; got != [2]int{maxPerReceiver, quickPool} {
			t.Errorf("one that became quick gets %d", got)
		}
	}
	for i := range pacesKept + 10 {
		tr.note(fmt.Sprint(i), "host", time.Second)
	}
	if len(tr.paces) > pacesKept {
		t.Errorf("%d receivers are remembered", len(tr.paces))
	}
}

// The pools of unknown and slow receivers leave workers for quick ones. A quick receiver that stops answering leaves
// places for the tenant's other receivers, and for other tenants at the same host.
func TestPools_leaveRoomForQuick(t *testing.T) {
	p := newPools(256, nil).all
	if rest := 256 - p[newPool].atOnce - p[slowPool].atOnce; rest < 256/4 {
		t.Errorf("%d workers are left to quick receivers", rest)
	}
	if maxPerReceiver >= p[quickPool].perTenant || maxPerReceiver >= maxPerHost {
		t.Errorf("one receiver may have %d", maxPerReceiver)
	}
}

// A tenant has many receivers that never answer. Each has few connections, but together they could use every worker.
// They do not delay the webhooks of other tenants.
func TestTraffic_endlessReceivers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const workers = 36 // one more than the places that a tenant may use in the pool of unknown receivers
		r := newRig(t, d, "a", Options{Workers: workers, Timeout: patience})
		urls, inside, open := silentReceivers(t, 48)
		var events []Event
		for i, url := range urls {
			for n := range 4 {
				events = append(events, r.event(i*4+n, func(e *Event) { e.Tenant, e.URL = "endless", url }))
			}
		}
		r.send(events...)
		arrive(t, "a tenant's share", newPools(workers, nil).all[newPool].perTenant, inside)
		quick := make(chan struct{}, 50)
		r.inbox.answers(func(int, http.ResponseWriter, *http.Request) { quick <- struct{}{} })
		events = nil
		for i := range 50 {
			events = append(events, r.event(1000+i, nil))
		}
		r.send(events...)
		arrive(t, "the neighbour beside receivers that do not answer", 50, quick)
		if n := len(inside); n != 0 {
			t.Errorf("%d more than a tenant's share were tried at once", n)
		}
		open()
		r.quiet()
	})
}

// silentReceivers starts receivers that report each request to inside. They answer only after open is called.
func silentReceivers(t *testing.T, n int) (urls []string, inside chan struct{}, open func()) {
	t.Helper()
	silent, inside := make(chan struct{}), make(chan struct{}, 10_000)
	open = sync.OnceFunc(func() { close(silent) })
	for i := range n {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", i+2))
		if err != nil {
			t.Fatal(err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			inside <- struct{}{}
			<-silent
			w.WriteHeader(http.StatusInternalServerError)
		})}}
		server.Start()
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
	}
	t.Cleanup(open) // before the servers close, because they wait for the answers
	return urls, inside, open
}

// arrive waits until a receiver has had n requests.
func arrive(t *testing.T, what string, n int, came <-chan struct{}) {
	t.Helper()
	enough := time.After(patience)
	for got := range n {
		select {
		case <-came:
		case <-enough:
			t.Fatalf("%s: %d of %d", what, got, n)
		}
	}
}

// A tenant's receivers that do not answer delay no other receiver of the tenant, not even one that gets its first
// event.
func TestTraffic_deadReceiver(t *testing.T) {
	for _, dead := range []int{1, 12} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				r := newRig(t, d, "a", Options{Timeout: patience})
				urls, inside, open := silentReceivers(t, dead)
				var events []Event
				for i, url := range urls {
					r.traffic.note("tenant", hostPart(url), 15*time.Second) // as measured in the first attempts
					for n := range 60 {
						events = append(events, r.event(i*60+n, func(e *Event) { e.URL = url }))
					}
				}
				r.send(events...)
				arrive(t, "the dead receivers' share", 2, inside)
				quick := make(chan struct{}, 20)
				r.inbox.answers(func(int, http.ResponseWriter, *http.Request) { quick <- struct{}{} })
				events = nil
				for i := range 20 {
					events = append(events, r.event(1000+i, nil))
				}
				r.send(events...)
				arrive(t, "beside receivers that do not answer", 20, quick)
				open()
				r.quiet()
			})
		})
	}
}

// If a host does not answer the events of one tenant, the events of another tenant for the same host and port are not
// delayed.
func TestTraffic_sharedHost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{Timeout: patience})
		silent, inside, quick := make(chan struct{}), make(chan struct{}, 300), make(chan struct{}, 20)
		open := sync.OnceFunc(func() { close(silent) })
		t.Cleanup(open)
		r.inbox.answers(func(_ int, w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/hook" {
				quick <- struct{}{}
				return
			}
			inside <- struct{}{}
			<-silent
			w.WriteHeader(http.StatusInternalServerError)
		})
		r.traffic.note("hanging", hostPart(r.inbox.server.URL), 15*time.Second) // as measured in the first attempts
		var events []Event
		for i := range 300 {
			events = append(events, r.event(i, func(e *Event) { e.Tenant, e.URL = "hanging", r.inbox.server.URL+"/hang" }))
		}
		r.send(events...)
		arrive(t, "the slow tenant's share", 2, inside)
		events = nil
		for i := range 20 {
			events = append(events, r.event(1000+i, nil))
		}
		r.send(events...)
		arrive(t, "beside another tenant's that hang", 20, quick)
		if n := len(inside); n != 0 {
			t.Errorf("%d more than two of the slow ones at once", n)
		}
		open()
		r.quiet()
	})
}
