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
	"github.com/makola/makola/internal/db/dbtest"
)

func TestTrafficGivesTheSlowOnesLittle(t *testing.T) {
	tr := newTraffic()
	if host, tenant := tr.limit("new"), tr.tenantLimit("new"); host != 8 || tenant != maxPerTenant {
		t.Errorf("a new receiver gets %d, a new tenant %d", host, tenant)
	}
	for took, want := range map[time.Duration][2]int{
		time.Millisecond: {maxPerHost, maxPerTenant}, 500 * time.Millisecond: {16, 16}, 2 * time.Second: {4, 8}, 15 * time.Second: {2, 2},
	} {
		key := took.String()
		tr.note(key, key, took)
		if got := [2]int{tr.limit(key), tr.tenantLimit(key)}; got != want {
			t.Errorf("one that takes %v gets %d", took, got)
		}
		for range 30 {
			tr.note(key, key, time.Millisecond)
		}
		if got := [2]int{tr.limit(key), tr.tenantLimit(key)}; got != [2]int{maxPerHost, maxPerTenant} {
			t.Errorf("one that became quick gets %d", got)
		}
	}
	for i := range pacesKept + 10 {
		tr.note(fmt.Sprint(i), fmt.Sprint(i), time.Second)
	}
	if len(tr.hosts) > pacesKept || len(tr.tenants) > pacesKept {
		t.Errorf("%d receivers and %d tenants are remembered", len(tr.hosts), len(tr.tenants))
	}
}

// A tenant's receivers that never answer are many, so that each has few connections and all together would have every
// worker. They hold up no other tenant's webhooks.
func TestEndlessReceiversHoldNobodyUp(t *testing.T) {
	const receivers = 48
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{Workers: maxPerTenant + 4, Timeout: patience})
		silent, inside := make(chan struct{}), make(chan struct{}, receivers*8)
		open := sync.OnceFunc(func() { close(silent) })
		defer open()
		var events []Event
		for i := range receivers {
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
			for n := range 4 {
				events = append(events, r.event(i*4+n, func(e *Event) { e.Tenant, e.URL = "endless", server.URL }))
			}
		}
		r.send(events...)
		for range maxPerTenant {
			<-inside
		}
		quick := make(chan struct{}, 50)
		r.inbox.answers(func(int, http.ResponseWriter, *http.Request) { quick <- struct{}{} })
		events = nil
		for i := range 50 {
			events = append(events, r.event(1000+i, nil))
		}
		r.send(events...)
		enough := time.After(patience)
		for got := range 50 {
			select {
			case <-quick:
			case <-enough:
				t.Fatalf("the neighbour got %d of 50 beside receivers that do not answer", got)
			}
		}
		if n := len(inside); n != 0 {
			t.Errorf("%d more than a tenant's share were tried at once", n)
		}
		open()
		r.quiet()
	})
}
