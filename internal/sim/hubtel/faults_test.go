package hubtel

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/test/simtest"
)

// A provider changes a final status twice. Its float changes with it.
func TestFault_statusChangesTwice(t *testing.T) {
	for kind, want := range map[sim.FaultKind][]sim.Status{
		sim.SuccessFailedSuccess: {sim.Success, sim.Failed, sim.Success}, sim.FailedSuccessFailed: {sim.Failed, sim.Success, sim.Failed}, sim.Reverse: {sim.Success, sim.Failed, sim.Failed},
	} {
		s, c := simtest.New(t, sim.Options{}, New(Options{}))
		if err := s.Inject(sim.Fault{Provider: Name, Kind: kind, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		exchange(t, s, "POST", "smp/api/merchants/"+prepaid+"/send/mobilemoney", sendBody)
		c.Advance(time.Minute)
		for i, status := range want {
			if err := s.Quiet(t.Context()); err != nil {
				t.Fatal(err)
			}
			gone := money.Pesewas(0)
			if status == sim.Success {
				gone = 80 + fee(80)
			}
			if e, _ := s.Status(Name, "pay101"); e.Status != status || s.Opening(Name)-s.Float(Name) != gone {
				t.Errorf("%s: word %d is %s, and %v went out", kind, i+1, e.Status, s.Opening(Name)-s.Float(Name))
			}
			c.Advance(time.Hour)
		}
	}
}

// A movement that was just entered is reported as not known. It is known later.
func TestFault_statusLag(t *testing.T) {
	s, c := simtest.New(t, sim.Options{}, New(Options{}))
	if err := s.Inject(sim.Fault{Provider: Name, Kind: sim.StatusLag, Delay: 5 * time.Minute, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	exchange(t, s, "POST", "smp/api/merchants/"+prepaid+"/send/mobilemoney", sendBody)
	for _, want := range []int{404, 404, 200} {
		if status, a := exchange(t, s, "GET", "smrsc/api/merchants/"+prepaid+"/transactions/status?clientReference=pay101", ""); status != want {
			t.Errorf("%v: %d %v", c.Now(), status, a)
		}
		c.Advance(150 * time.Second)
	}
}

// The status query gets no answer until the client gives up.
func TestFault_statusHangs(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	if err := s.Inject(sim.Fault{Provider: Name, Kind: sim.StatusHang}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/hubtel/smrsc/api/merchants/"+prepaid+"/transactions/status?clientReference=pay101", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := server.Client().Do(r)
		done <- err
	}()
	for len(s.Faults()) > 0 { // until the fault has taken effect
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it was answered: %v", err)
	}
}

// TestAnswers_worthTrying checks that every Answer in the list of useful ones can be given.
func TestAnswers_worthTrying(t *testing.T) {
	s, _ := simtest.New(t, sim.Options{}, New(Options{}))
	for kind, answers := range map[sim.FaultKind][]string{sim.RefuseAfter: RefusalAnswers(), sim.StatusAnswer: StatusAnswers()} {
		for _, a := range answers {
			if err := s.Inject(sim.Fault{Provider: Name, Kind: kind, Answer: a}); err != nil {
				t.Errorf("%s %q: %v", kind, a, err)
			}
		}
	}
}
