package messaging

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// volley accepts a message to each number in one transaction, marked with its charge.
func (h *fixture) volley(to ...msisdn.MSISDN) []Campaign {
	h.t.Helper()
	batch := make([]*admission, len(to))
	for i, n := range to {
		batch[i] = h.admission(KindCampaign, n)
	}
	verdicts, err := h.admissions.admit(h.t.Context(), batch)
	if err != nil {
		h.t.Fatal(err)
	}
	campaigns := make([]Campaign, len(to))
	for i, v := range verdicts {
		if v.Err != nil {
			h.t.Fatal(v.Err)
		}
		campaigns[i] = v.Value.campaign
	}
	return campaigns
}

const (
	messageJobs = "SELECT count(*) FROM jobs WHERE kind LIKE 'sms%'"
	volleyJobs  = "SELECT count(*) FROM jobs WHERE kind LIKE 'sms_volley%'"
)

func TestAVolleyHasOneJob(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		begun, goOn := make(chan struct{}, 4), make(chan struct{})
		h.operator.script(func(int, provider.Segment) provider.Outcome {
			begun <- struct{}{}
			<-goOn
			return h.operator.accept()
		})
		sent := h.volley("233241000001", "233241000002", "233241000003", "233241000004")
		<-begun
		if n, all := h.count(volleyJobs), h.count(messageJobs); n != 1 || all != 1 {
			t.Errorf("%d jobs, %d of them of volleys", all, n)
		}
		h.sound() // nothing is amiss while it waits
		close(goOn)
		h.quiet()
		for _, c := range sent {
			h.wantStatus(c, "1 submitted")
		}
		if n := h.count(messageJobs); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		h.wantBalance(6)
		h.sound()
	})
}

func TestWhatAVolleyCannotSendDelaysNoOther(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.script(func(_ int, s provider.Segment) provider.Outcome {
			switch {
			case strings.HasSuffix(string(s.To), "2") && h.clock.Now().Before(morning.Add(5*time.Second)):
				return throttled
			case strings.HasSuffix(string(s.To), "3"):
				return refused
			}
			return h.operator.accept()
		})
		sent := h.volley("233241000001", "233241000002", "233241000003")
		h.quiet()
		for i, want := range []string{"1 submitted", "1 queued", "1 rejected"} {
			h.wantStatus(sent[i], want)
		}
		if n := h.count(messageJobs+" AND subject = $1", sent[1].ID); n != 1 || h.count(volleyJobs) != 0 {
			t.Errorf("%d jobs for what is offered again, and %d of volleys", n, h.count(volleyJobs))
		}
		h.sound()
		for range 10 {
			h.pass(time.Second)
		}
		h.wantStatus(sent[1], "1 submitted")
		if n := len(h.operator.all()); n < 4 {
			t.Errorf("%d offers", n)
		}
		h.wantBalance(8)
		h.sound()
	})
}

func TestAVolleyWithAFaultGoesOnAlone(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.script(func(_ int, s provider.Segment) provider.Outcome {
			switch {
			case strings.HasSuffix(string(s.To), "1"):
				h.operator.mu.Unlock() // which its caller will not
				panic("a fault of the program")
			case strings.HasSuffix(string(s.To), "2") && h.clock.Now().Before(morning.Add(5*time.Second)):
				return throttled
			}
			return h.operator.accept()
		})
		sent := h.volley("233241000001", "233241000002", "233241000003")
		h.quiet()
		h.wantStatus(sent[2], "1 submitted")
		if n := h.count(volleyJobs); n != 1 {
			t.Errorf("%d volleys wait for their second try", n)
		}
		h.sound()
		for range 10 {
			h.pass(time.Second)
		}
		h.wantStatus(sent[0], "1 unknown") // it may have left
		h.wantStatus(sent[1], "1 submitted")
		h.wantStatus(sent[2], "1 submitted")
		offers := map[string]int{}
		for _, s := range h.operator.all() {
			if s.outcome.Class == provider.Accepted {
				offers[s.to]++
			}
		}
		if len(offers) != 2 || offers["233241000002"] != 1 || offers["233241000003"] != 1 {
			t.Errorf("taken: %v", offers)
		}
		if n := h.count(messageJobs); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		h.pass(receiptWindow + time.Hour)
		h.wantBalance(8)
		h.sound()
	})
}
