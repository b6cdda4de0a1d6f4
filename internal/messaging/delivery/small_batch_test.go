package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

// smallBatch accepts a message to each number in one transaction and claims each with its charge.
func (h *fixture) smallBatch(to ...string) []Campaign {
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
	batchJobs   = "SELECT count(*) FROM jobs WHERE kind LIKE 'sms_volley%'"
)

func TestSmallBatch_oneJob(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		begun, goOn := make(chan struct{}, 4), make(chan struct{})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			begun <- struct{}{}
			<-goOn
			return h.operator.Accept()
		})
		sent := h.smallBatch("233241000001", "233241000002", "233241000003", "233241000004")
		<-begun
		if n, all := h.Count(batchJobs), h.Count(messageJobs); n != 1 || all != 1 {
			t.Errorf("%d jobs, %d of them of small batches", all, n)
		}
		h.sound() // the books are right while it waits
		close(goOn)
		h.Quiet()
		for _, c := range sent {
			h.wantStatus(c, "1 submitted")
		}
		if n := h.Count(messageJobs); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		h.WantBalance(6)
		h.sound()
	})
}

func TestSmallBatch_unsentDelaysNoOther(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			switch {
			case strings.HasSuffix(string(s.To), "2") && h.clock.Now().Before(smstest.Morning.Add(5*time.Second)):
				return smstest.Throttled
			case strings.HasSuffix(string(s.To), "3"):
				return smstest.Refused
			}
			return h.operator.Accept()
		})
		sent := h.smallBatch("233241000001", "233241000002", "233241000003")
		h.Quiet()
		for i, want := range []string{"1 submitted", "1 queued", "1 rejected"} {
			h.wantStatus(sent[i], want)
		}
		if n := h.Count(messageJobs+" AND subject = $1", sent[1].ID); n != 1 || h.Count(batchJobs) != 0 {
			t.Errorf("%d jobs for queued messages, and %d of small batches", n, h.Count(batchJobs))
		}
		h.sound()
		for range 10 {
			h.Pass(time.Second)
		}
		h.wantStatus(sent[1], "1 submitted")
		if n := len(h.operator.All()); n < 4 {
			t.Errorf("%d offers", n)
		}
		h.WantBalance(8)
		h.sound()
	})
}

func TestSmallBatch_splitsAfterFault(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			switch {
			case strings.HasSuffix(string(s.To), "1"):
				panic("a fault of the program")
			case strings.HasSuffix(string(s.To), "2") && h.clock.Now().Before(smstest.Morning.Add(5*time.Second)):
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		sent := h.smallBatch("233241000001", "233241000002", "233241000003")
		h.Quiet()
		h.wantStatus(sent[2], "1 submitted")
		if n := h.Count(batchJobs); n != 1 {
			t.Errorf("%d small batches wait for their second try", n)
		}
		h.sound()
		for range 10 {
			h.Pass(time.Second)
		}
		h.wantStatus(sent[0], "1 unknown") // the message may have been sent
		h.wantStatus(sent[1], "1 submitted")
		h.wantStatus(sent[2], "1 submitted")
		offers := map[string]int{}
		for _, s := range h.operator.All() {
			if s.Outcome.Class == provider.Accepted {
				offers[s.To]++
			}
		}
		if len(offers) != 2 || offers["233241000002"] != 1 || offers["233241000003"] != 1 {
			t.Errorf("taken: %v", offers)
		}
		if n := h.Count(messageJobs); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		h.Pass(receiptWindow + time.Hour)
		h.WantBalance(8)
		h.sound()
	})
}
