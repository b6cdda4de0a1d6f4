package mtnmomo_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
	simmtn "github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/test/clocktest"
)

func (b *bench) tokens() int {
	n := 0
	for _, e := range b.Exchanges() {
		if e.Operation == "token" {
			n++
		}
	}
	return n
}

func TestToken_sharedByWaitingCallers(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	b.Fault("token", "slow", 1) // until the clock moves, so that all callers wait
	var wg sync.WaitGroup
	outcomes := make([]provider.Outcome, 50)
	for i := range outcomes {
		wg.Go(func() { outcomes[i] = b.collect(uuid.NewString()) })
	}
	clocktest.Await(t, "somebody to wait for the clock", func() bool { return b.Clock.Waiting() > 0 })
	b.Clock.Advance(time.Minute)
	wg.Wait()
	for _, o := range outcomes {
		if o.Class != provider.Accepted {
			t.Errorf("%+v", o)
		}
	}
	if n := b.tokens(); n != 1 {
		t.Errorf("%d token calls for 50 requests", n)
	}
	b.Clock.Advance(58 * time.Minute)
	b.collect(uuid.NewString())
	if n := b.tokens(); n != 1 {
		t.Errorf("renewed early: %d token calls", n)
	}
	b.Clock.Advance(90 * time.Second)
	if o := b.collect(uuid.NewString()); o.Class != provider.Accepted || b.tokens() != 2 {
		t.Errorf("%+v after %d token calls", o, b.tokens())
	}
}

// A token is renewed in time, even if the clock is set.
func TestToken_clockSet(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	b.collect(uuid.NewString())
	for i, step := range []time.Duration{-24 * time.Hour, 48 * time.Hour} {
		b.Clock.Set(step)
		if b.collect(uuid.NewString()); b.tokens() != i+1 {
			t.Errorf("set by %v: %d token calls", step, b.tokens())
		}
		b.Clock.Advance(time.Hour)
		if b.collect(uuid.NewString()); b.tokens() != i+2 {
			t.Errorf("an hour after a step of %v: %d token calls", step, b.tokens())
		}
	}
}

func TestToken_cancelledCallerStopsNoOther(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	b.Fault("token", "slow", 1)
	ctx, cancel := context.WithCancel(context.Background())
	first, second := make(chan provider.Outcome, 1), make(chan provider.Outcome, 1)
	collect := func(ctx context.Context) provider.Outcome {
		return b.Rail.Collector.Collect(ctx, provider.CollectRequest{ProviderReference: uuid.NewString(), Amount: 500, MSISDN: b.Wallet("000")})
	}
	go func() { first <- collect(ctx) }()
	clocktest.Await(t, "somebody to wait for the clock", func() bool { return b.Clock.Waiting() > 0 })
	go func() { second <- collect(context.Background()) }()
	cancel()
	if o := <-first; o.Class != provider.NotSent {
		t.Errorf("who gave up: %+v", o)
	}
	b.Clock.Advance(time.Minute)
	if o := <-second; o.Class != provider.Accepted {
		t.Errorf("who waited: %+v", o)
	}
}

func TestToken_renewedAfterRefusal(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	// The caller counts POSTs, so no POST is repeated here. The next POST has a new token.
	b.Fault("collect", "unauthorized", 1)
	reference := uuid.NewString()
	if o := b.collect(reference); o.Class != provider.Barred || b.tokens() != 1 {
		t.Errorf("one 401: %+v after %d tokens", o, b.tokens())
	}
	if o := b.collect(reference); o.Class != provider.Accepted || b.tokens() != 2 {
		t.Errorf("the next POST: %+v after %d tokens", o, b.tokens())
	}
	// A status query is repeated at once, because it moves no money.
	b.Fault("collect_status", "unauthorized", 1)
	if o := b.Rail.Collector.CollectStatus(context.Background(), provider.StatusRequest{ProviderReference: reference}); o.Class != provider.Accepted || b.tokens() != 3 {
		t.Errorf("a question after one 401: %+v after %d tokens", o, b.tokens())
	}
	// Without any token, no part of the payment request was written.
	for _, fault := range []string{"outage", "unauthorized", "forbidden", "throttle", "malformed", "answer_lost", "error_after"} {
		b := newBench(t, sim.Options{}, simmtn.Options{})
		b.Fault("token", fault, 1)
		reference := uuid.NewString()
		if o := b.collect(reference); o.Class != provider.NotSent || len(b.Moved(reference)) != 0 {
			t.Errorf("token call with %s: %+v", fault, o)
		}
		if o := b.collect(reference); o.Class != provider.Accepted {
			t.Errorf("after %s: %+v", fault, o)
		}
	}
}

// A documented refusal is clear, even with HTTP 500. The adapter makes no status query itself; its caller decides
// that.
func TestRefusal_with500IsFinal(t *testing.T) {
	b := newBench(t, sim.Options{OpeningFloat: 100}, simmtn.Options{})
	o := b.Rail.Disburser.Disburse(context.Background(), provider.DisburseRequest{ProviderReference: uuid.NewString(), Amount: 500, MSISDN: b.Wallet("000")})
	if o.Class != provider.Rejected || !o.Clear || o.Reason != provider.ReasonFloat {
		t.Errorf("our float is too low: %+v", o)
	}
	for _, e := range b.Exchanges() {
		if e.Operation == "transfer_status" {
			t.Errorf("the adapter asked: %+v", e)
		}
	}
}

// TestSim_documentedNumbers tests the documented numbers that the role suites do not use.
func TestSim_documentedNumbers(t *testing.T) {
	b := newBench(t, sim.Options{}, simmtn.Options{})
	collect := func(reference, code string) provider.Outcome {
		return b.Rail.Collector.Collect(context.Background(), provider.CollectRequest{ProviderReference: reference, Amount: 500, MSISDN: b.Wallet(code)})
	}
	status := func(reference, code string) provider.Outcome {
		return b.Rail.Collector.CollectStatus(context.Background(), provider.StatusRequest{ProviderReference: reference})
	}
	for code, want := range map[string]provider.State{"006": provider.Success, "007": provider.Failed, "032": provider.Success} {
		reference := uuid.NewString()
		if o := collect(reference, code); o.Class != provider.Unknown {
			t.Errorf("%s: %+v", code, o)
		}
		if o := collect(reference, code); o.Class != provider.Accepted || !o.Duplicate {
			t.Errorf("%s posted again: %+v", code, o)
		}
		b.Advance(5 * time.Second)
		if o := status(reference, code); o.Class != provider.Accepted || o.State != want {
			t.Errorf("%s after 5 s: %+v", code, o)
		}
	}
	reference := uuid.NewString()
	for range 2 {
		if o := collect(reference, "031"); o.Class != provider.Unknown || len(b.Moved(reference)) != 0 {
			t.Errorf("031: %+v", o)
		}
		b.Advance(29 * time.Second)
	}
	b.Advance(2 * time.Second)
	if o := collect(reference, "031"); o.Class != provider.Accepted {
		t.Errorf("031 after a minute: %+v", o)
	}
	for _, action := range []string{"approve", "decline", "wrong_pin"} {
		reference := uuid.NewString()
		collect(reference, "040")
		b.Advance(4 * time.Minute)
		if o := status(reference, "040"); o.Class != provider.Accepted || o.State != provider.Pending {
			t.Errorf("040 waiting: %+v", o)
		}
		prompts := b.Sim.Prompts(string(b.Wallet("040")))
		if _, err := b.Sim.Answer(b.Wallet("040").Local(), prompts[len(prompts)-1].ID, action); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"approve": "", "decline": provider.ReasonDeclined, "wrong_pin": provider.ReasonPIN}[action]
		if o := status(reference, "040"); !o.Final() || o.Reason != want || (o.State == provider.Success) != (action == "approve") {
			t.Errorf("040 %s: %+v", action, o)
		}
	}
	reference = uuid.NewString()
	collect(reference, "040")
	b.Advance(5 * time.Minute)
	if o := status(reference, "040"); o.State != provider.Failed || o.Reason != provider.ReasonExpired {
		t.Errorf("040 left alone: %+v", o)
	}
	reference = uuid.NewString()
	collect(reference, "003")
	b.Advance(1000 * time.Hour)
	if o := status(reference, "003"); o.Class != provider.Accepted || o.State != provider.Pending {
		t.Errorf("003: %+v", o)
	}
}
