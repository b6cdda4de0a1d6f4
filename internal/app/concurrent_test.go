package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/apitest"
	"github.com/makola/makola/internal/test/clocktest"
)

// Clients may repeat a request while the first one is in progress, and send many requests with one reference at the same moment.
// The tests cover both on both engines.

func eachStage(t *testing.T, fn func(t *testing.T, s *stage, a *actor)) {
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		a := &actor{stage: s, t: t, vars: map[string]string{}, hook: "/hooks/concurrent"}
		a.catalogue()
		a.enter(map[string]string{})
		fn(t, s, a)
	})
}

func TestIdempotencyKey_inProgress(t *testing.T) {
	eachStage(t, func(t *testing.T, s *stage, a *actor) {
		a.control("POST", "/faults", `{"provider":"mtn","operation":"disburse","fault":"slow","count":1}`)
		ask := func() *httptest.ResponseRecorder {
			return call(s.app, a.key, "POST", "/payment-api/send/mobilemoney",
				`{"amount":1,"account_number":"0240000001","channel":"MTN","client_reference":"in-progress-01"}`, "Idempotency-Key", "once")
		}
		first := make(chan *httptest.ResponseRecorder, 1)
		go func() { first <- ask() }()
		clocktest.Await(t, "the first request to be recorded", func() bool {
			return call(s.app, a.key, "GET", "/payment-api/checkstatus/in-progress-01", "").Code == http.StatusOK
		})
		again := ask()
		if again.Code != http.StatusConflict || !strings.Contains(again.Body.String(), `"idempotency_in_progress"`) || again.Header().Get("Retry-After") == "" {
			t.Errorf("while the first is under way the answer is %d %s", again.Code, again.Body)
		}
		// The request and its provider may not have set their timers yet.
		clocktest.Await(t, "the first answer, and the provider's", func() bool {
			s.clock.Advance(15 * time.Second)
			moment, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			return len(first) > 0 && s.app.jobs.Quiet(moment) == nil
		})
		if got := <-first; got.Code != http.StatusOK || got.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("the first request is answered %d %s", got.Code, got.Body)
		}
		s.settle(t)
		if got := ask(); got.Code != http.StatusOK || got.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("afterwards the answer is %d %s", got.Code, got.Body)
		}
		a.leave()
	})
}

// A client that disconnects during a read is not an error of ours, so operators are not alerted.
func TestLog_omitsClientsThatHangUp(t *testing.T) {
	eachStage(t, func(t *testing.T, s *stage, a *actor) {
		ended := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.app.handler().ServeHTTP(w, r)
			close(ended)
		}))
		defer server.Close()
		a.control("POST", "/faults", `{"provider":"mtn","operation":"disburse","fault":"slow","count":1}`)
		ctx, hangUp := context.WithCancel(context.Background())
		defer hangUp()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/api/v1/payment-api/send/mobilemoney", strings.NewReader(
			`{"amount":1,"account_number":"0240000001","channel":"MTN","client_reference":"hangs-up-0001","callback_url":"`+s.inbox.server.URL+a.hook+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-api-key", a.key)
		asked := make(chan error, 1)
		go func() {
			answer, err := server.Client().Do(r)
			if err == nil {
				_ = answer.Body.Close()
			}
			asked <- err
		}()
		clocktest.Await(t, "the payout to be recorded", func() bool {
			return call(s.app, a.key, "GET", "/payment-api/checkstatus/hangs-up-0001", "").Code == http.StatusOK
		})
		hangUp()
		if err := <-asked; err == nil {
			t.Error("the client was answered")
		}
		clocktest.Await(t, "the request to end", func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		clocktest.Await(t, "the provider's answer", func() bool { // the request may not have set its timer yet
			s.clock.Advance(15 * time.Second)
			return len(s.inbox.of(a.hook)) > 0
		})
		s.settle(t)
		a.told = 1
		a.leave()
	})
}

func TestReference_concurrentIsPaidOnce(t *testing.T) {
	const at = 24
	requests := []struct{ path, body, wallet string }{
		{"/payment-api/send/mobilemoney", `{"amount":1,"account_number":"0240000001","channel":"MTN","client_reference":"all-at-once-1"}`, "98.9"},
		{"/payment-api/momopay", `{"amount":1,"phone_number":"0240000001","network":"MTN","transaction_id":"all-at-once-1"}`, "99.8"},
		{"/airtime-api/sendAirtime", `{"amount":1,"phone_number":"0240000001","network_id":"$network.mtn","transaction_id":"all-at-once-1"}`, "98.8"},
	}
	eachStage(t, func(t *testing.T, s *stage, a *actor) {
		for _, request := range requests {
			body := a.fill(request.body)
			answers := make([]*httptest.ResponseRecorder, at)
			var group sync.WaitGroup
			for i := range answers {
				group.Add(1)
				go func() {
					defer group.Done()
					answers[i] = call(s.app, a.key, "POST", request.path, body)
				}()
			}
			group.Wait()
			took := map[string]int{}
			for _, got := range answers {
				took[fmt.Sprint(got.Code, strings.Contains(got.Body.String(), `"duplicate_reference"`))]++
			}
			if took["200 false"] != 1 || took["422 true"] != at-1 {
				t.Errorf("%s: the answers are %v", request.path, took)
			}
			s.advance(t, time.Minute)
			a.ask("GET", "/account-api/balance", "", nil)
			a.answered(200, nil, `{"message":"*","data":{"wallet_balance":`+request.wallet+`,"...":0}}`)
		}
		a.leave()
	})
}
