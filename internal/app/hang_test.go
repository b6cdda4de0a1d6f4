package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// A primary hangs and answers no connection. Five seconds later a standby replaces it. Requests are answered again within 15 s.
// No request takes more than 10 s, no probe more than 1 s, and no job is lost.
func TestPrimary_hangs(t *testing.T) {
	t.Parallel()
	way, freezer := dbtest.Freezable(t)
	a := startLocal(t, func(c *config.Server) { c.Database, c.Connections = way, 8 })
	base := strings.TrimSuffix(a.ready.APIURL, "/api/v1")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string) (status int, took time.Duration) {
		r, err := http.NewRequestWithContext(context.Background(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, 0
		}
		r.Header.Set("X-Api-Key", a.ready.APIKey)
		begun := time.Now()
		answer, err := client.Do(r)
		took = time.Since(begun)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return 0, took
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return answer.StatusCode, took
	}
	var mu sync.Mutex
	var good []time.Time // of payouts
	taken := map[string]bool{}
	stop := make(chan struct{})
	var group sync.WaitGroup
	repeat := func(fn func(n int)) {
		group.Go(func() {
			for n := 0; ; n++ {
				fn(n)
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	for worker := range 8 {
		repeat(func(n int) {
			reference := fmt.Sprintf("hang-%02d-%08d", worker, n)
			status, took := ask("POST", "/api/v1/payment-api/send/mobilemoney",
				fmt.Sprintf(`{"amount":0.5,"account_number":"0240000001","channel":"MTN","client_reference":%q}`, reference))
			if took > 10*time.Second || status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("payout %s: %d after %v", reference, status, took)
			}
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusOK {
				good, taken[reference] = append(good, time.Now()), true
			}
		})
	}
	for _, path := range []string{"/api/v1/account-api/balance", "/api/v1/payment-api/transfers/history", "/api/v1/sms-api/contact/getGroups"} {
		repeat(func(int) {
			if status, took := ask("GET", path, ""); took > 10*time.Second {
				t.Errorf("%s: %d after %v", path, status, took)
			}
		})
	}
	unready := false
	repeat(func(int) {
		status, took := ask("GET", "/readyz", "")
		if took > time.Second+slack {
			t.Errorf("/readyz: %d after %v", status, took)
		}
		mu.Lock()
		defer mu.Unlock()
		unready = unready || status == http.StatusServiceUnavailable
	})
	since := func(from time.Time) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, at := range good {
			if at.After(from) {
				n++
			}
		}
		return n
	}
	clocktest.Await(t, "some payouts", func() bool { return since(time.Time{}) > 20 })
	freezer.Freeze()
	frozen := time.Now()
	time.Sleep(5 * time.Second) // the promotion
	freezer.Thaw()
	clocktest.Await(t, "answers again", func() bool { return since(frozen.Add(5*time.Second)) > 20 })
	if took := time.Since(frozen); took > 15*time.Second+slack {
		t.Errorf("answers came again %v after the freeze", took)
	}
	close(stop)
	group.Wait()
	if !unready {
		t.Error("/readyz never said that the database does not answer")
	}
	clocktest.Await(t, "the end of all jobs", func() bool {
		left, err := a.jobs.List(t.Context(), jobs.Filter{Kind: "payment"})
		return err == nil && len(left) == 0
	})
	for reference := range taken {
		if status, _ := ask("GET", "/api/v1/payment-api/checkstatus/"+reference, ""); status != http.StatusOK {
			t.Errorf("the payout %s was accepted, its status is answered with %d", reference, status)
		}
	}
	if r, err := a.ledger.Check(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("the ledger: %v, %v", r.Problems, err)
	}
	if r, err := a.payments.Check(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("the payments: %v, %v", r.Problems, err)
	}
}

// slack is the additional time for a slow machine.
const slack = 2 * time.Second

// A node that gets a signal to stop ends, although one of its parts hangs.
func TestStop_endsInTime(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	defer close(never)
	var stopped atomic.Int64
	a := &App{draining: make(chan struct{})}
	a.later(func(context.Context) error { stopped.Add(1); return nil })
	for range 3 {
		a.later(func(context.Context) error { <-never; return nil })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	err := a.Stop(ctx)
	if took := time.Since(begun); took > stopGrace+slack || stopped.Load() != 1 || err == nil {
		t.Errorf("it took %v, %d of the others were stopped, %v", took, stopped.Load(), err)
	}
}
